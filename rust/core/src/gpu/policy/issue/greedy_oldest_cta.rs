//! The same warp as long as it can; then the oldest CTA, its warps in turn.
//!
//! What the H200 does, as far as its tables tell: two CTAs of 512 threads with one dependent chain each end far apart, so
//! older CTAs go first; a CTA's own warps end together, so these take turns; and with four chains a younger warp that got in
//! keeps the slot.

use super::{Issue, WarpId, again, next_after};

#[derive(Clone, Debug)]
pub(super) struct GreedyOldestCta;

impl Issue for GreedyOldestCta {
    fn pick(&mut self, ready: &[WarpId], last: Option<WarpId>) -> Option<usize> {
        again(ready, last).or_else(|| {
            let of_oldest = ready.partition_point(|warp| warp.cta == ready[0].cta);
            Some(next_after(&ready[..of_oldest], last))
        })
    }

    fn copied(&self) -> Box<dyn Issue> {
        Box::new(self.clone())
    }
}
