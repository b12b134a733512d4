//! What happened, as columns; where the time went; and a digest of it all.

pub mod columns;
pub mod digest;
pub mod ledger;
pub mod warps;

pub use columns::{CtaColumns, KernelColumns, L2Columns, SmColumns, Traffic};
pub use digest::Digest;
pub use ledger::{Account, Ledger};
pub use warps::{State, States, WarpColumns};

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
    /// A row a launch whose CTAs run warp programs, in issue order.
    pub warps: WarpColumns,
    /// Where the slots' time went.
    pub ledger: Ledger,
    /// The number of slots of the device in this run: the most CTAs that one SM holds at once, times the SMs.
    pub slots: u64,
    /// From the first host issue to the end of the last item.
    pub makespan: Time,
    /// A hash of every CTA's kernel, number, SM, start and end, in order.
    pub digest: u64,
}
