//! A word in L2 that CTAs of the whole die ask for: a serial server, half a round trip away.

use std::collections::VecDeque;

use super::sm::Place;
use crate::device::Device;
use crate::engine::Time;
use crate::ids::{IdVec, SmId};

/// One word in L2 and the way to it.
#[derive(Debug)]
pub(super) struct Word {
    atomic_service: Time,
    /// Half a round trip from each SM.
    ways: IdVec<SmId, Time>,
    free: Time,
}

impl Word {
    pub(super) fn new(device: &Device) -> Self {
        let timings = &device.sync;
        let time = |cycles: f64| Time(device.clock.cycles_to_ps(cycles).round() as u64);
        let spread = if device.l2.halves > 1 { timings.atomic_half_cycles } else { 0.0 };
        let mut ways = IdVec::filled(Time::ZERO, device.sm_count());
        // The word lies in the half that the first GPC is near to.
        let home = device.topology.gpcs.first().map_or(0, |gpc| gpc.half);
        for gpc in &device.topology.gpcs {
            let round_trip = timings.atomic_latency_cycles + if gpc.half == home { -spread } else { spread };
            gpc.sms().for_each(|sm| ways[sm] = time(round_trip.max(0.0) / 2.0));
        }
        Self { atomic_service: time(timings.atomic_service_cycles), ways, free: Time::ZERO }
    }

    #[inline]
    pub(super) fn way(&self, sm: SmId) -> Time {
        self.ways[sm]
    }

    /// An atomic reaches the word: when it has been served.
    #[inline]
    pub(super) fn serve(&mut self, arrival: Time) -> Time {
        self.free = self.free.max(arrival) + self.atomic_service;
        self.free
    }
}

/// What a request wants of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Atomic,
    Load,
}

/// A word that CTAs both add to and poll.
///
/// Its queue holds so many requests and serves them in the order in which they came. Those that find it full wait outside:
/// atomics in one line, loads in another, and whenever a place is free the two lines take turns. To go over from the one to
/// the other costs the word time, so that taking turns is slow.
#[derive(Debug)]
pub(super) struct PolledWord {
    word: Word,
    load_service: Time,
    change: Time,
    places: usize,
    queued: usize,
    /// What was let into the queue last.
    last: Request,
    outside: [VecDeque<Place>; 2],
}

impl PolledWord {
    pub(super) fn new(device: &Device) -> Self {
        let timings = &device.sync;
        let time = |cycles: f64| Time(device.clock.cycles_to_ps(cycles).round() as u64);
        Self {
            word: Word::new(device),
            load_service: time(timings.load_service_cycles),
            change: time(timings.change_cycles),
            places: timings.queued_requests as usize,
            queued: 0,
            last: Request::Atomic,
            outside: [VecDeque::new(), VecDeque::new()],
        }
    }

    #[inline]
    pub(super) fn way(&self, sm: SmId) -> Time {
        self.word.way(sm)
    }

    /// CTAs whose loads wait outside.
    pub(super) fn loads_outside(&self) -> u64 {
        self.outside[Request::Load as usize].len() as u64
    }

    /// A request reaches the word: when it will have been served, or nothing if it has to wait outside.
    #[inline]
    pub(super) fn ask(&mut self, request: Request, place: Place, now: Time) -> Option<Time> {
        if self.queued < self.places {
            return Some(self.admit(request, now));
        }
        self.outside[request as usize].push_back(place);
        None
    }

    /// A request has been served. Who gets its place in the queue, and when that one will have been served.
    #[inline]
    pub(super) fn served(&mut self, now: Time) -> Option<(Time, Place)> {
        self.queued -= 1;
        let turn = match self.last {
            Request::Atomic => [Request::Load, Request::Atomic],
            Request::Load => [Request::Atomic, Request::Load],
        };
        let next = turn.into_iter().find(|&request| !self.outside[request as usize].is_empty())?;
        let place = self.outside[next as usize].pop_front()?;
        Some((self.admit(next, now), place))
    }

    #[inline]
    fn admit(&mut self, request: Request, now: Time) -> Time {
        let change = if request == self.last { Time::ZERO } else { self.change };
        let service = match request {
            Request::Atomic => self.word.atomic_service,
            Request::Load => self.load_service,
        };
        self.last = request;
        self.queued += 1;
        self.word.free = self.word.free.max(now) + service + change;
        self.word.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::catalogue;

    const ATOMIC: u64 = 700;
    const LOAD: u64 = 100;
    const CHANGE: u64 = 1_000;

    fn word(places: usize) -> PolledWord {
        let device = catalogue::device("h200").expect("the catalogue has it");
        let mut word = PolledWord::new(&device);
        word.word.atomic_service = Time(ATOMIC);
        (word.load_service, word.change, word.places) = (Time(LOAD), Time(CHANGE), places);
        word
    }

    /// All requests come at once: when each is served, by the place that asked.
    fn served(mut word: PolledWord, requests: &[Request]) -> Vec<u64> {
        let mut at = vec![None; requests.len()];
        for (i, &request) in requests.iter().enumerate() {
            at[i] = word.ask(request, Place(i as u32), Time::ZERO);
        }
        let mut order: Vec<Time> = at.iter().flatten().copied().collect();
        let mut next = 0;
        while next < order.len() {
            if let Some((time, place)) = word.served(order[next]) {
                at[place.0 as usize] = Some(time);
                order.push(time);
            }
            next += 1;
        }
        at.into_iter().map(|time| time.expect("all are served").0).collect()
    }

    use Request::{Atomic, Load};

    #[test]
    fn one_kind_is_served_back_to_back_however_many_wait_outside() {
        assert_eq!(served(word(2), &[Atomic; 4]), [700, 1_400, 2_100, 2_800]);
    }

    #[test]
    fn a_queue_with_room_keeps_the_order_and_changes_once() {
        assert_eq!(served(word(8), &[Atomic, Atomic, Load, Load]), [700, 1_400, 2_500, 2_600]);
    }

    #[test]
    fn outside_a_full_queue_the_two_kinds_take_turns_and_each_turn_costs_a_change() {
        // The first is in the queue; then a load, an atomic, a load, an atomic, though both loads came last.
        let expected = [700, 3_500, 6_300, 1_800, 4_600];
        assert_eq!(served(word(1), &[Atomic, Atomic, Atomic, Load, Load]), expected);
    }

    #[test]
    fn loads_that_wait_outside_are_counted() {
        let mut word = word(1);
        for (i, request) in [Atomic, Load, Load, Atomic].into_iter().enumerate() {
            word.ask(request, Place(i as u32), Time::ZERO);
        }
        assert_eq!(word.loads_outside(), 2);
    }
}
