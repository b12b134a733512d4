//! The port through which an SM takes in what it has loaded.
//!
//! What comes from L2 at once is a steady flow, and how it shares the port is part of latency under load. What CTAs wait for
//! together, because it comes from DRAM or is on its way for somebody else, comes for all of them at the same moment, and goes
//! through the port one after the other.

use crate::engine::Time;

/// When one SM's port is taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Port {
    /// From and until; in order, and none reaches into the next. One for each CTA that waits, at most.
    taken: Vec<(Time, Time)>,
}

impl Port {
    /// Takes in what is there at `ready` and passes in `takes`; when it has passed. Requests are given in the order in which
    /// they were made, and need not come back in it: one takes the first gap that is wide enough.
    #[inline]
    pub(crate) fn pass(&mut self, now: Time, ready: Time, takes: Time) -> Time {
        let passed = self.taken.iter().take_while(|&&(_, until)| until <= now).count();
        if passed > 0 {
            self.taken.drain(..passed);
        }
        // Nobody in the way: it has passed when it is ready.
        let mut from = Time(ready.0.saturating_sub(takes.0));
        let mut place = self.taken.len();
        for (i, &(taken_from, until)) in self.taken.iter().enumerate() {
            if until <= from {
                continue;
            }
            if taken_from >= from + takes {
                place = i;
                break;
            }
            from = until;
        }
        self.taken.insert(place, (from, from + takes));
        from + takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Time = Time::ZERO;

    #[test]
    fn what_comes_alone_has_passed_when_it_is_ready() {
        assert_eq!(Port::default().pass(NONE, Time(500), Time(60)), Time(500));
    }

    #[test]
    fn what_comes_together_passes_one_after_the_other() {
        let mut port = Port::default();
        let passed: Vec<u64> = (0..3).map(|_| port.pass(NONE, Time(500), Time(60)).0).collect();
        assert_eq!(passed, [500, 560, 620]);
    }

    #[test]
    fn what_comes_earlier_than_what_was_asked_for_before_does_not_wait_for_it() {
        let mut port = Port::default();
        port.pass(NONE, Time(800), Time(60));
        assert_eq!(port.pass(NONE, Time(300), Time(60)), Time(300));
        // The gap before 740 is too narrow for one that is ready at 790.
        assert_eq!(port.pass(NONE, Time(790), Time(60)), Time(860));
    }

    #[test]
    fn what_has_passed_is_forgotten() {
        let mut port = Port::default();
        for i in 0..100 {
            port.pass(Time(i * 100), Time(i * 100 + 50), Time(10));
        }
        assert_eq!(port.taken.len(), 1);
    }
}
