//! Warps of a CTA that get on together.

/// Some of a CTA's warps, a bit each. Warps whose numbers are 64 apart share one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WarpSet(u64);

impl WarpSet {
    /// All warps of a CTA of so many.
    pub(super) fn all(warps: u32) -> Self {
        Self(if warps >= u64::BITS { u64::MAX } else { (1 << warps) - 1 })
    }

    pub(super) fn contains(self, warp: u32) -> bool {
        self.0 >> (warp % u64::BITS) & 1 == 1
    }

    pub(super) fn insert(&mut self, warp: u32) {
        self.0 |= 1 << (warp % u64::BITS);
    }

    /// Those that are in another one too.
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The numbers of the warps in it, of a CTA of so many.
    pub(super) fn of(self, warps: u32) -> impl Iterator<Item = u32> {
        (0..warps).filter(move |&warp| self.contains(warp))
    }

    /// How many of a CTA's warps are in it.
    pub(super) fn count(self, warps: u32) -> u32 {
        if warps <= u64::BITS { self.0.count_ones() } else { self.of(warps).count() as u32 }
    }
}

/// Warps of one CTA on an SM that run the same steady program, as far as rates depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Squad {
    /// Which CTA, oldest first, of those that have such warps.
    pub(super) cta: u32,
    /// The sub-partition of its warp 0.
    pub(super) first: u8,
    pub(super) program: u32,
    pub(super) warps: WarpSet,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_counts_each_warp_of_any_cta_once() {
        for warps in [1, 7, 32, 64, 100] {
            assert_eq!(WarpSet::all(warps).count(warps), warps);
            assert_eq!(WarpSet::all(warps).of(warps).count() as u32, warps);
        }
        let mut some = WarpSet::default();
        some.insert(3);
        some.insert(67);
        assert_eq!((some.count(32), some.count(100)), (1, 2));
        assert!(some.contains(3) && some.contains(67) && !some.contains(4));
    }
}
