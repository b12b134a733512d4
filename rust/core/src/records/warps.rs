//! What warps do, cycle by cycle, under the names that profilers use.

use crate::engine::Time;
use crate::ids::KernelId;

/// What a resident warp does in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum State {
    /// It issues an instruction.
    Selected,
    /// It could, and another one was picked.
    NotSelected,
    /// The fixed latency of its last instruction has not passed.
    Wait,
    /// It waits for the target of a branch.
    BranchResolving,
    /// It waits for data from global memory.
    LongScoreboard,
    /// It waits for data from shared memory, or for constants.
    ShortScoreboard,
    /// It waits for other warps of its CTA.
    Barrier,
    /// The pipe of its next instruction is in use.
    MathPipeThrottle,
    /// The sub-partition's way to the memory unit is in use.
    MioThrottle,
    /// Its code is being fetched.
    NoInstruction,
}

/// The number of states.
pub const STATES: usize = 10;

impl State {
    /// All states, in the order of the frames.
    pub const ALL: [Self; STATES] = [
        Self::Selected,
        Self::NotSelected,
        Self::Wait,
        Self::BranchResolving,
        Self::LongScoreboard,
        Self::ShortScoreboard,
        Self::Barrier,
        Self::MathPipeThrottle,
        Self::MioThrottle,
        Self::NoInstruction,
    ];

    /// The state's name in frames: the profilers' stall reason.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Selected => "selected",
            Self::NotSelected => "not_selected",
            Self::Wait => "wait",
            Self::BranchResolving => "branch_resolving",
            Self::LongScoreboard => "long_scoreboard",
            Self::ShortScoreboard => "short_scoreboard",
            Self::Barrier => "barrier",
            Self::MathPipeThrottle => "math_pipe_throttle",
            Self::MioThrottle => "mio_throttle",
            Self::NoInstruction => "no_instruction",
        }
    }
}

impl State {
    /// What the warp is held by: issue and arithmetic, memory, or other warps.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::LongScoreboard | Self::ShortScoreboard | Self::MioThrottle => "memory",
            Self::Barrier => "sync",
            Self::Selected
            | Self::NotSelected
            | Self::Wait
            | Self::BranchResolving
            | Self::MathPipeThrottle
            | Self::NoInstruction => "issue",
        }
    }
}

/// A row a launch whose CTAs run warp programs, in issue order.
#[derive(Clone, Debug, Default)]
pub struct WarpColumns {
    /// The launch.
    pub kernel: Vec<KernelId>,
    /// Which of the program's kernels was launched.
    pub spec: Vec<u32>,
    /// Cycles of its warps in each state.
    pub cycles: Vec<[f64; STATES]>,
}

/// A row a launch whose CTAs run warp programs and window of time, from the first to the last in which its warps did
/// anything. All windows of a run are equally long.
#[derive(Clone, Debug, Default)]
pub struct WarpWindowColumns {
    /// The launch.
    pub kernel: Vec<KernelId>,
    /// When the window begins.
    pub start: Vec<Time>,
    /// When it ends.
    pub end: Vec<Time>,
    /// Cycles of its warps in each state.
    pub cycles: Vec<[f64; STATES]>,
}

/// Cycles of warps by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States(pub [u64; STATES]);

impl States {
    /// Adds what another one did.
    pub(crate) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, cycles)| *sum += cycles);
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}
