//! The same warp until it yields; then the oldest CTA, and of its warps the one that issued last without yielding, or else the
//! one that yielded longest ago.
//!
//! What the H200 does, as far as measurements tell. Two CTAs of 512 threads with one dependent chain each end far apart: older
//! CTAs go first. A CTA's own warps end together then, as each multiply-add yields and they take turns. With four chains
//! nothing yields, and warps end two by two: one issues until its branch, then the other, and a third comes in only when one
//! of the two has ended.

use super::{Issue, WarpId};

#[derive(Clone, Debug, Default)]
pub(super) struct GreedyOldestCta {
    /// The higher, the earlier a warp's turn: positive for those that did not yield, negative for those that did.
    turns: Vec<(WarpId, i64)>,
    issued: i64,
}

impl GreedyOldestCta {
    fn turn(&self, of: WarpId) -> i64 {
        self.turns.iter().find(|&&(warp, _)| warp == of).map_or(0, |&(_, turn)| turn)
    }
}

impl Issue for GreedyOldestCta {
    fn pick(&mut self, ready: &[WarpId], last: Option<WarpId>) -> Option<usize> {
        let stays = |warp: &WarpId| Some(*warp) == last && self.turn(*warp) > 0;
        ready.iter().position(stays).or_else(|| {
            let of_oldest = ready.partition_point(|warp| warp.cta == ready[0].cta);
            (0..of_oldest).max_by_key(|&at| self.turn(ready[at]))
        })
    }

    fn issued(&mut self, of: WarpId, yields: bool) {
        self.issued += 1;
        let turn = if yields { -self.issued } else { self.issued };
        match self.turns.iter_mut().find(|(warp, _)| *warp == of) {
            Some((_, last)) => *last = turn,
            None => self.turns.push((of, turn)),
        }
    }

    fn ended(&mut self, of: WarpId) {
        self.turns.retain(|&(warp, _)| warp != of);
    }

    fn copied(&self) -> Box<dyn Issue> {
        Box::new(self.clone())
    }
}
