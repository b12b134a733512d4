//! Plain columns; the Python side hands them over as they are.

use crate::engine::Time;
use crate::ids::{CtaId, KernelId, SlotId, SmId};

/// A row a kernel launch (or task list), in issue order.
#[derive(Clone, Debug, Default)]
pub struct KernelColumns {
    /// Which of the program's kernels was launched.
    pub kernel: Vec<u32>,
    /// In which stream.
    pub stream: Vec<u32>,
    /// CTAs.
    pub ctas: Vec<u64>,
    /// CTAs an SM holds at once, of this kernel alone.
    pub residency: Vec<u32>,
    /// When the host issued it.
    pub issue: Vec<Time>,
    /// When the front end had it ready for the dispatcher.
    pub ready: Vec<Time>,
    /// The first instruction of its first CTA.
    pub start: Vec<Time>,
    /// When its last CTA got its place.
    pub placed: Vec<Time>,
    /// The last instruction of its last CTA.
    pub end: Vec<Time>,
    /// When the dispatcher knew that all of it had ended.
    pub complete: Vec<Time>,
    /// Time that its CTAs ran, added up.
    pub busy_ps: Vec<u128>,
    /// Time in which one of its CTAs waited, a slot that fits was free, and the dispatcher was the reason: slot time.
    pub dispatch_ps: Vec<u128>,
    /// Time in which its CTAs waited at counters, grid barriers and flags, or for the kernel ahead: slot time.
    pub sync_ps: Vec<u128>,
    /// Slot time idle from `placed` to `end`, of this kernel's own slots.
    pub tail_ps: Vec<u128>,
}

/// A row a CTA, in the order in which they ended: 28 bytes each.
#[derive(Clone, Debug, Default)]
pub struct CtaColumns {
    /// Its launch.
    pub kernel: Vec<KernelId>,
    /// Its number in the grid.
    pub cta: Vec<CtaId>,
    /// Where it ran.
    pub sm: Vec<SmId>,
    /// On which of the SM's slots.
    pub slot: Vec<SlotId>,
    /// Its first instruction.
    pub start: Vec<Time>,
    /// Its last instruction.
    pub end: Vec<Time>,
}

impl CtaColumns {
    /// What a row takes.
    pub(crate) const ROW_BYTES: u64 = 28;

    /// Empty columns with room for this many rows; none if there is no memory for them.
    pub(crate) fn with_room_for(rows: usize) -> Option<Self> {
        let mut columns = Self::default();
        columns.kernel.try_reserve_exact(rows).ok()?;
        columns.cta.try_reserve_exact(rows).ok()?;
        columns.sm.try_reserve_exact(rows).ok()?;
        columns.slot.try_reserve_exact(rows).ok()?;
        columns.start.try_reserve_exact(rows).ok()?;
        columns.end.try_reserve_exact(rows).ok()?;
        Some(columns)
    }
}

/// A row an SM, by number.
#[derive(Clone, Debug, Default)]
pub struct SmColumns {
    /// `%smid`.
    pub sm: Vec<SmId>,
    /// The GPC it belongs to.
    pub gpc: Vec<u16>,
    /// CTAs that ran there.
    pub ctas: Vec<u64>,
    /// Time that CTAs ran there, added up.
    pub busy_ps: Vec<u128>,
    /// Time in which at least one CTA was resident.
    pub active: Vec<Time>,
    /// When the last CTA there ended.
    pub last_end: Vec<Time>,
}
