//! What launches moved through L2: in all, by slice and by window of time.

use std::ops::{AddAssign, Div, Sub};

use crate::engine::Time;
use crate::ids::{IdVec, KernelId};

/// What was moved, in sectors of 32 bytes where nothing else is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Read by the SMs.
    pub requested: u64,
    /// Of these, joined to another SM's request on its way through the GPC: they never came to L2.
    pub coalesced: u64,
    /// The others: read of L2 by the GPCs.
    pub sectors: u64,
    /// Read of one part of L2 by another.
    pub fabric: u64,
    /// Lookups that found their line, or found it on its way; `sectors + fabric` were made.
    pub hits: u64,
    /// Of these, lookups that found it on its way: a miss that is outstanding serves them too.
    pub merged: u64,
    /// Written by the SMs.
    pub written: u64,
    /// Bytes read from DRAM.
    pub dram_read: u64,
    /// Bytes written to DRAM.
    pub dram_written: u64,
}

impl Traffic {
    /// Each count of two.
    #[inline]
    fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            requested: of(self.requested, other.requested),
            coalesced: of(self.coalesced, other.coalesced),
            sectors: of(self.sectors, other.sectors),
            fabric: of(self.fabric, other.fabric),
            hits: of(self.hits, other.hits),
            merged: of(self.merged, other.merged),
            written: of(self.written, other.written),
            dram_read: of(self.dram_read, other.dram_read),
            dram_written: of(self.dram_written, other.dram_written),
        }
    }
}

impl AddAssign for Traffic {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = self.with(other, |a, b| a + b);
    }
}

impl Sub for Traffic {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.with(other, |a, b| a - b)
    }
}

impl Div<u64> for Traffic {
    type Output = Self;

    fn div(self, by: u64) -> Self {
        self.with(self, |a, _| a / by)
    }
}

/// A row a launch with memory work, in issue order.
#[derive(Clone, Debug, Default)]
pub struct L2Columns {
    /// The launch.
    pub kernel: Vec<KernelId>,
    /// Which of the program's kernels was launched.
    pub spec: Vec<u32>,
    /// What it moved.
    pub traffic: Vec<Traffic>,
}

/// A row a launch with memory work and slice of L2.
#[derive(Clone, Debug, Default)]
pub struct L2SliceColumns {
    /// The launch.
    pub kernel: Vec<KernelId>,
    /// The part of L2 that the slice belongs to.
    pub part: Vec<u16>,
    /// The slice, numbered over all parts.
    pub slice: Vec<u32>,
    /// What the launch moved through it.
    pub traffic: Vec<Traffic>,
}

/// A row a launch with memory work and window of time in which it moved anything. All windows of a run are equally long.
#[derive(Clone, Debug, Default)]
pub struct L2WindowColumns {
    /// The launch.
    pub kernel: Vec<KernelId>,
    /// When the window begins.
    pub start: Vec<Time>,
    /// When it ends.
    pub end: Vec<Time>,
    /// What the launch asked for in it.
    pub traffic: Vec<Traffic>,
}

/// The most windows of a run.
const MAX_WINDOWS: u64 = 1024;
/// How long the first windows are: 100 ns.
const FIRST_WIDTH: u64 = 100_000;

/// Keeps what launches moved by slice and by window, while the program runs. When a run outgrows the windows, neighbours are
/// joined, and their width doubles.
#[derive(Debug)]
pub(crate) struct L2Log {
    slices: usize,
    parts: usize,
    by_slice: IdVec<KernelId, Vec<Traffic>>,
    by_window: IdVec<KernelId, Vec<(u64, Traffic)>>,
    width: u64,
}

impl L2Log {
    /// Nothing yet of so many launches, over so many slices in all parts together.
    pub(crate) fn new(launches: usize, slices: usize, parts: usize) -> Self {
        let (by_slice, by_window) = (IdVec::filled(Vec::new(), launches), IdVec::filled(Vec::new(), launches));
        Self { slices, parts, by_slice, by_window, width: FIRST_WIDTH }
    }

    /// A launch moved something through a slice.
    pub(crate) fn through(&mut self, kernel: KernelId, slice: usize, moved: Traffic) {
        let of_kernel = &mut self.by_slice[kernel];
        if of_kernel.is_empty() {
            of_kernel.resize(self.slices, Traffic::default());
        }
        of_kernel[slice] += moved;
    }

    /// A launch moved something at a time, never earlier than what it moved before.
    pub(crate) fn at(&mut self, kernel: KernelId, now: Time, moved: Traffic) {
        while now.0 / self.width >= MAX_WINDOWS {
            self.width *= 2;
            for of_kernel in self.by_window.values_mut() {
                for (window, _) in of_kernel.iter_mut() {
                    *window /= 2;
                }
                of_kernel.dedup_by(|later, earlier| {
                    let same = later.0 == earlier.0;
                    earlier.1 += if same { later.1 } else { Traffic::default() };
                    same
                });
            }
        }
        let window = now.0 / self.width;
        match self.by_window[kernel].last_mut() {
            Some((last, traffic)) if *last == window => *traffic += moved,
            _ => self.by_window[kernel].push((window, moved)),
        }
    }

    /// The columns, when the program has run.
    pub(crate) fn close(self) -> (L2SliceColumns, L2WindowColumns) {
        let (mut slices, mut windows) = (L2SliceColumns::default(), L2WindowColumns::default());
        let in_part = self.slices / self.parts;
        for (kernel, traffic) in self.by_slice.iter() {
            for (slice, &traffic) in traffic.iter().enumerate() {
                slices.kernel.push(kernel);
                slices.part.push((slice / in_part) as u16);
                slices.slice.push(slice as u32);
                slices.traffic.push(traffic);
            }
        }
        for (kernel, traffic) in self.by_window.iter() {
            for &(window, traffic) in traffic {
                windows.kernel.push(kernel);
                windows.start.push(Time(window * self.width));
                windows.end.push(Time((window + 1) * self.width));
                windows.traffic.push(traffic);
            }
        }
        (slices, windows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id;

    fn read(requested: u64) -> Traffic {
        Traffic { requested, ..Traffic::default() }
    }

    #[test]
    fn windows_are_joined_when_a_run_outgrows_them_and_nothing_is_lost() {
        let mut log = L2Log::new(2, 4, 2);
        let kernel = KernelId::from_index(1);
        for i in 0..3 * MAX_WINDOWS {
            log.at(kernel, Time(i * FIRST_WIDTH), read(i));
        }
        let (_, windows) = log.close();
        assert_eq!(windows.traffic.len() as u64, 3 * MAX_WINDOWS / 4);
        assert_eq!(windows.traffic[0].requested, 1 + 2 + 3);
        assert_eq!((windows.start[1].0, windows.end[1].0), (4 * FIRST_WIDTH, 8 * FIRST_WIDTH));
        let sum: u64 = windows.traffic.iter().map(|traffic| traffic.requested).sum();
        assert_eq!(sum, (0..3 * MAX_WINDOWS).sum::<u64>());
    }

    #[test]
    fn slices_are_rows_of_the_launches_that_moved_something() {
        let mut log = L2Log::new(3, 4, 2);
        log.through(KernelId::from_index(2), 3, read(5));
        let (slices, _) = log.close();
        assert_eq!(slices.kernel, [KernelId::from_index(2); 4]);
        assert_eq!(slices.part, [0, 0, 1, 1]);
        assert_eq!(slices.traffic[3], read(5));
    }
}
