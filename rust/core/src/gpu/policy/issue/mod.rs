//! Which of the warps that could issue in a cycle does: one file for each answer.

mod greedy_oldest_cta;
mod greedy_then_oldest;
mod loose_round_robin;
mod oldest_first;
mod two_level;

use std::fmt::Debug;

use crate::device::IssuePolicy;

/// A warp of a sub-partition, as a policy sees it. Older CTAs are less, and within a CTA warps with lower numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WarpId {
    /// Which CTA, counted over all that came to the SM.
    pub(crate) cta: u32,
    /// Which of its warps.
    pub(crate) warp: u32,
}

/// Picks a warp, each cycle, for one sub-partition.
pub(crate) trait Issue: Debug + Send {
    /// Which of the warps that can issue now does, oldest first in `ready`, which has at least one; `last` issued before.
    /// None lets the slot pass.
    fn pick(&mut self, ready: &[WarpId], last: Option<WarpId>) -> Option<usize>;

    /// A warp has issued an instruction; `yields` if another one should be preferred to it next.
    fn issued(&mut self, _warp: WarpId, _yields: bool) {}

    /// A warp has ended.
    fn ended(&mut self, warp: WarpId) {
        self.waits(warp);
    }

    /// A warp has begun to wait for memory or a barrier.
    fn waits(&mut self, _warp: WarpId) {}

    /// The same policy in the same state.
    fn copied(&self) -> Box<dyn Issue>;
}

impl Clone for Box<dyn Issue> {
    fn clone(&self) -> Self {
        self.copied()
    }
}

/// The policy of a sub-partition.
pub(crate) fn policy(which: IssuePolicy) -> Box<dyn Issue> {
    match which {
        IssuePolicy::GreedyOldestCta => Box::new(greedy_oldest_cta::GreedyOldestCta::default()),
        IssuePolicy::GreedyThenOldest => Box::new(greedy_then_oldest::GreedyThenOldest),
        IssuePolicy::OldestFirst => Box::new(oldest_first::OldestFirst),
        IssuePolicy::LooseRoundRobin => Box::new(loose_round_robin::LooseRoundRobin),
        IssuePolicy::TwoLevel => Box::new(two_level::TwoLevel::default()),
    }
}

/// The first warp behind `last`, or the first of all.
fn next_after(ready: &[WarpId], last: Option<WarpId>) -> usize {
    let behind = ready.partition_point(|&warp| Some(warp) <= last);
    if behind == ready.len() { 0 } else { behind }
}

/// `last`, if it is ready.
fn again(ready: &[WarpId], last: Option<WarpId>) -> Option<usize> {
    ready.binary_search(&last?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICIES: [IssuePolicy; 5] = [
        IssuePolicy::GreedyOldestCta,
        IssuePolicy::GreedyThenOldest,
        IssuePolicy::OldestFirst,
        IssuePolicy::LooseRoundRobin,
        IssuePolicy::TwoLevel,
    ];

    fn warps(of: &[(u32, u32)]) -> Vec<WarpId> {
        of.iter().map(|&(cta, warp)| WarpId { cta, warp }).collect()
    }

    /// What is picked one after the other when all of `ready` stay ready, and all or no instructions yield.
    fn picked(which: IssuePolicy, ready: &[WarpId], yields: bool, turns: usize) -> Vec<(u32, u32)> {
        let mut policy = policy(which);
        let mut last = None;
        (0..turns)
            .map(|_| {
                last = policy.pick(ready, last).map(|at| ready[at]);
                last.map_or((u32::MAX, 0), |warp| {
                    policy.issued(warp, yields);
                    (warp.cta, warp.warp)
                })
            })
            .collect()
    }

    #[test]
    fn every_policy_issues_when_any_warp_is_ready() {
        for which in POLICIES {
            let mut policy = policy(which);
            for count in 1..20 {
                let ready = warps(&(0..count).map(|warp| (warp / 3, warp)).collect::<Vec<_>>());
                assert!(policy.pick(&ready, None).is_some_and(|at| at < ready.len()), "{which:?}");
                for &warp in &ready {
                    policy.waits(warp);
                }
            }
        }
    }

    #[test]
    fn greedy_policies_stay_and_the_others_go_on() {
        let ready = warps(&[(0, 0), (0, 4), (1, 0)]);
        for yields in [false, true] {
            let picked = |which, turns| picked(which, &ready, yields, turns);
            assert_eq!(picked(IssuePolicy::GreedyThenOldest, 3), [(0, 0); 3]);
            assert_eq!(picked(IssuePolicy::OldestFirst, 3), [(0, 0); 3]);
            assert_eq!(picked(IssuePolicy::LooseRoundRobin, 4), [(0, 0), (0, 4), (1, 0), (0, 0)]);
            assert_eq!(picked(IssuePolicy::TwoLevel, 4), [(0, 0), (0, 4), (1, 0), (0, 0)]);
        }
    }

    #[test]
    fn warps_of_the_oldest_cta_keep_their_turn_until_they_yield() {
        let ready = warps(&[(0, 0), (0, 4), (0, 8), (1, 0)]);
        assert_eq!(picked(IssuePolicy::GreedyOldestCta, &ready, false, 3), [(0, 8); 3]);
        let in_turn = [(0, 8), (0, 4), (0, 0), (0, 8), (0, 4)];
        assert_eq!(picked(IssuePolicy::GreedyOldestCta, &ready, true, 5), in_turn);
    }

    #[test]
    fn of_warps_that_did_not_yield_the_last_one_comes_before_those_that_never_issued() {
        let mut policy = policy(IssuePolicy::GreedyOldestCta);
        let ready = warps(&[(0, 0), (0, 4), (0, 8), (1, 0)]);
        policy.issued(ready[0], false);
        policy.issued(ready[3], false);
        // The younger CTA's warp stays while it can; when it can't, the older CTA goes on with the warp that had its turn.
        assert_eq!(policy.pick(&ready, Some(ready[3])), Some(3));
        assert_eq!(policy.pick(&ready[..3], Some(ready[3])), Some(0));
    }

    #[test]
    fn the_oldest_goes_on_when_the_greedy_warp_stops() {
        let last = Some(WarpId { cta: 0, warp: 4 });
        let ready = warps(&[(0, 0), (0, 8), (1, 4)]);
        assert_eq!(policy(IssuePolicy::GreedyThenOldest).pick(&ready, last), Some(0));
        assert_eq!(policy(IssuePolicy::LooseRoundRobin).pick(&ready, last), Some(1));
    }

    #[test]
    fn two_levels_keep_to_a_few_warps_until_one_of_them_waits() {
        let ready = warps(&(0..12).map(|warp| (0, warp)).collect::<Vec<_>>());
        let mut policy = policy(IssuePolicy::TwoLevel);
        let mut last = None;
        for turn in 0..20 {
            last = policy.pick(&ready, last).map(|at| ready[at]);
            assert_eq!(last, Some(ready[turn % 8]));
        }
        policy.waits(ready[2]);
        let left: Vec<WarpId> = ready.iter().copied().filter(|warp| warp.warp != 2).collect();
        let next: Vec<u32> = (0..8)
            .filter_map(|_| {
                last = policy.pick(&left, last).map(|at| left[at]);
                last.map(|warp| warp.warp)
            })
            .collect();
        assert_eq!(next, [4, 5, 6, 7, 8, 0, 1, 3]);
        // Others that are ready do not pass those that issue in turn.
        assert_eq!(policy.pick(&ready[10..], last), None);
    }
}
