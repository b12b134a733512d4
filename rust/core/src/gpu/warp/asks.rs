//! What programs ask of the simulated memory, for the default mode: in batches, from one wait to the next.

use super::code::Compiler;
use crate::workload::{Segment, Source};

/// What a program asks of memory before it waits.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Batch {
    pub(super) asks: Vec<Ask>,
    /// It waits for it.
    pub(super) waits: bool,
}

/// Iterations of an access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ask {
    /// The number of the access among those of all kernels.
    pub(super) access: u32,
    pub(super) iterations: u64,
    pub(super) store: bool,
}

impl Batch {
    /// The accesses that it loads through.
    pub(super) fn loads(&self) -> impl Iterator<Item = u32> + '_ {
        self.asks.iter().filter(|ask| !ask.store).map(|ask| ask.access)
    }
}

/// What segments ask of memory: a batch up to each wait for some of it. They are short, so that loops in them are, too.
pub(super) fn batches(compiler: Compiler<'_>, segments: &[Segment]) -> Vec<Batch> {
    let (mut batches, mut open) = (Vec::new(), Batch::default());
    collect(compiler, segments, &mut batches, &mut open);
    if !open.asks.is_empty() {
        batches.push(open);
    }
    batches
}

fn collect(compiler: Compiler<'_>, segments: &[Segment], batches: &mut Vec<Batch>, open: &mut Batch) {
    for segment in segments {
        let (ask, waits) = match *segment {
            Segment::Load { from: Source::Access(access), instructions, wait, .. } => {
                (Some(Ask { access: compiler.access(access), iterations: instructions, store: false }), wait)
            }
            Segment::Store { access: Some(access), instructions, .. } => {
                (Some(Ask { access: compiler.access(access), iterations: instructions, store: true }), false)
            }
            Segment::Wait | Segment::Load { wait: true, .. } => (None, true),
            Segment::Loop { count, ref body, .. } => {
                (0..count).for_each(|_| collect(compiler, body, batches, open));
                continue;
            }
            _ => continue,
        };
        match (ask, open.asks.last_mut()) {
            (Some(ask), Some(last)) if last.access == ask.access => last.iterations += ask.iterations,
            (Some(ask), _) => open.asks.push(ask),
            (None, _) => {}
        }
        if waits && open.loads().next().is_some() {
            open.waits = true;
            batches.push(std::mem::take(open));
        }
    }
}
