//! One warp after the other; those that can't issue are passed over.

use super::{Issue, WarpId, next_after};

#[derive(Clone, Debug)]
pub(super) struct LooseRoundRobin;

impl Issue for LooseRoundRobin {
    fn pick(&mut self, ready: &[WarpId], last: Option<WarpId>) -> Option<usize> {
        Some(next_after(ready, last))
    }

    fn copied(&self) -> Box<dyn Issue> {
        Box::new(self.clone())
    }
}
