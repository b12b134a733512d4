//! Coalescing: SMs of a GPC that ask for a line while another's request for it is on its way share that request.

use super::l2::hash;
use crate::engine::Time;

/// Requests of one GPC that are on their way: others for the same block join them.
#[derive(Debug)]
pub(super) struct InFlight {
    entries: Vec<Request>,
    sets: usize,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    block: u64,
    done: Time,
    sharers: u32,
}

/// Requests whose blocks are hashed to the same place.
const REQUEST_WAYS: usize = 8;

impl InFlight {
    pub(super) fn new(requests: usize) -> Self {
        let sets = (requests / REQUEST_WAYS).next_power_of_two();
        let none = Request { block: u64::MAX, done: Time::ZERO, sharers: 0 };
        Self { entries: vec![none; sets * REQUEST_WAYS], sets }
    }

    /// Joins a request that is on its way, if it takes one more: when it is done. Else the place that [`Self::sent`] takes.
    #[inline]
    pub(super) fn join(&mut self, block: u64, now: Time, most: u32) -> Result<Time, usize> {
        let first = (hash(block) as usize & (self.sets - 1)) * REQUEST_WAYS;
        let mut place = first;
        for i in first..first + REQUEST_WAYS {
            let request = self.entries[i];
            if request.block == block {
                if request.done > now && request.sharers < most {
                    self.entries[i].sharers += 1;
                    return Ok(request.done);
                }
                return Err(i);
            }
            if request.done < self.entries[place].done {
                place = i;
            }
        }
        Err(place)
    }

    /// A request of its own is sent for a block, and done at a time.
    #[inline]
    pub(super) fn sent(&mut self, place: usize, block: u64, done: Time) {
        self.entries[place] = Request { block, done, sharers: 1 };
    }
}
