//! The exact mode: each SM is stepped cycle by cycle.

use super::code::{Compiler, Op};
use super::core::Core;
use super::{Arrival, Ended, Launch, launch_of};
use crate::device::Device;
use crate::engine::Time;
use crate::gpu::sm::Place;
use crate::ids::{IdVec, KernelId, SmId};
use crate::workload::Segment;

/// An SM is stepped no further ahead of time than so many cycles: when a CTA comes meanwhile, they are stepped again.
const AHEAD: u64 = 2_048;

/// All SMs.
#[derive(Debug)]
pub(super) struct Exact {
    cycle_ps: f64,
    code: Vec<Vec<Op>>,
    sms: IdVec<SmId, Sm>,
    kernels: Vec<KernelId>,
    /// When the CTA on each place began: what it did is told when it ends.
    began: Vec<Time>,
}

/// One SM as it was when something last changed, and as it will be when something changes next.
#[derive(Clone, Debug)]
struct Sm {
    core: Core,
    ahead: Core,
    /// The CTA that ends then; none if this is only as far as it was stepped.
    ended: Option<u32>,
    due: Time,
}

impl Exact {
    pub(super) fn new(device: &Device, programs: &[(&[Segment], u32, Compiler<'_>)]) -> Self {
        let compiled = |&(segments, _, compiler): &(&[Segment], u32, Compiler<'_>)| {
            let mut code = Vec::new();
            compiler.ops(segments, 0, &mut code);
            code.push(Op::Exit);
            code
        };
        let core = Core::new(device);
        let sm = Sm { ahead: core.clone(), core, ended: None, due: Time::MAX };
        Self {
            cycle_ps: device.clock.cycles_to_ps(1.0),
            code: programs.iter().map(compiled).collect(),
            sms: IdVec::filled(sm, device.sm_count()),
            kernels: Vec::new(),
            began: Vec::new(),
        }
    }

    pub(super) fn due(&self, sm: SmId) -> Time {
        self.sms[sm].due
    }

    pub(super) fn start(&mut self, arrival: Arrival, now: Time) {
        let Arrival { place, kernel, program, warps, startup } = arrival;
        let at = place.0 as usize;
        if self.kernels.len() <= at {
            self.kernels.resize(at + 1, kernel);
        }
        self.kernels[at] = kernel;
        self.began.resize(self.began.len().max(at + 1), now);
        self.began[at] = now;
        let cycle = |time: Time| (time.0 as f64 / self.cycle_ps) as u64;
        let sm = &mut self.sms[place.sm()];
        let none = sm.core.run(&self.code, cycle(now));
        debug_assert!(none.is_none(), "the end of a CTA comes before what happens after it");
        let first = sm.core.emptiest();
        let warps = (0..warps).map(|warp| (warp, program));
        sm.core.add(&self.code, place.0, warps, first, cycle(now + startup));
        sm.look_ahead(&self.code, self.cycle_ps);
    }

    pub(super) fn change(
        &mut self,
        sm: SmId,
        now: Time,
        launches: &mut IdVec<KernelId, Option<Launch<'_>>>,
        ended: &mut Vec<Ended>,
    ) {
        let sm = &mut self.sms[sm];
        while sm.due == now {
            std::mem::swap(&mut sm.core, &mut sm.ahead);
            if let Some(tag) = sm.ended.take() {
                let kernel = self.kernels[tag as usize];
                let over = (self.began[tag as usize], now);
                launch_of(launches, kernel).did(&sm.core.remove(tag), over);
                ended.push(Ended { place: Place(tag), kernel });
            }
            sm.look_ahead(&self.code, self.cycle_ps);
        }
    }
}

impl Sm {
    fn look_ahead(&mut self, code: &[Vec<Op>], cycle_ps: f64) {
        if self.core.is_idle() {
            self.due = Time::MAX;
            return;
        }
        self.ahead.clone_from(&self.core);
        self.ended = self.ahead.run(code, self.core.now() + AHEAD);
        self.due = Time((self.ahead.now() as f64 * cycle_ps).ceil() as u64);
    }
}
