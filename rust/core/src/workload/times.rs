//! What work on memory takes beside what it moves.

use serde::{Deserialize, Serialize};

use super::work::Span;
use crate::error::Result;

/// Of each CTA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Times {
    /// Before its first iteration.
    pub startup: Span,
    /// Before an SM's first iteration in the launch, in place of what the device says.
    pub cold: Option<Span>,
    /// What an iteration takes beside its loads, its arithmetic and its stores. Others may use the arithmetic units meanwhile.
    pub overhead: Span,
    /// Behind the last iteration; of a tile, before it is stored.
    pub finish: Span,
}

impl Times {
    /// All of them by name, in order.
    pub(crate) fn named(&self) -> [(&'static str, Option<Span>); 4] {
        [
            ("times.startup", Some(self.startup)),
            ("times.cold", self.cold),
            ("times.overhead", Some(self.overhead)),
            ("times.finish", Some(self.finish)),
        ]
    }

    pub(crate) fn validate(&self) -> Result<()> {
        self.named().into_iter().try_for_each(|(field, span)| span.map_or(Ok(()), |span| span.validate(field)))
    }
}
