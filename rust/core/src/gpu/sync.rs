//! What CTAs wait for beside a slot.

use super::sm::Place;
use super::work::Sampler;
use crate::device::Device;
use crate::engine::Time;
use crate::workload::{Kernel, Work};

/// What the CTAs of one kernel do, step by step.
#[derive(Debug)]
pub(crate) enum Sync {
    /// Each runs for its time.
    None,
}

/// What a CTA does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// It has ended.
    End,
    /// Its next step is then.
    At(Time),
    /// Another CTA's step will release it.
    Waits,
    /// It and others go on: who, and when.
    Released(Vec<(Time, Place)>),
}

impl Sync {
    pub(crate) fn new(kernel: &Kernel, _device: &Device) -> Self {
        match &kernel.work {
            _ => Self::None,
        }
    }

    /// A CTA begins its work at `at`: when its first step is due.
    #[inline]
    pub(crate) fn begin(&mut self, _cta: u32, at: Time, sampler: &mut Sampler<'_>) -> Time {
        match self {
            Self::None => at + sampler.next(),
        }
    }

    /// A CTA's step is due.
    #[inline]
    pub(crate) fn next(&mut self, _cta: u32, _place: Place, _now: Time, _sampler: &mut Sampler<'_>) -> Next {
        match self {
            Self::None => Next::End,
        }
    }
}
