//! A few active warps in turn; one that waits for memory or a barrier leaves, and the oldest that is ready takes its place
//! (Narasiman et al. 2011).

use super::{Issue, WarpId, next_after};

/// Active warps of a sub-partition.
const ACTIVE: usize = 8;

#[derive(Clone, Debug, Default)]
pub(super) struct TwoLevel {
    active: Vec<WarpId>,
}

impl Issue for TwoLevel {
    fn pick(&mut self, ready: &[WarpId], last: Option<WarpId>) -> Option<usize> {
        for warp in ready {
            if self.active.len() == ACTIVE {
                break;
            }
            if !self.active.contains(warp) {
                self.active.push(*warp);
            }
        }
        let first = next_after(ready, last);
        (first..ready.len()).chain(0..first).find(|&at| self.active.contains(&ready[at]))
    }

    fn waits(&mut self, warp: WarpId) {
        self.active.retain(|&active| active != warp);
    }

    fn copied(&self) -> Box<dyn Issue> {
        Box::new(self.clone())
    }
}
