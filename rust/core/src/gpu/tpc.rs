//! The TPCs: the unit that the two SMs of each share, through which CTAs come out and go in.
//!
//! It does one thing at a time. Letting a CTA out takes longer the more CTAs of its SM are out and have no successor yet, and
//! goes before letting one in: so when all CTAs of an SM end together, none of the next ones starts before the last has been let
//! out. Of the whole die only so many ends can be on their way to the dispatcher or wait there: then no more are let out until it
//! has heard of one, and the next ones come in. Behind a CTA of several warps the next of its SM follows at a distance, in which
//! one can come in.
//!
//! Times here are those of the CTA's end and of the dispatcher's decision: the ways between SM, unit and dispatcher belong to
//! the policy.

use std::collections::VecDeque;

use super::dispatcher::Placement;
use super::groups::SMS_PER_TPC;
use super::sm::Place;
use crate::device::Device;
use crate::engine::Time;
use crate::ids::{IdVec, SmId};

/// A CTA that has ended and waits to be let out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    pub(crate) place: Place,
    pub(crate) warps: u32,
    /// Whether it is the first of its launch that ends on its SM.
    pub(crate) cold: bool,
    /// Slots of the same SM on which all warps but one have ended.
    pub(crate) nearly_free: u64,
}

/// What a unit has just begun, and when it is done with it.
#[derive(Debug)]
pub(crate) enum Passage {
    Out(Leaving, Time),
    In(Placement, Time),
}

/// The unit of one TPC.
#[derive(Debug, Default)]
struct Unit {
    /// When it is done with what it has begun.
    free: Time,
    /// Whether there is an event at which it looks for what is next.
    looks: bool,
    sms: [Port; SMS_PER_TPC],
    /// CTAs of both that wait to be let out.
    leaving: u32,
    /// Which SM's turn it is.
    turn: usize,
    /// In the order in which they are sent.
    entering: VecDeque<Placement>,
    /// Whether it waits until the dispatcher has heard of an end.
    blocked: bool,
}

/// What concerns one of its SMs.
#[derive(Debug, Default)]
struct Port {
    leaving: VecDeque<Leaving>,
    /// When the last one that was let out leaves room for the next.
    ready: Time,
    /// CTAs that are out and have no successor, since the SM was empty.
    out: u64,
}

/// The units of all TPCs.
#[derive(Debug)]
pub(crate) struct Tpcs {
    units: Vec<Unit>,
    /// The unit of each SM times [`SMS_PER_TPC`], and which of its SMs it is.
    place_of: IdVec<SmId, u16>,
    out: Time,
    out_each: Time,
    out_gap: Time,
    r#in: Time,
    in_warp: Time,
    /// Ends that the dispatcher has not heard of, and how many of them there can be.
    unheard: u32,
    most_unheard: u32,
    /// Units that wait until it has, in the order in which they came to wait.
    blocked: VecDeque<u16>,
}

impl Unit {
    /// The SM of which one can be let out.
    #[inline]
    fn next_out(&self, now: Time) -> Option<usize> {
        if self.leaving == 0 {
            return None;
        }
        let mut ports = (0..SMS_PER_TPC).map(|i| (self.turn + i) % SMS_PER_TPC);
        ports.find(|&port| !self.sms[port].leaving.is_empty() && self.sms[port].ready <= now)
    }
}

impl Tpcs {
    pub(crate) fn new(device: &Device) -> Self {
        let time = |cycles: f64| Time(device.clock.cycles_to_ps(cycles).round() as u64);
        let dispatch = &device.dispatch;
        let takes = [
            dispatch.out_cycles,
            dispatch.out_each_cycles,
            dispatch.out_gap_cycles,
            dispatch.in_cycles,
            dispatch.in_warp_cycles,
        ];
        Self::of_units(units(device), takes.map(time), dispatch.unheard_ends as u32)
    }

    /// Units that take no time.
    pub(crate) fn ideal(device: &Device) -> Self {
        Self::of_units(units(device), [Time::ZERO; 5], u32::MAX)
    }

    fn of_units(
        (units, place_of): (Vec<Unit>, IdVec<SmId, u16>),
        [out, out_each, out_gap, r#in, in_warp]: [Time; 5],
        most_unheard: u32,
    ) -> Self {
        let blocked = VecDeque::new();
        Self { units, place_of, out, out_each, out_gap, r#in, in_warp, unheard: 0, most_unheard, blocked }
    }

    /// The unit of an SM, and which of its SMs it is.
    #[inline]
    pub(crate) fn of(&self, sm: SmId) -> (usize, usize) {
        let place = usize::from(self.place_of[sm]);
        (place / SMS_PER_TPC, place % SMS_PER_TPC)
    }

    /// Whether the dispatcher has to hear of an end before another CTA can be let out.
    #[inline]
    fn is_full(&self) -> bool {
        self.unheard >= self.most_unheard
    }

    /// A CTA of an SM has ended: when it is out, if it need not wait.
    #[inline]
    pub(crate) fn leave(&mut self, sm: SmId, warps: u32, now: Time) -> Option<Time> {
        let (tpc, port) = self.of(sm);
        let unit = &mut self.units[tpc];
        let ready = unit.sms[port].leaving.is_empty() && unit.sms[port].ready <= now;
        let at_once = ready && unit.free <= now && !self.is_full();
        at_once.then(|| self.begin_out(tpc, port, warps, now))
    }

    /// A CTA has ended and waits to be let out.
    pub(crate) fn wait_to_leave(&mut self, cta: Leaving) {
        let (tpc, port) = self.of(cta.place.sm());
        self.units[tpc].leaving += 1;
        self.units[tpc].sms[port].leaving.push_back(cta);
    }

    /// An SM has become empty.
    pub(crate) fn emptied(&mut self, sm: SmId) {
        let (tpc, port) = self.of(sm);
        self.units[tpc].sms[port].out = 0;
    }

    /// A CTA is sent to an SM: when it is in, if it need not wait.
    #[inline]
    pub(crate) fn enter(&mut self, sm: SmId, warps: u32, now: Time) -> Option<Time> {
        let (tpc, port) = self.of(sm);
        let unit = &self.units[tpc];
        let idle = unit.free <= now && unit.entering.is_empty();
        let at_once = idle && (self.is_full() || self.units[tpc].next_out(now).is_none());
        at_once.then(|| self.begin_in(tpc, port, warps, now))
    }

    /// A CTA waits to be let in, or to be sent.
    pub(crate) fn wait_to_enter(&mut self, placement: Placement) {
        let (tpc, _) = self.of(placement.place.sm());
        let entering = &mut self.units[tpc].entering;
        let before = entering.partition_point(|other| other.sent <= placement.sent);
        entering.insert(before, placement);
    }

    /// The dispatcher has heard of an end: which TPC waits for that and is to look for what is next.
    #[inline]
    pub(crate) fn heard(&mut self) -> Option<usize> {
        self.unheard -= 1;
        while let Some(tpc) = self.blocked.pop_front().map(usize::from) {
            let unit = &mut self.units[tpc];
            unit.blocked = false;
            // Some have found room meanwhile.
            if unit.leaving > 0 {
                return Some(tpc);
            }
        }
        None
    }

    /// When a unit has to look for what is next, if it has to and nobody has been told yet.
    #[inline]
    pub(crate) fn looks_at(&mut self, tpc: usize, now: Time) -> Option<Time> {
        let full = self.is_full();
        let unit = &mut self.units[tpc];
        if unit.looks {
            return None;
        }
        if unit.leaving == 0 && unit.entering.is_empty() {
            return None;
        }
        let mut out = unit.sms.iter().filter(|port| !port.leaving.is_empty()).map(|port| port.ready).min();
        if out.is_some() && full {
            out = None;
            if !std::mem::replace(&mut unit.blocked, true) {
                self.blocked.push_back(tpc as u16);
            }
        }
        let sent = unit.entering.front().map(|placement| placement.sent);
        let at = out.into_iter().chain(sent).min()?;
        unit.looks = true;
        Some(at.max(unit.free).max(now))
    }

    /// The time at which a unit looks for what is next has come: what it begins.
    pub(crate) fn next(&mut self, tpc: usize, now: Time) -> Option<Passage> {
        let full = self.is_full();
        let unit = &mut self.units[tpc];
        unit.looks = false;
        if unit.free > now {
            return None;
        }
        let port = unit.next_out(now).filter(|_| !full);
        if let Some((port, cta)) = port.and_then(|port| Some((port, unit.sms[port].leaving.pop_front()?))) {
            unit.leaving -= 1;
            let out = self.begin_out(tpc, port, cta.warps, now);
            return Some(Passage::Out(cta, out));
        }
        unit.entering.front().filter(|placement| placement.sent <= now)?;
        let placement = unit.entering.pop_front()?;
        let (_, port) = self.of(placement.place.sm());
        let entered = self.begin_in(tpc, port, placement.warps, now);
        Some(Passage::In(placement, entered))
    }

    #[inline]
    fn begin_out(&mut self, tpc: usize, port: usize, warps: u32, now: Time) -> Time {
        let unit = &mut self.units[tpc];
        self.unheard += 1;
        unit.turn = (port + 1) % SMS_PER_TPC;
        let port = &mut unit.sms[port];
        port.out += 1;
        unit.free = now + self.out + Time(self.out_each.0 * port.out);
        port.ready = if warps > 1 { unit.free + self.out_gap } else { unit.free };
        unit.free
    }

    #[inline]
    fn begin_in(&mut self, tpc: usize, port: usize, warps: u32, now: Time) -> Time {
        let unit = &mut self.units[tpc];
        let port = &mut unit.sms[port];
        port.out = port.out.saturating_sub(1);
        // Its first warp starts when it is in; the others keep the unit a little longer.
        let entered = now + self.r#in + self.in_warp;
        unit.free = now + self.r#in + Time(self.in_warp.0 * u64::from(warps));
        entered
    }
}

/// The units of a device, and the place of each SM. The SMs of a group are listed TPC by TPC.
fn units(device: &Device) -> (Vec<Unit>, IdVec<SmId, u16>) {
    let mut place_of = IdVec::filled(0, device.sm_count());
    let groups = device.topology.gpcs.iter().flat_map(|gpc| &gpc.groups);
    let tpcs = groups.flat_map(|group| group.sms.chunks(SMS_PER_TPC)).zip(0_u16..);
    let units = tpcs.map(|(sms, tpc)| {
        for (&sm, port) in sms.iter().zip(0_u16..) {
            place_of[sm] = tpc * SMS_PER_TPC as u16 + port;
        }
        Unit::default()
    });
    (units.collect(), place_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::KernelId;

    /// One TPC. Out takes 100, and 10 for each that is out; in takes 50, and 1 a warp.
    fn tpc(most_unheard: u32) -> Tpcs {
        let mut place_of = IdVec::filled(0, 2);
        place_of[SmId(1)] = 1;
        Tpcs::of_units((vec![Unit::default()], place_of), [100, 10, 30, 50, 1].map(Time), most_unheard)
    }

    fn entering(sm: u16, warps: u32) -> Placement {
        Placement {
            kernel: KernelId(0),
            place: Place::new(SmId(sm), 0),
            decided: Time::ZERO,
            sent: Time::ZERO,
            warps,
            cold: false,
            work: Time::ZERO,
            first_round: false,
        }
    }

    fn leaving(sm: u16, slot: u32, warps: u32) -> Leaving {
        Leaving { place: Place::new(SmId(sm), slot), warps, cold: false, nearly_free: 0 }
    }

    /// All that the unit does from `now` on: whether it is out, of which SM, and when it is done.
    fn rest(tpcs: &mut Tpcs, mut now: Time) -> Vec<(bool, u16, u64)> {
        let mut done = Vec::new();
        while let Some(at) = tpcs.looks_at(0, now) {
            now = at;
            match tpcs.next(0, now) {
                Some(Passage::Out(cta, at)) => done.push((true, cta.place.sm().0, at.0)),
                Some(Passage::In(placement, at)) => done.push((false, placement.place.sm().0, at.0)),
                None => {}
            }
        }
        done
    }

    #[test]
    fn who_finds_it_idle_need_not_wait() {
        let mut tpcs = tpc(9);
        assert_eq!(tpcs.leave(SmId(0), 1, Time(5)), Some(Time(5 + 110)));
        assert_eq!(tpcs.leave(SmId(1), 1, Time(114)), None);
        assert_eq!(tpcs.leave(SmId(1), 1, Time(115)), Some(Time(115 + 110)));
        assert_eq!(tpcs.enter(SmId(0), 4, Time(300)), Some(Time(351)));
        assert_eq!(tpcs.enter(SmId(1), 4, Time(353)), None, "the other warps are not in yet");
        assert_eq!(tpcs.enter(SmId(1), 4, Time(354)), Some(Time(405)));
    }

    #[test]
    fn out_goes_before_in_by_turns_of_the_sms_and_takes_longer_the_more_are_out() {
        let mut tpcs = tpc(9);
        assert_eq!(tpcs.leave(SmId(0), 1, Time(0)), Some(Time(110)));
        tpcs.wait_to_enter(entering(0, 1));
        for (sm, slot) in [(0, 1), (0, 2), (1, 0)] {
            tpcs.wait_to_leave(leaving(sm, slot, 1));
        }
        let expected = [(true, 1, 220), (true, 0, 340), (true, 0, 470), (false, 0, 521)];
        assert_eq!(rest(&mut tpcs, Time(1)), expected);
        // Of the first SM two are left without a successor.
        assert_eq!(tpcs.leave(SmId(0), 1, Time(600)), Some(Time(600 + 130)));
    }

    #[test]
    fn an_sm_that_is_empty_counts_anew() {
        let mut tpcs = tpc(9);
        tpcs.leave(SmId(0), 1, Time(0));
        tpcs.leave(SmId(0), 1, Time(200));
        tpcs.emptied(SmId(0));
        assert_eq!(tpcs.enter(SmId(0), 1, Time(1_000)), Some(Time(1_051)));
        assert_eq!(tpcs.leave(SmId(0), 1, Time(2_000)), Some(Time(2_110)));
    }

    #[test]
    fn who_is_sent_later_comes_in_later_and_one_after_the_other() {
        let mut tpcs = tpc(9);
        for sm in [0, 1] {
            tpcs.wait_to_enter(Placement { sent: Time(240), ..entering(sm, 1) });
        }
        tpcs.wait_to_enter(Placement { sent: Time(100), ..entering(0, 1) });
        assert_eq!(rest(&mut tpcs, Time(10)), [(false, 0, 151), (false, 0, 291), (false, 1, 342)]);
    }

    #[test]
    fn between_two_of_several_warps_one_comes_in() {
        let mut tpcs = tpc(9);
        assert_eq!(tpcs.leave(SmId(0), 2, Time(0)), Some(Time(110)));
        tpcs.wait_to_leave(leaving(0, 1, 2));
        tpcs.wait_to_enter(entering(1, 2));
        assert_eq!(rest(&mut tpcs, Time(1)), [(false, 1, 161), (true, 0, 162 + 120)]);
    }

    #[test]
    fn none_is_let_out_that_the_dispatcher_could_not_hear_of() {
        let mut tpcs = tpc(2);
        tpcs.leave(SmId(0), 1, Time(0));
        for (sm, slot) in [(0, 1), (0, 2), (1, 0)] {
            tpcs.wait_to_leave(leaving(sm, slot, 1));
        }
        tpcs.wait_to_enter(entering(0, 1));
        assert_eq!(rest(&mut tpcs, Time(1)), [(true, 1, 220), (false, 0, 271)]);
        assert_eq!(tpcs.heard(), Some(0));
        assert_eq!(rest(&mut tpcs, Time(500)), [(true, 0, 610)]);
        assert_eq!(tpcs.heard(), Some(0));
        assert_eq!(tpcs.heard(), None, "it has none left");
    }

    #[test]
    fn who_has_found_room_meanwhile_is_passed_over() {
        let mut tpcs = tpc(1);
        tpcs.units.push(Unit::default());
        tpcs.place_of = IdVec::filled(2, 2);
        tpcs.place_of[SmId(0)] = 0;
        tpcs.leave(SmId(0), 1, Time(0));
        for sm in [0, 1] {
            tpcs.wait_to_leave(leaving(sm, 1, 1));
            assert_eq!(tpcs.looks_at(sm.into(), Time(200)), None, "nobody else can be let out");
        }
        tpcs.units[0].sms[0].leaving.clear();
        tpcs.units[0].leaving = 0;
        assert_eq!(tpcs.heard(), Some(1));
    }
}
