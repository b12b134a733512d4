//! The oldest warp that can.

use super::{Issue, WarpId};

#[derive(Clone, Debug)]
pub(super) struct OldestFirst;

impl Issue for OldestFirst {
    fn pick(&mut self, _ready: &[WarpId], _last: Option<WarpId>) -> Option<usize> {
        Some(0)
    }

    fn copied(&self) -> Box<dyn Issue> {
        Box::new(self.clone())
    }
}
