//! What warps did over time: kept while the program runs.

use super::warps::{STATES, WarpWindowColumns};
use crate::engine::Time;
use crate::ids::KernelId;

/// Cycles are counted in so many parts, so that sums are exact however they are split.
const PARTS: f64 = 1024.0;
/// The most windows of a launch.
const MAX_WINDOWS: u64 = 1024;
/// How long the first windows are: 100 ns.
const FIRST_WIDTH: u64 = 100_000;

/// Cycles of one launch's warps in each state: in all and, if that is kept, by window of time.
#[derive(Clone, Debug)]
pub(crate) struct WarpLog {
    total: [u64; STATES],
    windows: Option<Windows>,
}

/// Windows of one width. When a launch outgrows them, neighbours are joined, and the width doubles.
#[derive(Clone, Debug)]
struct Windows {
    width: u64,
    counts: Vec<[u64; STATES]>,
}

impl WarpLog {
    /// Nothing yet; `by_window`: windows are kept.
    pub(crate) fn new(by_window: bool) -> Self {
        let windows = by_window.then(|| Windows { width: FIRST_WIDTH, counts: Vec::new() });
        Self { total: [0; STATES], windows }
    }

    /// Warps were in these states so many times, evenly from the one time to the other.
    pub(crate) fn add(&mut self, cycles: &[f64; STATES], times: f64, over: (Time, Time)) {
        let parts = cycles.map(|cycles| (cycles * times * PARTS + 0.5) as u64);
        self.total.iter_mut().zip(parts).for_each(|(sum, parts)| *sum += parts);
        if let Some(windows) = &mut self.windows {
            windows.spread(parts, over);
        }
    }

    /// Cycles in each state.
    pub(crate) fn cycles(&self) -> [f64; STATES] {
        self.total.map(|parts| parts as f64 / PARTS)
    }

    /// How wide its windows are, if it has any.
    pub(crate) fn width(&self) -> Option<u64> {
        self.windows.as_ref().map(|windows| windows.width)
    }

    /// Its rows, with windows of a width that its own divides: from the first to the last in which its warps did anything.
    pub(crate) fn close(&self, kernel: KernelId, width: u64, columns: &mut WarpWindowColumns) {
        let Some(mut windows) = self.windows.clone() else { return };
        while windows.width < width {
            windows.join();
        }
        let held = |parts: &[u64; STATES]| parts.iter().any(|&parts| parts > 0);
        let first = windows.counts.iter().position(held).unwrap_or(windows.counts.len());
        let end = windows.counts.iter().rposition(held).map_or(first, |last| last + 1);
        for (window, parts) in (first as u64..).zip(&windows.counts[first..end]) {
            columns.kernel.push(kernel);
            columns.start.push(Time(window * windows.width));
            columns.end.push(Time((window + 1) * windows.width));
            columns.cycles.push(parts.map(|parts| parts as f64 / PARTS));
        }
    }
}

impl Windows {
    fn spread(&mut self, parts: [u64; STATES], (from, to): (Time, Time)) {
        let to = to.max(Time(from.0 + 1));
        while (to.0 - 1) / self.width >= MAX_WINDOWS {
            self.join();
        }
        let (first, last) = (from.0 / self.width, (to.0 - 1) / self.width);
        if self.counts.len() <= last as usize {
            self.counts.resize(last as usize + 1, [0; STATES]);
        }
        let mut before = [0; STATES];
        for window in first..=last {
            let passed = u128::from(((window + 1) * self.width).min(to.0) - from.0);
            for (state, parts) in parts.into_iter().enumerate().filter(|&(_, parts)| parts > 0) {
                let by_now = (u128::from(parts) * passed / u128::from(to.0 - from.0)) as u64;
                self.counts[window as usize][state] += by_now - before[state];
                before[state] = by_now;
            }
        }
    }

    fn join(&mut self) {
        self.width *= 2;
        let joined = self.counts.chunks(2).map(|pair| {
            let mut sum = pair[0];
            if let Some(later) = pair.get(1) {
                sum.iter_mut().zip(later).for_each(|(sum, parts)| *sum += parts);
            }
            sum
        });
        self.counts = joined.collect();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::Id;

    fn rows(log: &WarpLog, width: u64) -> WarpWindowColumns {
        let mut columns = WarpWindowColumns::default();
        log.close(KernelId::from_index(3), width, &mut columns);
        columns
    }

    #[test]
    fn cycles_are_spread_evenly_over_the_time_in_which_they_passed() {
        let mut log = WarpLog::new(true);
        let mut cycles = [0.0; STATES];
        (cycles[0], cycles[4]) = (40.0, 8.0);
        // From the middle of the first window to the middle of the third.
        log.add(&cycles, 2.0, (Time(50_000), Time(250_000)));
        let windows = rows(&log, FIRST_WIDTH);
        let of = |state: usize| windows.cycles.iter().map(|cycles| cycles[state]).collect::<Vec<_>>();
        assert_eq!((of(0), of(4)), (vec![20.0, 40.0, 20.0], vec![4.0, 8.0, 4.0]));
        assert_eq!((windows.start[1], windows.end[1]), (Time(100_000), Time(200_000)));
        assert_eq!(windows.kernel, [KernelId::from_index(3); 3]);
    }

    #[test]
    fn windows_before_and_behind_a_launch_have_no_row_and_a_moment_lies_in_one() {
        let mut log = WarpLog::new(true);
        log.add(&[1.0; STATES], 1.0, (Time(500_000), Time(500_000)));
        log.add(&[0.0; STATES], 1.0, (Time(900_000), Time(2_000_000)));
        let windows = rows(&log, 4 * FIRST_WIDTH);
        assert_eq!(windows.start, [Time(400_000)]);
        assert_eq!(windows.cycles, [[1.0; STATES]]);
    }

    #[test]
    fn windows_in_which_nothing_happens_between_others_have_a_row() {
        let mut log = WarpLog::new(true);
        log.add(&[1.0; STATES], 1.0, (Time(150_000), Time(150_001)));
        log.add(&[1.0; STATES], 1.0, (Time(350_000), Time(350_001)));
        let windows = rows(&log, FIRST_WIDTH);
        assert_eq!(windows.start, [100_000, 200_000, 300_000].map(Time));
        assert_eq!(windows.cycles, [[1.0; STATES], [0.0; STATES], [1.0; STATES]]);
    }

    proptest! {
        #[test]
        fn windows_add_up_to_the_whole_to_the_last_digit(
            pieces in prop::collection::vec((0..1_000_000_000_000_u64, 0..10_000_000_000_u64, 0.0..1e5), 1..40),
        ) {
            let mut log = WarpLog::new(true);
            for (from, length, cycles) in pieces {
                log.add(&[cycles; STATES], 0.7, (Time(from), Time(from + length)));
            }
            let windows = rows(&log, log.width().unwrap());
            let sums: [f64; STATES] =
                std::array::from_fn(|state| windows.cycles.iter().map(|cycles| cycles[state]).sum());
            prop_assert_eq!(sums.map(f64::to_bits), log.cycles().map(f64::to_bits));
            prop_assert!(windows.cycles.len() as u64 <= MAX_WINDOWS);
        }
    }
}
