//! A grid barrier: a word that each CTA adds itself to and then polls until the last one has come.

use super::sm::Place;
use super::sync::Next;
use super::word::{PolledWord, Request};
use crate::device::Device;
use crate::engine::Time;
use crate::ids::SmId;

/// A grid barrier: each CTA adds itself to a word, and then polls it until the last one has come.
#[derive(Debug)]
pub(crate) struct Barrier {
    word: PolledWord,
    ctas: Vec<AtBarrier>,
    rounds: u32,
    /// Over all rounds.
    arrivals: u64,
    passes: u64,
    /// When the last one so far arrived.
    pub(super) came: Time,
    /// By CTAs that have ended, for each other.
    pub(super) waited_ps: u128,
    arrive: Time,
    poll: Time,
    leave: Time,
}

/// Where a CTA is between two barriers.
#[derive(Clone, Copy, Debug)]
struct AtBarrier {
    begun: Time,
    work: Time,
    /// Barriers it has passed.
    passed: u32,
    /// It has arrived at the next one, and asks again and again whether all have.
    polls: bool,
    /// The word has its request: its step is due when that has been served, and not when it reaches the word.
    asked: bool,
}

impl Barrier {
    pub(super) fn new(rounds: u32, ctas: u64, device: &Device) -> Self {
        let time = |cycles: f64| Time(device.clock.cycles_to_ps(cycles).round() as u64);
        let cta = AtBarrier { begun: Time::ZERO, work: Time::ZERO, passed: 0, polls: false, asked: false };
        Self {
            word: PolledWord::new(device),
            ctas: vec![cta; ctas as usize],
            rounds,
            arrivals: 0,
            passes: 0,
            came: Time::ZERO,
            waited_ps: 0,
            arrive: time(device.sync.barrier_arrive_cycles),
            // A poll that took no time at all would come back at the same moment for ever.
            poll: time(device.sync.barrier_poll_cycles).max(Time(1)),
            leave: time(device.sync.barrier_leave_cycles),
        }
    }

    pub(super) fn begin(&mut self, cta: u32, sm: SmId, at: Time, work: Time) -> Time {
        let state = &mut self.ctas[cta as usize];
        (state.begun, state.work) = (at, work);
        if self.rounds == 0 { at + work } else { at + work + self.arrive + self.word.way(sm) }
    }

    /// A CTA's arrival or poll has reached the word or been served there, or it has left the last barrier. Puts into `woken`
    /// who gets its place in the word's queue, and when that one will have been served.
    pub(super) fn next(&mut self, cta: u32, place: Place, now: Time, woken: &mut Vec<(Time, Place)>) -> Next {
        let count = self.ctas.len() as u64;
        let state = &mut self.ctas[cta as usize];
        if state.passed == self.rounds {
            let worked = u128::from(state.work.0) * u128::from(self.rounds.max(1));
            self.waited_ps += u128::from(now.since(state.begun).0).saturating_sub(worked);
            return Next::End;
        }
        if !state.asked {
            let request = if state.polls { Request::Load } else { Request::Atomic };
            state.asked = true;
            return self.word.ask(request, place, now).map_or(Next::Waits, Next::At);
        }
        state.asked = false;
        let way = self.word.way(place.sm());
        let answer = now + way;
        let mut next = answer + self.poll + way;
        if !state.polls {
            state.polls = true;
            self.arrivals += 1;
            self.came = now;
        } else if self.arrivals >= (u64::from(state.passed) + 1) * count {
            state.polls = false;
            state.passed += 1;
            self.passes += 1;
            let left = answer + self.leave;
            let last = state.passed == self.rounds;
            next = if last { left } else { left + state.work + self.arrive + way };
        }
        woken.extend(self.word.served(now));
        Next::At(next)
    }

    /// CTAs that have arrived at the next barrier, and how many it takes.
    pub(super) fn arrived(&self) -> (u64, u64) {
        let count = self.ctas.len() as u64;
        (self.arrivals % count, count)
    }

    /// CTAs whose next step is a poll, and whether that lets one pass.
    pub(super) fn polls(&self) -> (u64, bool) {
        let count = self.ctas.len() as u64;
        (self.arrivals - self.passes - self.word.loads_outside(), self.arrivals / count * count > self.passes)
    }
}
