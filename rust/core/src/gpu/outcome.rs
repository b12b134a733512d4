//! What a run leaves behind, from the state of its kernels and SMs at the end.

use crate::device::Device;
use crate::ids::{IdVec, KernelId, SmId};
use crate::records::{KernelColumns, L2Columns, SmColumns, WarpColumns};

use super::kernel::Run;
use super::memory::Memory;
use super::sm::Sms;
use super::warp::Warps;

/// A row a launch.
pub(super) fn kernels(runs: &IdVec<KernelId, Run<'_>>, sms: usize) -> KernelColumns {
    let mut columns = KernelColumns::default();
    for run in runs.values() {
        let times = &run.times;
        let slots = sms as u128 * u128::from(run.footprint.residency);
        columns.kernel.push(run.spec as u32);
        columns.stream.push(run.stream);
        columns.ctas.push(run.ctas);
        columns.residency.push(run.footprint.residency);
        columns.issue.push(times.issue);
        columns.ready.push(times.ready);
        columns.start.push(times.start);
        columns.placed.push(times.placed);
        columns.end.push(times.end);
        columns.complete.push(times.complete);
        columns.busy_ps.push(times.busy_ps);
        columns.dispatch_ps.push(times.dispatch_ps);
        columns.sync_ps.push(times.held_ps + run.sync.waited_ps());
        let tail = slots * u128::from(times.end.since(times.placed).0);
        columns.tail_ps.push(tail.saturating_sub(times.tail_busy_ps));
    }
    columns
}

/// A row a launch with memory work.
pub(super) fn l2(runs: &IdVec<KernelId, Run<'_>>, memory: Option<&Memory<'_>>) -> L2Columns {
    let mut columns = L2Columns::default();
    for (id, run) in runs.iter() {
        if let Some(traffic) = memory.and_then(|memory| memory.traffic(id)) {
            columns.kernel.push(id);
            columns.spec.push(run.spec as u32);
            columns.traffic.push(traffic);
        }
    }
    columns
}

/// A row a launch whose CTAs run warp programs.
pub(super) fn warps(runs: &IdVec<KernelId, Run<'_>>, warps: Option<&Warps<'_>>) -> WarpColumns {
    let mut columns = WarpColumns::default();
    for (id, run) in runs.iter() {
        if let Some(cycles) = warps.and_then(|warps| warps.states(id)) {
            columns.kernel.push(id);
            columns.spec.push(run.spec as u32);
            columns.cycles.push(cycles);
        }
    }
    columns
}

/// A row an SM.
pub(super) fn sms(sms: &Sms, device: &Device) -> SmColumns {
    let mut gpc_of = IdVec::<SmId, u16>::filled(0, sms.count());
    for (i, gpc) in device.topology.gpcs.iter().enumerate() {
        for sm in gpc.sms() {
            gpc_of[sm] = i as u16;
        }
    }
    let mut columns = SmColumns::default();
    for ((sm, &gpc), usage) in gpc_of.iter().zip(sms.usage()) {
        columns.sm.push(sm);
        columns.gpc.push(gpc);
        columns.ctas.push(usage.ctas);
        columns.busy_ps.push(usage.busy_ps);
        columns.active.push(usage.active());
        columns.last_end.push(usage.last_end);
    }
    columns
}
