//! Records as the laws read them: a row a CTA.

use wavesim::ids::Id;
use wavesim::records::Records;

/// One CTA: where and when it ran, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) kernel: usize,
    pub(crate) cta: usize,
    pub(crate) sm: usize,
    pub(crate) slot: usize,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// The CTAs in the order in which they ended.
pub(crate) fn rows(records: &Records) -> Vec<Row> {
    let ctas = records.ctas.as_ref().expect("the run recorded its CTAs");
    (0..ctas.cta.len())
        .map(|i| Row {
            kernel: ctas.kernel[i].index(),
            cta: ctas.cta[i].index(),
            sm: ctas.sm[i].index(),
            slot: ctas.slot[i].index(),
            start: ctas.start[i].0,
            end: ctas.end[i].0,
        })
        .collect()
}

/// The CTAs of one launch, by number.
pub(crate) fn of_kernel(rows: &[Row], kernel: usize) -> Vec<Row> {
    let mut of: Vec<Row> = rows.iter().copied().filter(|row| row.kernel == kernel).collect();
    of.sort_unstable();
    of
}

/// How long something lasts of which these are the parts: overlaps count once.
pub(crate) fn union(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let (mut total, mut reached) = (0, 0);
    for (start, end) in spans {
        total += end.saturating_sub(start.max(reached));
        reached = reached.max(end);
    }
    total
}
