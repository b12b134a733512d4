//! Coalescing: SMs of a GPC that ask for a line while another's request for it is on its way share that request.

use super::l2::hash;
use crate::engine::Time;

/// Requests of one GPC that are on their way: others for the same block join them.
#[derive(Debug)]
pub(super) struct InFlight {
    sets: Vec<[Request; REQUEST_WAYS]>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    /// The block, below the number of SMs that share the request.
    shared: u64,
    done: Time,
}

/// Requests that lie at the same place: four of them are a cache line of most hosts.
const REQUEST_WAYS: usize = 4;
/// Blocks of a page lie at places next to each other.
const NEIGHBOURS: u64 = 32;
/// Blocks have 55 bits, and so a byte is left to count with, which is enough for every valid device.
const ONE_SHARES: u64 = 1 << 56;

impl InFlight {
    /// Room for twice as many requests, so that few are in each other's way.
    pub(super) fn new(requests: usize) -> Self {
        let none = Request { shared: u64::MAX, done: Time::ZERO };
        Self { sets: vec![[none; REQUEST_WAYS]; (2 * requests / REQUEST_WAYS).next_power_of_two()] }
    }

    /// Joins a request that is on its way, if it takes one more: when it is done. Else the place that [`Self::sent`] takes.
    #[inline]
    pub(super) fn join(&mut self, block: u64, now: Time, most: u64) -> Result<Time, Place> {
        let place = hash(block / NEIGHBOURS) + block % NEIGHBOURS;
        let set = place as usize & (self.sets.len() - 1);
        let requests = &mut self.sets[set];
        let mut way = 0;
        for i in 0..REQUEST_WAYS {
            let Request { shared, done } = requests[i];
            if shared % ONE_SHARES == block {
                if done > now && shared / ONE_SHARES < most {
                    requests[i].shared += ONE_SHARES;
                    return Ok(done);
                }
                return Err(Place { set, way: i });
            }
            way = if done < requests[way].done { i } else { way };
        }
        Err(Place { set, way })
    }

    /// A request of its own is sent for a block, and done at a time.
    #[inline]
    pub(super) fn sent(&mut self, place: Place, block: u64, done: Time) {
        self.sets[place.set][place.way] = Request { shared: block + ONE_SHARES, done };
    }
}

/// Where a request is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    set: usize,
    way: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_may_share_a_request_that_is_on_its_way() {
        let mut requests = InFlight::new(64);
        let place = requests.join(7, Time(0), 3).unwrap_err();
        requests.sent(place, 7, Time(100));
        assert_eq!([(); 2].map(|()| requests.join(7, Time(50), 3).ok()), [Some(Time(100)); 2]);
        assert!(requests.join(7, Time(50), 3).is_err(), "three share it");
        let place = requests.join(7, Time(50), 3).unwrap_err();
        requests.sent(place, 7, Time(150));
        assert_eq!(requests.join(7, Time(60), 3).ok(), Some(Time(150)));
        assert!(requests.join(7, Time(150), 3).is_err(), "it has come");
        assert!(requests.join(8, Time(60), 3).is_err());
    }

    #[test]
    fn the_request_that_is_done_first_makes_room() {
        // All places are one.
        let mut requests = InFlight::new(REQUEST_WAYS / 2);
        for (block, done) in [(1, 40), (2, 10), (3, 30), (4, 20), (5, 50)] {
            let place = requests.join(block, Time(0), 2).unwrap_err();
            requests.sent(place, block, Time(done));
        }
        let joined = [1, 2, 3, 4, 5].map(|block| requests.join(block, Time(0), 2).is_ok());
        assert_eq!(joined, [true, false, true, true, true]);
    }
}
