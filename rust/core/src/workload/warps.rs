//! Warp programs: what each warp of a CTA issues, so that a CTA's time follows from how warps share the SM.
//!
//! A program is a list of segments, such as eight multiply-adds that depend on each other, a load, a barrier, or a loop over
//! further segments. All warps of a CTA run the same one.
//!
//! Loads and stores can name one of the kernel's accesses. A CTA then walks through that pattern: what all of its warps move
//! by one instruction is an iteration, and the next instruction that names the pattern, in whatever segment, moves the next.

use serde::{Deserialize, Serialize};

use super::access::Access;
use super::poll::{self, Poll};
use super::work::Span;
use crate::error::{Error, Result};

/// What the warps of each CTA issue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warps {
    /// The programs: CTA `i` of a kernel with `n` of them runs number `i mod n`, unless `order` says another one.
    pub programs: Vec<Vec<Segment>>,
    /// What its loads and stores move that go through L2: they name one by its number.
    #[serde(default)]
    pub accesses: Vec<Access>,
    /// Which of the program's number lists has the number of each CTA's program.
    #[serde(default)]
    pub order: Option<usize>,
    /// Before a CTA's first instruction is issued: its code is fetched.
    #[serde(default)]
    pub startup: Span,
    /// Behind its last one.
    #[serde(default)]
    pub finish: Span,
}

/// The pipe of a sub-partition that an arithmetic instruction goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pipe {
    /// Single-precision multiply-adds: a lane for each thread of a warp, so one instruction a cycle.
    #[default]
    Fma,
    /// Integers, comparisons, logic; and what else has half of the lanes.
    Alu,
    /// Integer multiply-adds, half precision: the half of the multiply-add lanes that can do more.
    Heavy,
    /// What no warp waits for another's use of: moves, uniform instructions, branches that are not taken.
    Other,
}

/// What a warp does next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Segment {
    /// Instructions of which each waits for the one `chains` before it.
    Arithmetic {
        /// How many a warp issues.
        instructions: u64,
        /// From an instruction to the one that needs its result, in cycles; without, what the device says.
        #[serde(default)]
        latency_cycles: Option<u32>,
        /// How many are independent of each other: 1 is one dependent chain.
        #[serde(default = "one")]
        chains: u32,
        /// Where they are executed.
        #[serde(default)]
        pipe: Pipe,
    },
    /// Tensor-core instructions, one chain for each accumulator.
    Tensor {
        /// How many a warp issues.
        instructions: u64,
        /// How long one keeps the tensor core of its sub-partition, in cycles; without, what the device says.
        #[serde(default)]
        interval_cycles: Option<u32>,
        /// From one to the next on the same accumulator, in cycles; without, what the device says.
        #[serde(default)]
        latency_cycles: Option<u32>,
        /// Accumulators.
        #[serde(default = "one")]
        chains: u32,
    },
    /// Accesses to shared memory, or to constants.
    Shared {
        /// How many a warp issues.
        instructions: u64,
        /// Which kind.
        kind: SharedKind,
        /// How often each is repeated because lanes meet in a bank; 1 is free of conflicts.
        #[serde(default = "one")]
        ways: u32,
        /// The warp goes on only with the answers.
        #[serde(default = "yes")]
        wait: bool,
    },
    /// Loads from global memory that miss L1.
    Load {
        /// How many a warp issues, back to back.
        instructions: u64,
        /// What each moves, for the whole warp.
        #[serde(default = "line")]
        bytes: u32,
        /// Where the data is.
        from: Source,
        /// The warp goes on only with the data of all of them.
        #[serde(default = "yes")]
        wait: bool,
    },
    /// Stores to global memory; no warp waits for them.
    Store {
        /// How many a warp issues.
        instructions: u64,
        /// What each moves, for the whole warp.
        #[serde(default = "line")]
        bytes: u32,
        /// Which of the kernel's accesses they move the bytes of, through L2; without, each SM has its share of the bandwidth.
        #[serde(default)]
        access: Option<usize>,
    },
    /// The warp waits for all that it has asked for and not waited for.
    Wait,
    /// The warp waits until all warps of its CTA have come here.
    Barrier,
    /// A branch that is taken.
    Branch,
    /// A spin-wait.
    Poll(Poll),
    /// Segments that are run through again and again.
    Loop {
        /// How often.
        count: u64,
        /// What is run through.
        body: Vec<Segment>,
        /// Unrolled by the compiler: there is no branch back.
        #[serde(default)]
        unrolled: bool,
    },
}

/// What an access to shared memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedKind {
    /// A load from shared memory.
    Load,
    /// A store to it; no warp waits for it.
    Store,
    /// A load of constants.
    Constant,
}

/// Where loaded data comes from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// Each load takes so many cycles.
    LatencyCycles(f64),
    /// Data that is read again and again: what the L2 of the device holds of so many bytes decides.
    FootprintBytes(u64),
    /// The kernel's access of this number: what L2, DRAM and everybody's loads make of it decides.
    Access(usize),
}

const fn one() -> u32 {
    1
}

const fn line() -> u32 {
    128
}

const fn yes() -> bool {
    true
}

/// Programs of a kernel: CTAs are of few kinds.
const MAX_PROGRAMS: usize = 256;
/// Accesses of a kernel.
const MAX_ACCESSES: usize = 256;
/// Segments of a program, with those in loops.
const MAX_SEGMENTS: usize = 65_536;
/// Loops in loops.
pub(crate) const MAX_DEPTH: usize = 8;
/// What a warp may issue in all: over an hour of it.
const MAX_INSTRUCTIONS: f64 = 1e13;
/// A latency over this is no latency.
const MAX_LATENCY: u32 = 1_000_000;

impl Warps {
    pub(crate) fn validate(&self, ctas: u64, arrays: &[usize]) -> Result<()> {
        self.startup.validate("startup")?;
        self.finish.validate("finish")?;
        if self.programs.is_empty() || self.programs.len() > MAX_PROGRAMS {
            let why = format!("a kernel has 1 to {MAX_PROGRAMS} programs");
            return Err(Error::invalid("programs", self.programs.len(), why));
        }
        if self.accesses.len() > MAX_ACCESSES {
            let why = format!("a kernel's programs name at most {MAX_ACCESSES} accesses");
            return Err(Error::invalid("accesses", self.accesses.len(), why));
        }
        for (i, access) in self.accesses.iter().enumerate() {
            let within = |e: Error| e.within(&format!("accesses[{i}]"));
            access.validate(ctas, arrays).and_then(|()| access.is_bare()).map_err(within)?;
        }
        let bytes = vec![None; self.accesses.len()];
        let mut seen = Seen { accesses: &self.accesses, bytes, segments: 0, ctas, arrays };
        for (i, program) in self.programs.iter().enumerate() {
            let field = format!("programs[{i}]");
            if program.is_empty() {
                return Err(Error::invalid(field, "[]", "a program has at least one segment"));
            }
            seen.segments = 0;
            let issued = validate(program, &field, 0, &mut seen)?;
            if issued == 0.0 {
                return Err(Error::invalid(field, "only waits", "a program issues at least one instruction"));
            }
            if issued > MAX_INSTRUCTIONS {
                let why = format!("a warp issues at most {MAX_INSTRUCTIONS:e} instructions");
                return Err(Error::invalid(field, issued, why));
            }
        }
        if let Some(unused) = seen.bytes.iter().position(Option::is_none) {
            return Err(Error::invalid("accesses", unused, "no load or store names the access of this number"));
        }
        let Some(order) = self.order else {
            let count = self.programs.len();
            if count as u64 > ctas {
                let why = format!("CTA i runs program i modulo their number: no more of them than CTAs, {ctas}");
                return Err(Error::invalid("programs", format!("{count} programs"), why));
            }
            return Ok(());
        };
        match arrays.get(order) {
            None => Err(Error::invalid("order", order, "no such list of numbers")),
            Some(&len) if len as u64 != ctas => {
                let why = format!("one program a CTA is needed, {ctas} in all");
                Err(Error::invalid("order", format!("a list of {len} values"), why))
            }
            Some(_) => Ok(()),
        }
    }

    /// What an instruction of a warp moves through an access.
    pub(crate) fn bytes_through(&self, access: usize) -> u64 {
        fn find(segments: &[Segment], access: usize) -> Option<u32> {
            segments.iter().find_map(|segment| match *segment {
                Segment::Load { from: Source::Access(named), bytes, .. }
                | Segment::Store { access: Some(named), bytes, .. }
                    if named == access =>
                {
                    Some(bytes)
                }
                Segment::Loop { ref body, .. } => find(body, access),
                _ => None,
            })
        }
        self.programs.iter().find_map(|program| find(program, access)).unwrap_or_else(line).into()
    }

    /// How many iterations of an access a CTA with this program asks for.
    pub(crate) fn asked(&self, program: usize, access: usize) -> u128 {
        fn sum(segments: &[Segment], access: usize) -> u128 {
            let of = |segment: &Segment| match *segment {
                Segment::Load { from: Source::Access(named), instructions, .. }
                | Segment::Store { access: Some(named), instructions, .. }
                    if named == access =>
                {
                    u128::from(instructions)
                }
                Segment::Loop { count, ref body, .. } => u128::from(count).saturating_mul(sum(body, access)),
                _ => 0,
            };
            segments.iter().map(of).fold(0, u128::saturating_add)
        }
        sum(&self.programs[program], access)
    }

    pub(crate) fn validate_lists(&self, arrays: &[&[f64]]) -> Result<()> {
        for (i, access) in self.accesses.iter().enumerate() {
            access.validate_lists(arrays).map_err(|e| e.within(&format!("warps.accesses[{i}]")))?;
        }
        for (i, program) in self.programs.iter().enumerate() {
            poll::validate_lists(program, &format!("warps.programs[{i}]"), arrays)?;
        }
        let Some(order) = self.order else { return Ok(()) };
        let count = self.programs.len();
        let is_program = |number: &f64| number.fract() == 0.0 && (0.0..count as f64).contains(number);
        match arrays[order].iter().position(|number| !is_program(number)) {
            None => Ok(()),
            Some(at) => {
                let why = format!("a program is one of 0 to {}", count - 1);
                Err(Error::invalid(format!("warps.order[{at}]"), arrays[order][at], why))
            }
        }
    }
}

/// What is known of a kernel's programs while they are checked.
struct Seen<'a> {
    accesses: &'a [Access],
    /// What an instruction moves through each, as far as one was seen.
    bytes: Vec<Option<u32>>,
    /// Of the program at hand.
    segments: usize,
    /// CTAs of the kernel, and how long the lists of numbers are.
    ctas: u64,
    arrays: &'a [usize],
}

impl Seen<'_> {
    /// A load or store, at `path`, names an access.
    fn names(&mut self, path: &str, access: usize, bytes: u32, write: bool) -> Result<()> {
        let field = if write { format!("{path}.access") } else { format!("{path}.from.access") };
        let Some(named) = self.accesses.get(access) else {
            let why = format!("the kernel has {} accesses", self.accesses.len());
            return Err(Error::invalid(field, access, why));
        };
        if named.write != write {
            let why =
                if write { "a store through an access that reads" } else { "a load through an access that writes" };
            return Err(Error::invalid(field, access, why));
        }
        let before = *self.bytes[access].get_or_insert(bytes);
        if before != bytes {
            let why = format!("all that name access {access} move the same bytes, and others move {before}");
            return Err(Error::invalid(format!("{path}.bytes"), bytes, why));
        }
        Ok(())
    }
}

/// Checks segments, and gives how many instructions a warp issues in them.
fn validate(segments: &[Segment], path: &str, depth: usize, seen: &mut Seen<'_>) -> Result<f64> {
    let mut issued = 0.0;
    for (i, segment) in segments.iter().enumerate() {
        let at = |field: &str| format!("{path}[{i}].{field}");
        seen.segments += 1;
        if seen.segments > MAX_SEGMENTS {
            return Err(Error::invalid(path, seen.segments, format!("a program has at most {MAX_SEGMENTS} segments")));
        }
        issued += match *segment {
            Segment::Arithmetic { instructions, latency_cycles, chains, .. } => {
                check_chain(&at("arithmetic"), latency_cycles, chains)?;
                count(&at("arithmetic.instructions"), instructions)?
            }
            Segment::Tensor { instructions, interval_cycles, latency_cycles, chains } => {
                check_chain(&at("tensor"), latency_cycles, chains)?;
                if interval_cycles.is_some_and(|cycles| cycles == 0 || cycles > MAX_LATENCY) {
                    let why = format!("must be from 1 to {MAX_LATENCY}");
                    return Err(Error::invalid(at("tensor.interval_cycles"), interval_cycles.unwrap_or(0), why));
                }
                count(&at("tensor.instructions"), instructions)?
            }
            Segment::Shared { instructions, ways, .. } => {
                if ways == 0 || ways > 32 {
                    return Err(Error::invalid(at("shared.ways"), ways, "lanes meet in a bank in 1 to 32 ways"));
                }
                count(&at("shared.instructions"), instructions)?
            }
            Segment::Load { instructions, bytes, from, .. } => {
                check_bytes(&at("load.bytes"), bytes)?;
                match from {
                    Source::LatencyCycles(cycles) if !(0.0..=f64::from(MAX_LATENCY)).contains(&cycles) => {
                        let why = format!("a latency is a number of cycles from 0 to {MAX_LATENCY}");
                        return Err(Error::invalid(at("load.from.latency_cycles"), cycles, why));
                    }
                    Source::FootprintBytes(0) => {
                        let why = "loads need data: at least 1 byte";
                        return Err(Error::invalid(at("load.from.footprint_bytes"), 0, why));
                    }
                    Source::Access(access) => seen.names(&at("load"), access, bytes, false)?,
                    _ => {}
                }
                count(&at("load.instructions"), instructions)?
            }
            Segment::Store { instructions, bytes, access } => {
                check_bytes(&at("store.bytes"), bytes)?;
                access.map_or(Ok(()), |access| seen.names(&at("store"), access, bytes, true))?;
                count(&at("store.instructions"), instructions)?
            }
            Segment::Wait => 0.0,
            Segment::Barrier | Segment::Branch => 1.0,
            Segment::Poll(ref poll) => {
                poll.validate(&at("poll"), seen.ctas, seen.arrays)?;
                validate(&poll.body, &at("poll.body"), depth, seen)? + 1.0
            }
            Segment::Loop { count: times, ref body, unrolled } => {
                let inside = at("loop.body");
                if depth == MAX_DEPTH {
                    let why = format!("loops are nested at most {MAX_DEPTH} deep");
                    return Err(Error::invalid(inside, depth + 1, why));
                }
                if body.is_empty() {
                    return Err(Error::invalid(inside, "[]", "a loop has at least one segment"));
                }
                let once = validate(body, &inside, depth + 1, seen)?;
                if once == 0.0 {
                    return Err(Error::invalid(inside, "only waits", "a loop issues at least one instruction"));
                }
                count(&at("loop.count"), times)? * (once + f64::from(u8::from(!unrolled)))
            }
        };
    }
    Ok(issued)
}

fn count(field: &str, count: u64) -> Result<f64> {
    if count == 0 || count > 1 << 40 {
        return Err(Error::invalid(field, count, format!("must be from 1 to {}", 1_u64 << 40)));
    }
    Ok(count as f64)
}

fn check_chain(path: &str, latency: Option<u32>, chains: u32) -> Result<()> {
    if let Some(cycles) = latency.filter(|&cycles| cycles == 0 || cycles > MAX_LATENCY) {
        let why = format!("a latency is a number of cycles from 1 to {MAX_LATENCY}");
        return Err(Error::invalid(format!("{path}.latency_cycles"), cycles, why));
    }
    if chains == 0 || chains > 1024 {
        return Err(Error::invalid(format!("{path}.chains"), chains, "must be from 1 to 1024"));
    }
    Ok(())
}

fn check_bytes(field: &str, bytes: u32) -> Result<()> {
    if bytes == 0 || bytes > 4096 {
        return Err(Error::invalid(field, bytes, "an instruction of a warp moves 1 to 4096 bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(program: Vec<Segment>) -> String {
        through(program, vec![])
    }

    fn through(program: Vec<Segment>, accesses: Vec<Access>) -> String {
        let work =
            Warps { programs: vec![program], accesses, order: None, startup: Span::default(), finish: Span::default() };
        work.validate(4, &[]).err().map(|error| error.to_string()).unwrap_or_default()
    }

    fn fmas(instructions: u64) -> Segment {
        Segment::Arithmetic { instructions, latency_cycles: None, chains: 1, pipe: Pipe::Fma }
    }

    #[test]
    fn faults_name_the_segment_and_its_value() {
        assert_eq!(said(vec![fmas(8), Segment::Wait]), "");
        assert_eq!(said(vec![]), "programs[0]: a program has at least one segment (got [])");
        let inner = Segment::Loop { count: 3, body: vec![Segment::Barrier, fmas(0)], unrolled: false };
        let want = "programs[0][1].loop.body[1].arithmetic.instructions: must be from 1 to 1099511627776 (got 0)";
        assert_eq!(said(vec![fmas(1), inner]), want);
        let slow = Segment::Arithmetic { instructions: 1, latency_cycles: Some(2_000_000), chains: 1, pipe: Pipe::Alu };
        let want =
            "programs[0][0].arithmetic.latency_cycles: a latency is a number of cycles from 1 to 1000000 (got 2000000)";
        assert_eq!(said(vec![slow]), want);
        let load = Segment::Load { instructions: 1, bytes: 128, from: Source::LatencyCycles(f64::NAN), wait: true };
        assert!(said(vec![load]).starts_with("programs[0][0].load.from.latency_cycles"));
    }

    #[test]
    fn programs_that_no_cta_would_run_are_refused() {
        let work = |programs| Warps {
            programs,
            accesses: vec![],
            order: None,
            startup: Span::default(),
            finish: Span::default(),
        };
        assert!(work(vec![vec![fmas(1)]; 4]).validate(4, &[]).is_ok());
        let error = work(vec![vec![fmas(1)]; 5]).validate(4, &[]).unwrap_err().to_string();
        let want = "programs: CTA i runs program i modulo their number: no more of them than CTAs, 4 (got 5 programs)";
        assert_eq!(error, want);
    }

    #[test]
    fn loops_are_not_nested_for_ever_and_do_something() {
        let mut nested = fmas(1);
        for _ in 0..=MAX_DEPTH {
            nested = Segment::Loop { count: 2, body: vec![nested], unrolled: false };
        }
        assert!(said(vec![nested]).contains("loops are nested at most 8 deep"));
        let idle = Segment::Loop { count: 2, body: vec![Segment::Wait], unrolled: true };
        assert!(said(vec![idle]).contains("a loop issues at least one instruction"));
        let long = Segment::Loop {
            count: 1 << 40,
            body: vec![Segment::Loop { count: 1 << 40, body: vec![fmas(1)], unrolled: false }],
            unrolled: false,
        };
        assert!(said(vec![long]).contains("a warp issues at most 1e13 instructions"));
    }
}
