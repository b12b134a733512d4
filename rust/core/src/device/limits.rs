//! What an SM and a launch may hold, by compute capability.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, any_of};

/// Who makes the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// SMs, CTAs, warps of 32.
    Nvidia,
    /// CUs, workgroups, waves of 64 (CDNA).
    Amd,
}

/// `9.0` (CUDA) or `gfx942` (AMD).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ComputeCapability {
    /// Major and minor.
    Cuda(u32, u32),
    /// The target's name, such as `gfx942`.
    Gfx(String),
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(major, minor) => write!(f, "{major}.{minor}"),
            Self::Gfx(name) => f.write_str(name),
        }
    }
}

impl FromStr for ComputeCapability {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.starts_with("gfx") && text.len() > 3 {
            return Ok(Self::Gfx(text.to_owned()));
        }
        text.split_once('.')
            .and_then(|(major, minor)| Some(Self::Cuda(major.parse().ok()?, minor.parse().ok()?)))
            .ok_or_else(|| Error::invalid("compute_capability", text, "must be like `9.0` or `gfx942`"))
    }
}

impl TryFrom<String> for ComputeCapability {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<ComputeCapability> for String {
    fn from(capability: ComputeCapability) -> Self {
        capability.to_string()
    }
}

/// What an SM (AMD: a CU) and a launch may hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Threads of a warp (AMD: a wave).
    pub warp_size: u32,
    /// Issue partitions of an SM (AMD: SIMDs); warps and registers are split evenly over them.
    pub sub_partitions: u32,
    /// Resident threads an SM.
    pub threads: u32,
    /// Resident warps an SM.
    pub warps: u32,
    /// Resident CTAs an SM.
    pub ctas: u32,
    /// Threads a CTA.
    pub threads_per_cta: u32,
    /// The largest CTA in x, y and z.
    pub block: [u32; 3],
    /// The largest grid in x, y and z.
    pub grid: [u64; 3],
    /// Registers an SM.
    pub registers: u32,
    /// Registers a CTA.
    pub registers_per_cta: u32,
    /// Registers a thread.
    pub registers_per_thread: u32,
    /// Registers are given to a warp in multiples of this.
    pub register_unit: u32,
    /// AMD: architectural registers are rounded up to this before accumulation registers follow them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accumulation_unit: Option<u32>,
    /// Shared memory (AMD: LDS) an SM.
    pub shared_bytes: u32,
    /// Shared memory a CTA without asking for more.
    pub shared_default_bytes: u32,
    /// Shared memory a CTA that has opted in.
    pub shared_optin_bytes: u32,
    /// Shared memory that the system takes of each CTA.
    pub shared_reserved_bytes: u32,
    /// Shared memory is given to a CTA in multiples of this.
    pub shared_unit_bytes: u32,
    /// The sizes that shared memory can be set to, the rest of the array being L1; ascending.
    pub carve_outs_bytes: Vec<u32>,
    /// Hardware barriers an SM, where they limit residency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub barriers: Option<u32>,
    /// Named barriers a CTA.
    pub barriers_per_cta: u32,
    /// Resident CTAs an SM when a kernel is launched in clusters (of any size, 1 too); the least of this and `ctas` holds.
    pub ctas_in_clusters: u32,
    /// The largest cluster that every device of this capability takes; 1 where there are no clusters.
    pub max_cluster: u32,
    /// The largest cluster when the kernel allows non-portable sizes.
    pub max_nonportable_cluster: u32,
    /// What the tensor cores (AMD: matrix cores) of an SM do a cycle, a multiply-add being two: 16-bit operands
    /// added up in 32 bits, no sparsity.
    pub tensor_flops_per_cycle: u32,
    /// Multiply-adds of 32-bit floats that an SM does a cycle.
    pub fp32_lanes: u32,
}

const KB: u32 = 1024;
const CARVE_OUTS_KB: [u32; 10] = [0, 8, 16, 32, 64, 100, 132, 164, 196, 228];

/// The capabilities whose limits are known, ascending.
const KNOWN: [(u32, u32); 12] =
    [(7, 0), (7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1)];

impl Limits {
    /// The limits of a compute capability.
    ///
    /// Sources: CUDA programming guide and NVIDIA/cccl `arch_traits.h`; for AMD the CDNA instruction set manuals and
    /// LLVM's AMDGPU back end. Tensor-core rates, and FP32 lanes of AMD: what the vendors' data sheets give at the boost clock, by
    /// SM and cycle. FP32 lanes of NVIDIA: CUDA programming guide, throughput of arithmetic instructions.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a capability that is not known; it names the known ones.
    pub fn of(capability: &ComputeCapability) -> Result<Self> {
        let unknown = || {
            let mut known: Vec<String> = KNOWN.iter().map(|(a, b)| format!("{a}.{b}")).collect();
            known.extend(["gfx90a", "gfx942", "gfx950"].map(str::to_owned));
            Error::invalid("compute_capability", capability.to_string(), format!("must be {}", any_of(&known)))
        };
        match capability {
            ComputeCapability::Cuda(major, minor) => cuda_limits(*major, *minor).ok_or_else(unknown),
            ComputeCapability::Gfx(name) => match name.as_str() {
                "gfx90a" => Ok(cdna_limits(64 * KB, 512, 1024, 64)),
                "gfx942" => Ok(cdna_limits(64 * KB, 512, 2048, 128)),
                "gfx950" => Ok(cdna_limits(160 * KB, 1280, 4096, 128)),
                _ => Err(unknown()),
            },
        }
    }

    /// The known CUDA capability that comes nearest to one that may be unknown: itself, else the last before it, else the
    /// first.
    pub fn nearest_known(major: u32, minor: u32) -> ComputeCapability {
        let at = KNOWN.partition_point(|&known| known <= (major, minor));
        let (major, minor) = KNOWN[at.saturating_sub(1)];
        ComputeCapability::Cuda(major, minor)
    }

    /// Warps (AMD: waves) of a CTA of this many threads.
    pub fn warps_of(&self, threads: u32) -> u32 {
        threads.div_ceil(self.warp_size)
    }

    pub(super) fn validate(&self) -> Result<()> {
        for (field, value) in [
            ("warp_size", self.warp_size),
            ("sub_partitions", self.sub_partitions),
            ("threads", self.threads),
            ("warps", self.warps),
            ("ctas", self.ctas),
            ("threads_per_cta", self.threads_per_cta),
            ("block[0]", self.block[0]),
            ("block[1]", self.block[1]),
            ("block[2]", self.block[2]),
            ("registers", self.registers),
            ("registers_per_cta", self.registers_per_cta),
            ("registers_per_thread", self.registers_per_thread),
            ("register_unit", self.register_unit),
            ("accumulation_unit", self.accumulation_unit.unwrap_or(1)),
            ("shared_unit_bytes", self.shared_unit_bytes),
            ("barriers", self.barriers.unwrap_or(1)),
            ("ctas_in_clusters", self.ctas_in_clusters),
            ("max_cluster", self.max_cluster),
            ("tensor_flops_per_cycle", self.tensor_flops_per_cycle),
            ("fp32_lanes", self.fp32_lanes),
        ] {
            if value == 0 {
                return Err(Error::invalid(field, value, "must be at least 1"));
            }
        }
        for (i, &value) in self.grid.iter().enumerate() {
            if value == 0 {
                return Err(Error::invalid(format!("grid[{i}]"), value, "must be at least 1"));
            }
        }
        let at_most = |field: &str, value: u32, limit: u32, of: &str| {
            if value > limit {
                return Err(Error::invalid(field, value, format!("must not exceed {of} ({limit})")));
            }
            Ok(())
        };
        at_most("ctas", self.ctas, 64, "the slots of an SM that are simulated")?;
        at_most("registers_per_cta", self.registers_per_cta, self.registers, "registers")?;
        at_most("threads_per_cta", self.threads_per_cta, self.threads, "threads")?;
        at_most("shared_optin_bytes", self.shared_optin_bytes, self.shared_bytes, "shared_bytes")?;
        at_most("shared_default_bytes", self.shared_default_bytes, self.shared_optin_bytes, "shared_optin_bytes")?;
        at_most("max_cluster", self.max_cluster, self.max_nonportable_cluster, "max_nonportable_cluster")?;
        if !self.carve_outs_bytes.is_sorted() {
            let got = format!("{:?}", self.carve_outs_bytes);
            return Err(Error::invalid("carve_outs_bytes", got, "must be ascending"));
        }
        Ok(())
    }
}

fn cuda_limits(major: u32, minor: u32) -> Option<Limits> {
    // threads and CTAs an SM, shared KB, barriers, the largest cluster, tensor-core operations a cycle
    let (threads, ctas, shared_kb, barriers, cluster, flops) = match (major, minor) {
        (7, 0) => (2048, 32, 96, None, 1, 1024),
        (7, 5) => (1024, 16, 64, None, 1, 1024),
        (8, 0) => (2048, 32, 164, None, 1, 2048),
        (8, 6) => (1536, 16, 100, None, 1, 1024),
        (8, 7) => (1536, 16, 164, None, 1, 2048),
        (8, 9) => (1536, 24, 100, None, 1, 1024),
        (9, 0) => (2048, 32, 228, Some(64), 16, 4096),
        (10, 0) => (2048, 32, 228, Some(64), 16, 8192),
        (10, 3) => (2048, 32, 228, Some(32), 16, 8192),
        (11, 0) => (1536, 24, 228, Some(24), 16, 8192),
        (12, 0 | 1) => (1536, 24, 100, Some(24), 8, 1024),
        _ => return None,
    };
    // From 8.0 on the system keeps 1 KB of each CTA's shared memory, and the opt-in limit is that much lower.
    let reserved_kb = u32::from(major >= 8);
    let carve_outs: Vec<u32> = match (major, minor) {
        (7, 0) => vec![0, 8, 16, 32, 64, 96],
        (7, 5) => vec![32, 64],
        // Measured on an H200: what 8 KB would hold is given 16 (reference/h200_holdout/settle/carveout).
        (9, 0) => CARVE_OUTS_KB.into_iter().filter(|&kb| kb != 8).collect(),
        _ => CARVE_OUTS_KB.into_iter().filter(|&kb| kb <= shared_kb).collect(),
    };
    Some(Limits {
        warp_size: 32,
        sub_partitions: 4,
        threads,
        warps: threads / 32,
        ctas,
        threads_per_cta: 1024,
        block: [1024, 1024, 64],
        grid: [(1 << 31) - 1, 65_535, 65_535],
        registers: 65_536,
        registers_per_cta: 65_536,
        registers_per_thread: 255,
        register_unit: 256,
        accumulation_unit: None,
        shared_bytes: shared_kb * KB,
        shared_default_bytes: 48 * KB,
        shared_optin_bytes: (shared_kb - reserved_kb) * KB,
        shared_reserved_bytes: reserved_kb * KB,
        shared_unit_bytes: if major >= 8 { 128 } else { 256 },
        carve_outs_bytes: carve_outs.into_iter().map(|kb| kb * KB).collect(),
        barriers,
        barriers_per_cta: 16,
        // Measured on an H200: reference/occupancy/README.md.
        ctas_in_clusters: if cluster > 1 { 8 } else { ctas },
        max_cluster: cluster.min(8),
        max_nonportable_cluster: cluster,
        tensor_flops_per_cycle: flops,
        fp32_lanes: if matches!((major, minor), (7, _) | (8, 0)) { 64 } else { 128 },
    })
}

/// CDNA 2 to 4: a CU has 4 SIMDs of at most 8 waves, and 512 registers a lane on each, given out in eights.
fn cdna_limits(lds_bytes: u32, lds_unit_bytes: u32, flops: u32, fp32_lanes: u32) -> Limits {
    let wave = 64;
    Limits {
        warp_size: wave,
        sub_partitions: 4,
        threads: 4 * 8 * wave,
        warps: 4 * 8,
        ctas: 4 * 8,
        threads_per_cta: 1024,
        block: [1024, 1024, 1024],
        grid: [(1 << 31) - 1, 65_535, 65_535],
        registers: 4 * 512 * wave,
        registers_per_cta: 4 * 512 * wave,
        registers_per_thread: 512,
        register_unit: 8 * wave,
        accumulation_unit: Some(4),
        shared_bytes: lds_bytes,
        shared_default_bytes: lds_bytes,
        shared_optin_bytes: lds_bytes,
        shared_reserved_bytes: 0,
        shared_unit_bytes: lds_unit_bytes,
        carve_outs_bytes: vec![lds_bytes],
        // A workgroup of more than one wave holds one of 16 barriers.
        barriers: Some(16),
        barriers_per_cta: 1,
        ctas_in_clusters: 4 * 8,
        max_cluster: 1,
        max_nonportable_cluster: 1,
        tensor_flops_per_cycle: flops,
        fp32_lanes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_capability_has_valid_limits() {
        for (major, minor) in KNOWN {
            let limits = Limits::of(&ComputeCapability::Cuda(major, minor)).unwrap();
            limits.validate().unwrap();
            assert_eq!(limits.carve_outs_bytes.last(), Some(&limits.shared_bytes));
        }
        for gfx in ["gfx90a", "gfx942", "gfx950"] {
            Limits::of(&gfx.parse().unwrap()).unwrap().validate().unwrap();
        }
    }

    #[test]
    fn an_unknown_capability_names_the_known_ones() {
        let error = Limits::of(&"6.1".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("7.0, 7.5, 8.0") && error.contains("got 6.1"), "{error}");
    }

    #[test]
    fn an_unknown_capability_falls_back_to_the_last_known_before_it() {
        assert_eq!(Limits::nearest_known(8, 8), ComputeCapability::Cuda(8, 7));
        assert_eq!(Limits::nearest_known(13, 0), ComputeCapability::Cuda(12, 1));
        assert_eq!(Limits::nearest_known(6, 0), ComputeCapability::Cuda(7, 0));
    }

    #[test]
    fn capabilities_are_read_and_written_as_text() {
        for text in ["9.0", "12.1", "gfx942"] {
            assert_eq!(text.parse::<ComputeCapability>().unwrap().to_string(), text);
        }
        for text in ["9", "sm_90", "gfx", ""] {
            assert!(text.parse::<ComputeCapability>().is_err(), "{text}");
        }
    }
}
