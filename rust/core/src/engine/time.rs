//! Integer time: a picosecond grain is fine enough for a thousandth of a clock cycle, and 64 bits hold 200 days of it.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in time or a span of it, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than anything.
    pub const MAX: Self = Self(u64::MAX);
    /// A run that comes this far is ended with an error.
    pub const HORIZON: Self = Self(u64::MAX / 2);
    /// The longest span a caller may ask for: 50 days. Sums of two never reach the horizon.
    pub const LONGEST: Self = Self(50 * 86_400 * 1_000_000_000_000);

    /// From nanoseconds, rounded to the nearest picosecond; `None` if negative, not a number, or over [`Self::LONGEST`].
    pub fn from_ns(ns: f64) -> Option<Self> {
        let ps = (ns * 1e3).round();
        (ps >= 0.0 && ps <= Self::LONGEST.0 as f64).then_some(Self(ps as u64))
    }

    /// In nanoseconds.
    #[inline]
    pub fn ns(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The span from `earlier`, zero if that is later.
    #[inline]
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Time {
    type Output = Self;
    #[inline]
    fn add(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, span: Self) {
        *self = *self + span;
    }
}

impl Sub for Time {
    type Output = Self;
    #[inline]
    fn sub(self, earlier: Self) -> Self {
        Self(self.0 - earlier.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} ns", self.0 / 1000, self.0 % 1000)
    }
}
