//! What happened, as columns; where the time went; and a digest of it all.

pub mod columns;
pub mod digest;
pub mod l2;
pub mod ledger;
mod warp_log;
pub mod warps;

pub use columns::{CtaColumns, KernelColumns, SmColumns};
pub use digest::Digest;
pub(crate) use l2::L2Log;
pub use l2::{L2Columns, L2SliceColumns, L2WindowColumns, Traffic};
pub use ledger::{Account, Ledger};
pub(crate) use warp_log::WarpLog;
pub use warps::{State, States, WarpColumns, WarpWindowColumns};

use crate::engine::Time;

/// All that a run leaves behind.
#[derive(Clone, Debug)]
pub struct Records {
    /// A row a kernel launch, in issue order.
    pub kernels: KernelColumns,
    /// A row a CTA, in the order in which they ended; only if the run recorded them.
    pub ctas: Option<CtaColumns>,
    /// A row an SM, by number.
    pub sms: SmColumns,
    /// A row a launch with memory work, in issue order.
    pub l2: L2Columns,
    /// A row a launch with memory work and slice of L2; only if the run recorded memory and has any.
    pub l2_slices: Option<L2SliceColumns>,
    /// A row a launch with memory work and window of time; likewise.
    pub l2_windows: Option<L2WindowColumns>,
    /// A row a launch whose CTAs run warp programs, in issue order.
    pub warps: WarpColumns,
    /// A row a launch with warp programs and window of time; only if the run recorded memory and has any.
    pub warps_windows: Option<WarpWindowColumns>,
    /// Where the slots' time went.
    pub ledger: Ledger,
    /// The number of slots of the device in this run: the most CTAs that one SM holds at once, times the SMs.
    pub slots: u64,
    /// From the first host issue to the end of the last item.
    pub makespan: Time,
    /// A hash of every CTA's kernel, number, SM, start and end, in order.
    pub digest: u64,
}
