//! The event queue: first by time, then first in, first out.
//!
//! Events far ahead lie unsorted. When time comes near, they are dealt into buckets of equal width, and a bucket is sorted
//! only once it is the next. Each event is moved a constant number of times, whatever the queue's size, where a heap moves
//! it a logarithmic number of times; for the thousands of resident CTAs of a large die that is two to three times faster.

use super::time::Time;

/// Payloads are small numbers, packed with the sequence number into one word.
const PAYLOAD_BITS: u32 = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: Time,
    /// Sequence number above, payload below: comparing it compares the sequence.
    key: u64,
}

/// How many buckets one dealing makes at most.
const MAX_BUCKETS: usize = 4096;
/// How many events a bucket should get, on average.
const BUCKET_FILL: usize = 4;
/// How many events one dealing takes at least, if there are as many.
const MIN_DEAL: usize = 64;

/// A queue of events that carry a small number.
#[derive(Debug, Default)]
pub struct EventQueue {
    /// The bucket in use, latest first, so that the next is popped from its end.
    near: Vec<Entry>,
    /// The buckets behind it; those before `cursor` are empty.
    buckets: Vec<Vec<Entry>>,
    cursor: usize,
    /// Start of `buckets[0]`, and the width of each as a power of two.
    origin: u64,
    shift: u32,
    /// Events at or beyond the end of the last bucket.
    far: Vec<Entry>,
    sequence: u64,
    now: Time,
    latest: Time,
    len: usize,
}

impl EventQueue {
    /// An empty queue at time zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// The largest payload.
    pub const MAX_PAYLOAD: u32 = (1 << PAYLOAD_BITS) - 1;

    /// The latest time of any event so far.
    pub fn latest(&self) -> Time {
        self.latest
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event.
    ///
    /// # Panics
    /// If `time` is before the last popped event's.
    #[inline]
    pub fn push(&mut self, time: Time, payload: u32) {
        assert!(time >= self.now, "an event at {time} was pushed after {}", self.now);
        debug_assert!(payload <= Self::MAX_PAYLOAD);
        let entry = Entry { time, key: self.sequence << PAYLOAD_BITS | u64::from(payload) };
        self.sequence += 1;
        self.latest = self.latest.max(time);
        self.len += 1;
        let bucket = match time.0.checked_sub(self.origin) {
            Some(ahead) => (ahead >> self.shift) as usize,
            None => 0,
        };
        if bucket >= self.buckets.len() {
            self.far.push(entry);
        } else if bucket >= self.cursor {
            self.buckets[bucket].push(entry);
        } else {
            let at = self.near.partition_point(|other| *other > entry);
            self.near.insert(at, entry);
        }
    }

    /// The time of the next event.
    #[inline]
    pub fn peek(&mut self) -> Option<Time> {
        if self.near.is_empty() && !self.advance() {
            return None;
        }
        self.near.last().map(|entry| entry.time)
    }

    /// Takes the next event: its time and payload.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, u32)> {
        if self.near.is_empty() && !self.advance() {
            return None;
        }
        let entry = self.near.pop()?;
        debug_assert!(entry.time >= self.now);
        self.now = entry.time;
        self.len -= 1;
        Some((entry.time, entry.key as u32 & Self::MAX_PAYLOAD))
    }

    /// Makes the next bucket that holds events the near one; false if there is none.
    #[cold]
    #[inline(never)]
    fn advance(&mut self) -> bool {
        loop {
            while self.cursor < self.buckets.len() {
                let bucket = &mut self.buckets[self.cursor];
                self.cursor += 1;
                if !bucket.is_empty() {
                    std::mem::swap(&mut self.near, bucket);
                    self.near.sort_unstable_by(|a, b| b.cmp(a));
                    return true;
                }
            }
            if self.far.is_empty() {
                return false;
            }
            self.deal();
        }
    }

    /// Spreads the nearest of the far events over new buckets; the width follows from how densely these lie, so that a few
    /// events far ahead (a long-running kernel beside short ones) do not make every bucket wide.
    fn deal(&mut self) {
        let nearest = (self.far.len() / 4).max(MIN_DEAL).min(self.far.len());
        let (head, edge, _) = self.far.select_nth_unstable(nearest - 1);
        let last = edge.time.0;
        let first = head.iter().map(|entry| entry.time.0).min().unwrap_or(last);
        let wanted = (nearest / BUCKET_FILL).clamp(1, MAX_BUCKETS) as u64;
        let width = ((last - first) / wanted).max(1).next_power_of_two();
        self.shift = width.trailing_zeros();
        self.origin = first >> self.shift << self.shift;
        // Events that are pushed while these buckets are worked off mostly lie one residency ahead: room for them saves
        // them the way through the far list.
        let count = ((last - self.origin) >> self.shift) as usize + 1;
        let count = (8 * count).min(2 * MAX_BUCKETS).max(count);
        self.buckets.resize_with(count, Vec::new);
        self.cursor = 0;
        let mut kept = 0;
        for i in 0..self.far.len() {
            let entry = self.far[i];
            let bucket = ((entry.time.0 - self.origin) >> self.shift) as usize;
            if bucket < count {
                self.buckets[bucket].push(entry);
            } else {
                self.far[kept] = entry;
                kept += 1;
            }
        }
        self.far.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ties_leave_first_in_first_out() {
        let mut queue = EventQueue::new();
        for payload in [7, 3, 9, 1] {
            queue.push(Time(5), payload);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, payload)| payload).collect();
        assert_eq!(order, [7, 3, 9, 1]);
    }

    #[test]
    #[should_panic(expected = "was pushed after")]
    fn time_never_goes_back() {
        let mut queue = EventQueue::new();
        queue.push(Time(10), 0);
        queue.pop();
        queue.push(Time(9), 0);
    }

    proptest! {
        /// Whatever the mix of pushes and pops, near and far, the order is that of a sorted set.
        #[test]
        fn the_order_is_that_of_a_sorted_set(
            steps in prop::collection::vec((0..4_u32, 0..40_u32, any::<u64>()), 1..600),
        ) {
            let mut queue = EventQueue::new();
            let mut model = BTreeSet::new();
            let (mut now, mut sequence) = (0, 0_u64);
            for (kind, magnitude, random) in steps {
                if kind == 0 {
                    let expected: Option<(u64, u64, u32)> = model.pop_first();
                    prop_assert_eq!(queue.peek(), expected.map(|(time, _, _)| Time(time)));
                    let popped = queue.pop();
                    prop_assert_eq!(popped, expected.map(|(time, _, payload)| (Time(time), payload)));
                    now = expected.map_or(now, |(time, _, _)| time);
                } else {
                    let time = now + random % (1 << magnitude);
                    let payload = random as u32 & 0xff;
                    queue.push(Time(time), payload);
                    model.insert((time, sequence, payload));
                    sequence += 1;
                }
                prop_assert_eq!(queue.len(), model.len());
            }
            while let Some((time, _, payload)) = model.pop_first() {
                prop_assert_eq!(queue.pop(), Some((Time(time), payload)));
            }
            prop_assert!(queue.is_empty() && queue.pop().is_none());
        }
    }
}
