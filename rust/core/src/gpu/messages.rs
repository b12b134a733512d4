//! How the ends of CTAs wait for the dispatcher.
//!
//! The server takes one at a time ([`Hardware`](super::policy::hardware)). Where several wait, it goes round the GPCs, and in each
//! it takes one end from every part of [`TPCS_PER_PART`] TPCs that has one: so CTAs that follow each other in the grid are spread
//! over a few GPCs, even if those before them ended GPC by GPC.

use std::collections::VecDeque;

use super::groups::SMS_PER_TPC;
use super::sm::Place;
use crate::device::Device;
use crate::engine::Time;
use crate::ids::{IdVec, SmId};

/// Of the TPCs of a GPC, neighbours that the dispatcher takes one end from in a visit. It was seen in the order in which an H200
/// gives CTAs to a full machine that ends at once (`reference/h200_holdout/settle/turns.parquet`).
const TPCS_PER_PART: usize = 3;

/// The end of a CTA, on its way to the dispatcher.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// When it has been taken, if none is taken before it.
    pub(crate) earliest: Time,
    pub(crate) place: Place,
    /// Slots of the same SM on which all warps but one have ended by the time at which this one was left.
    pub(crate) nearly_free: u64,
}

/// Those that wait, and whose turn it is.
#[derive(Debug)]
pub(crate) struct Messages {
    /// Of each part of a GPC, in order of the time from which they wait.
    waiting: Vec<VecDeque<Message>>,
    part_of: IdVec<SmId, u16>,
    busy: Parts,
    next: usize,
}

/// Those parts of GPCs in which any waits, as bits.
#[derive(Debug)]
struct Parts(Vec<u64>);

impl Parts {
    fn none_of(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    #[inline]
    fn insert(&mut self, part: usize) {
        self.0[part / 64] |= 1 << (part % 64);
    }

    #[inline]
    fn remove(&mut self, part: usize) {
        self.0[part / 64] &= !(1 << (part % 64));
    }

    /// The first of them from `from` on.
    #[inline]
    fn first(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.0.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.0.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}

impl Messages {
    pub(crate) fn new(device: &Device) -> Self {
        let mut part_of = IdVec::filled(0, device.sm_count());
        let mut parts = 0;
        for group in device.topology.gpcs.iter().flat_map(|gpc| &gpc.groups) {
            // Left-over TPCs belong to different GPCs.
            let tpcs = if group.is_left_over() { 1 } else { TPCS_PER_PART };
            for part in group.sms.chunks(tpcs * SMS_PER_TPC) {
                for &sm in part {
                    part_of[sm] = parts;
                }
                parts += 1;
            }
        }
        Self {
            waiting: vec![VecDeque::new(); usize::from(parts)],
            part_of,
            busy: Parts::none_of(parts.into()),
            next: 0,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, message: Message) {
        let part = usize::from(self.part_of[message.place.sm()]);
        self.busy.insert(part);
        let queue = &mut self.waiting[part];
        if queue.back().is_none_or(|last| last.earliest <= message.earliest) {
            queue.push_back(message);
        } else {
            let before = queue.partition_point(|other| other.earliest <= message.earliest);
            queue.insert(before, message);
        }
    }

    /// The one that has been taken at `at`: that of the next part in turn of which one can have been.
    #[inline]
    pub(crate) fn take(&mut self, at: Time) -> Option<Message> {
        let can = |&part: &usize| self.waiting[part].front().is_some_and(|first| first.earliest <= at);
        let from = |first| std::iter::successors(self.busy.first(first), |part| self.busy.first(part + 1));
        let part = from(self.next).find(can).or_else(|| from(0).find(can))?;
        self.next = part + 1;
        let queue = &mut self.waiting[part];
        let message = queue.pop_front();
        if queue.is_empty() {
            self.busy.remove(part);
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::catalogue;

    /// Ends on these SMs of an H200, the first slot of each, at these times: the order in which they are taken from 100 ps on, one
    /// each 10 ps.
    fn taken(ends: &[(u16, u64)]) -> Vec<u16> {
        let mut messages = Messages::new(&catalogue::device("h200").expect("the catalogue has it"));
        for &(sm, earliest) in ends {
            messages.push(Message { earliest: Time(earliest), place: Place::new(SmId(sm), 0), nearly_free: 0 });
        }
        let times = (0..ends.len() as u64).map(|turn| Time(100 + 10 * turn));
        times.filter_map(|at| messages.take(at)).map(|message| message.place.sm().0).collect()
    }

    #[test]
    fn gpcs_take_turns_with_an_end_of_each_third() {
        // The second GPC has SMs 2, 3, 18, 19, 34, 35 in its first third, 50 in its second, 92 in its last; 4 is in the next GPC.
        let ends = [2, 3, 18, 50, 51, 92, 93, 4, 5].map(|sm| (sm, 100));
        assert_eq!(taken(&ends), [2, 50, 92, 4, 3, 51, 93, 5, 18]);
    }

    #[test]
    fn left_over_tpcs_have_turns_of_their_own() {
        assert_eq!(taken(&[124, 125, 126, 127].map(|sm| (sm, 100))), [124, 126, 125, 127]);
    }

    #[test]
    fn who_has_not_come_yet_is_passed_over() {
        assert_eq!(taken(&[(2, 115), (4, 100), (6, 100), (3, 120)]), [4, 6, 2, 3]);
        assert_eq!(taken(&[(2, 130), (3, 100), (18, 110)]), [3, 18]);
    }
}
