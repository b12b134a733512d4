//! One kernel: its launch shape and what each of its CTAs does.

use serde::{Deserialize, Serialize};

use super::work::{Duration, Span, Work};
use crate::error::{Error, Result};

/// A kernel's launch shape, resources and work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// A name for people; need not be unique.
    pub name: String,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Registers a thread; 0 when they are not known, and then they limit nothing.
    pub registers: u32,
    /// Shared memory a CTA, static and dynamic, in bytes.
    pub shared_memory: u32,
    /// CTAs of a cluster; 1 is no cluster.
    #[serde(default = "one")]
    pub cluster: u32,
    /// Whether it is launched with a cluster size although that is 1: the dispatcher then places it as it places clusters.
    #[serde(default)]
    pub cluster_launch: bool,
    /// Whether a cluster over the portable size was asked for.
    #[serde(default)]
    pub non_portable_cluster: bool,
    /// Named barriers a CTA.
    #[serde(default = "one")]
    pub barriers: u32,
    /// Launched cooperatively: every CTA must be resident at once.
    #[serde(default)]
    pub cooperative: bool,
    /// How long one warp of a CTA runs on when the others have ended, in SM cycles: what they held of warps, threads and
    /// registers can be given away by then. For work that is a duration.
    #[serde(default)]
    pub last_warp_cycles: f64,
    /// What a CTA does.
    pub work: Work,
}

const fn one() -> u32 {
    1
}

/// The largest grid of one launch that is simulated, in CTAs.
pub const MAX_CTAS: u64 = u32::MAX as u64;
/// The most CTAs of a launch of which something is kept from the start: a second or so, and a gigabyte.
const MAX_KEPT_CTAS: u64 = 1 << 24;

impl Kernel {
    /// Whether all of its CTAs have to be resident at once: it asks for that, or its work does.
    pub fn is_cooperative(&self) -> bool {
        self.cooperative || matches!(self.work, Work::GridSync { rounds: 1.., .. })
    }

    /// A kernel of `ctas` CTAs of `threads` threads with few registers and no shared memory, whose CTAs do nothing.
    pub fn of(ctas: u32, threads: u32) -> Self {
        Self {
            name: "kernel".to_owned(),
            grid: [ctas, 1, 1],
            block: [threads, 1, 1],
            registers: 32,
            shared_memory: 0,
            cluster: 1,
            cluster_launch: false,
            non_portable_cluster: false,
            barriers: 1,
            cooperative: false,
            last_warp_cycles: 0.0,
            work: Work::Duration(Duration::Constant(Span::Ns(0.0))),
        }
    }

    /// The number of CTAs.
    pub fn ctas(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// The number of threads of a CTA.
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Checks all that needs no device; `arrays` are the lengths of the program's number lists.
    ///
    /// # Errors
    /// The first field that can't be, with its value.
    pub fn validate(&self, arrays: &[usize]) -> Result<()> {
        const GRID_LIMITS: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
        for (axis, (&n, limit)) in self.grid.iter().zip(GRID_LIMITS).enumerate() {
            if n == 0 || n > limit {
                return Err(Error::invalid(
                    format!("grid[{axis}]"),
                    n,
                    format!("a grid has 1 to {limit} CTAs along this axis"),
                ));
            }
        }
        let ctas = self.grid.iter().map(|&n| u128::from(n)).product::<u128>();
        if ctas > u128::from(MAX_CTAS) {
            return Err(Error::invalid("grid", ctas, format!("at most {MAX_CTAS} CTAs a launch")));
        }
        for (axis, &n) in self.block.iter().enumerate() {
            if n == 0 || n > 1024 {
                return Err(Error::invalid(format!("block[{axis}]"), n, "a CTA has 1 to 1024 threads along this axis"));
            }
        }
        if self.registers > 512 {
            return Err(Error::invalid("registers", self.registers, "a thread has at most 512 registers"));
        }
        if self.cluster == 0 {
            return Err(Error::invalid("cluster", 0, "a cluster has at least 1 CTA"));
        }
        if !self.ctas().is_multiple_of(u64::from(self.cluster)) {
            return Err(Error::invalid(
                "cluster",
                self.cluster,
                format!("the grid of {} CTAs is not a whole number of clusters", self.ctas()),
            ));
        }
        if self.work.keeps_each_cta() && self.ctas() > MAX_KEPT_CTAS {
            let why = format!("at most {MAX_KEPT_CTAS} CTAs where they share tasks or wait for each other");
            return Err(Error::invalid("grid", self.ctas(), why));
        }
        Span::Cycles(self.last_warp_cycles).validate("last_warp_cycles")?;
        if self.last_warp_cycles > 0.0 && !matches!(self.work, Work::Duration(_)) {
            let why = "only where the work is a duration is it known when a CTA is about to end";
            return Err(Error::invalid("last_warp_cycles", self.last_warp_cycles, why));
        }
        self.work.validate(self.ctas(), self.shared_memory, arrays).map_err(|e| e.within("work"))
    }

    /// Checks the numbers of the lists themselves, once [`validate`](Self::validate) has passed.
    ///
    /// # Errors
    /// The first number that can't be, with the path of what refers to it.
    pub fn validate_lists(&self, arrays: &[&[f64]]) -> Result<()> {
        self.work.validate_lists(self.ctas(), arrays).map_err(|e| e.within("work"))
    }
}
