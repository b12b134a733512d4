//! The same warp as long as it can, then the oldest (Rogers et al. 2012).

use super::{Issue, WarpId, again};

#[derive(Clone, Debug)]
pub(super) struct GreedyThenOldest;

impl Issue for GreedyThenOldest {
    fn pick(&mut self, ready: &[WarpId], last: Option<WarpId>) -> Option<usize> {
        again(ready, last).or(Some(0))
    }

    fn copied(&self) -> Box<dyn Issue> {
        Box::new(self.clone())
    }
}
