//! The exact mode: each SM is stepped cycle by cycle, and memory is asked by each warp in the cycle in which it issues.

use super::code::{Compiler, Op};
use super::core::Core;
use super::{Arrival, Ended, Launch, launch_of};
use crate::device::Device;
use crate::engine::Time;
use crate::gpu::memory::Memory;
use crate::gpu::memory::Request;
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
    /// By place.
    ctas: Vec<Cta>,
    /// The number of the first access of each program's kernel among those of all kernels, and how many it has.
    accesses: Vec<(u32, u32)>,
}

/// A CTA on its place.
#[derive(Clone, Debug, Default)]
struct Cta {
    kernel: KernelId,
    number: u32,
    program: u32,
    /// When it began: what it did is told when it ends.
    began: Time,
    /// How often each of its warps has asked through each access: those of the first warp come first.
    asked: Vec<u64>,
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
            ctas: Vec::new(),
            accesses: programs.iter().map(|(_, _, compiler)| compiler.accesses).collect(),
        }
    }

    pub(super) fn due(&self, sm: SmId) -> Time {
        self.sms[sm].due
    }

    /// A CTA begins, whose spin-waits last as long as `lengths` says, by the number of the list that has them.
    pub(super) fn start(&mut self, arrival: Arrival, lengths: Vec<(usize, u64)>, now: Time) {
        let Arrival { place, kernel, cta, program, warps, startup } = arrival;
        let at = place.0 as usize;
        if self.ctas.len() <= at {
            self.ctas.resize(at + 1, Cta::default());
        }
        let accesses = self.accesses[program as usize].1;
        let state = &mut self.ctas[at];
        (state.kernel, state.number, state.program, state.began) = (kernel, cta, program, now);
        state.asked.clear();
        state.asked.resize((warps * accesses) as usize, 0);
        let cycle = |time: Time| (time.0 as f64 / self.cycle_ps) as u64;
        let sm = &mut self.sms[place.sm()];
        let none = sm.core.run(&self.code, cycle(now));
        debug_assert!(none.is_none(), "the end of a CTA comes before what happens after it");
        let first = sm.core.emptiest();
        let warps = (0..warps).map(|warp| (warp, program));
        sm.core.add(&self.code, place.0, warps, first, cycle(now + startup));
        sm.core.set_lengths(lengths);
        sm.look_ahead(&self.code, self.cycle_ps, now);
    }

    pub(super) fn change(
        &mut self,
        sm: SmId,
        now: Time,
        mut memory: Option<&mut Memory<'_>>,
        launches: &mut IdVec<KernelId, Option<Launch<'_>>>,
        ended: &mut Vec<Ended>,
    ) {
        let sm = &mut self.sms[sm];
        while sm.due == now {
            std::mem::swap(&mut sm.core, &mut sm.ahead);
            if let Some(tag) = sm.ended.take() {
                let Cta { kernel, began, .. } = self.ctas[tag as usize];
                launch_of(launches, kernel).did(&sm.core.remove(tag), (began, now));
                ended.push(Ended { place: Place(tag), kernel });
            }
            for asked in sm.core.take_asked() {
                let cta = &mut self.ctas[asked.tag as usize];
                let (first, count) = self.accesses[cta.program as usize];
                let access = (asked.access - first) as usize;
                let times = &mut cta.asked[asked.warp as usize * count as usize + access];
                let request = Request {
                    kernel: cta.kernel,
                    cta: cta.number,
                    place: Place(asked.tag),
                    access,
                    iteration: *times,
                    warp: Some(asked.warp),
                };
                *times += 1;
                let reply = memory.as_mut().expect("a program with accesses has a memory").ask(request, now);
                sm.core.reply(&self.code, asked, (reply.at.0 as f64 / self.cycle_ps).ceil() as u64);
            }
            sm.look_ahead(&self.code, self.cycle_ps, now);
        }
    }
}

impl Sm {
    /// Finds what happens next, at `now` or later: that may be inside of a cycle, which counts whole.
    fn look_ahead(&mut self, code: &[Vec<Op>], cycle_ps: f64, now: Time) {
        if self.core.is_idle() {
            self.due = Time::MAX;
            return;
        }
        self.ahead.clone_from(&self.core);
        self.ended = self.ahead.run(code, self.core.now() + AHEAD);
        self.due = Time((self.ahead.now() as f64 * cycle_ps).ceil() as u64).max(now);
    }
}
