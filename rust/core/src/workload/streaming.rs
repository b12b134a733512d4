//! Streaming kernels: elementwise operations, reductions, copies and fills.
//!
//! A grid works on arrays of equally many elements. A CTA is a loop: in each iteration its threads load some elements of every
//! input, work on them, and store those of every output; a reduction stores what it has found behind the last iteration.

use serde::{Deserialize, Serialize};

use super::access::{LARGEST, THREAD_BYTES};
use super::times::Times;
use super::walk::Bytes;
use crate::error::{Error, Result};

/// A kernel that streams through its arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Streaming {
    /// Of each array, over the whole grid.
    pub elements: u64,
    /// What is loaded.
    #[serde(default)]
    pub inputs: Vec<Array>,
    /// What is stored.
    #[serde(default)]
    pub outputs: Vec<Array>,
    /// Instructions for an element on the FP32 lanes of its SM, a multiply-add being one.
    #[serde(default)]
    pub operations: f64,
    /// What each CTA stores behind its last iteration, its bytes being a CTA's: a partial sum.
    #[serde(default)]
    pub result: Option<Array>,
    /// Which CTA has which elements.
    #[serde(default)]
    pub share: Share,
    /// Elements that a thread takes in one iteration; without, as many as 16 bytes hold of the widest array.
    #[serde(default)]
    pub thread_elements: Option<u64>,
    /// What a CTA takes beside its loads, its arithmetic and its stores.
    #[serde(default)]
    pub times: Times,
}

/// An array of elements, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// Of an element.
    pub bytes: u64,
    /// Which buffer it lies in.
    #[serde(default)]
    pub buffer: u16,
    /// Where in the buffer it begins.
    #[serde(default)]
    pub offset_bytes: u64,
}

/// How a grid shares out the elements. What the threads of a CTA take in one iteration is contiguous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// Each CTA has neighbouring elements, whole iterations of them; the last ones have less to do, or nothing.
    #[default]
    Contiguous,
    /// In each iteration the CTAs lie one behind the other: a grid-stride loop.
    GridStride,
}

/// More arrays would be more than a kernel's arguments.
const MOST_ARRAYS: usize = 64;
/// What a thread takes of an array in one iteration: more than its registers hold.
const MOST_OF_THREAD: u64 = 1 << 12;
/// What a CTA stores in the end.
const LARGEST_RESULT: u64 = 1 << 16;
const MOST_OPERATIONS: f64 = 1e6;

impl Streaming {
    /// Elements that a thread takes in one iteration.
    pub fn elements_of_thread(&self) -> u64 {
        let widest = self.arrays().map(|(_, array)| array.bytes).max().unwrap_or(THREAD_BYTES);
        self.thread_elements.unwrap_or_else(|| (THREAD_BYTES / widest.max(1)).max(1))
    }

    /// The inputs and outputs, with their paths.
    fn arrays(&self) -> impl Iterator<Item = (String, &Array)> {
        let named = |name: &'static str, arrays: &'_ [Array]| {
            (0..arrays.len()).map(move |i| format!("{name}[{i}]")).collect::<Vec<_>>()
        };
        let names = named("inputs", &self.inputs).into_iter().chain(named("outputs", &self.outputs));
        names.zip(self.inputs.iter().chain(&self.outputs))
    }

    pub(crate) fn validate(&self, ctas: u64) -> Result<()> {
        let size = |field: &str, value: u64, most: u64| match value {
            0 => Err(Error::invalid(field, value, "must be at least 1")),
            _ if value > most => Err(Error::invalid(field, value, format!("at most {most}"))),
            _ => Ok(()),
        };
        size("elements", self.elements, LARGEST)?;
        for (field, arrays) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            if arrays.len() > MOST_ARRAYS {
                let got = format!("{} arrays", arrays.len());
                return Err(Error::invalid(field, got, format!("at most {MOST_ARRAYS}")));
            }
        }
        if self.inputs.is_empty() && self.outputs.is_empty() {
            return Err(Error::invalid("inputs", "none", "a streaming kernel has an input or an output"));
        }
        // `sized` is what makes it too long where it begins at 0.
        let fits = |field: &str, sized: (&str, u64), array: &Array, count: u64, most: u64| {
            size(&format!("{field}.bytes"), array.bytes, most)?;
            let end = u128::from(array.bytes) * u128::from(count) + u128::from(array.offset_bytes);
            if end > u128::from(LARGEST) {
                let why = format!("the array reaches {end} bytes, and no device holds more than {LARGEST}");
                let offset = (format!("{field}.offset_bytes"), array.offset_bytes);
                let (field, value) = if array.offset_bytes > 0 { offset } else { (sized.0.to_owned(), sized.1) };
                return Err(Error::invalid(field, value, why));
            }
            Ok(())
        };
        for (field, array) in self.arrays() {
            fits(&field, ("elements", self.elements), array, self.elements, MOST_OF_THREAD)?;
        }
        if let Some(result) = &self.result {
            fits("result", ("result.bytes", result.bytes), result, ctas, LARGEST_RESULT)?;
        }
        if !(0.0..=MOST_OPERATIONS).contains(&self.operations) {
            let why = format!("must be a number from 0 to {MOST_OPERATIONS}");
            return Err(Error::invalid("operations", self.operations, why));
        }
        if let Some(count) = self.thread_elements {
            let widest = self.arrays().map(|(_, array)| array.bytes).max().unwrap_or(1);
            size("thread_elements", count, MOST_OF_THREAD / widest)?;
        }
        self.times.validate()
    }

    /// The largest power of two that divides the start and the length of every run, in bytes.
    pub(crate) fn alignment(&self, threads: u32) -> u64 {
        let step = u64::from(threads) * self.elements_of_thread();
        let of_elements = |all: u64, (_, array): (String, &Array)| {
            let (whole, last) = (array.bytes * step, array.bytes * (self.elements % step));
            all | whole | last | array.offset_bytes
        };
        let of_result = self.result.map_or(0, |result| result.bytes | result.offset_bytes);
        1 << self.arrays().fold(of_result, of_elements).trailing_zeros()
    }

    /// Whether no byte is moved twice, and none is stored.
    pub(crate) fn reads_once(&self) -> bool {
        let apart = |i: usize| self.inputs[..i].iter().all(|other| other.buffer != self.inputs[i].buffer);
        self.outputs.is_empty() && self.result.is_none() && (0..self.inputs.len()).all(apart)
    }
}

/// Which elements each iteration of a CTA takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    elements: u64,
    ctas: u64,
    share: Share,
    /// Elements that a CTA takes in one iteration.
    step: u64,
    /// Iterations of a CTA with contiguous elements, unless it is one of the last.
    turns: u64,
}

impl Plan {
    pub(crate) fn new(work: &Streaming, ctas: u64, threads: u32) -> Self {
        let step = u64::from(threads) * work.elements_of_thread();
        let turns = work.elements.div_ceil(step).div_ceil(ctas);
        Self { elements: work.elements, ctas, share: work.share, step, turns }
    }

    /// How many iterations a CTA has.
    pub(crate) fn iterations(&self, cta: u32) -> u64 {
        let (all, cta) = (self.elements.div_ceil(self.step), u64::from(cta));
        match self.share {
            Share::Contiguous => all.saturating_sub(cta * self.turns).min(self.turns),
            Share::GridStride => all.saturating_sub(cta).div_ceil(self.ctas),
        }
    }

    /// The first element of an iteration, and how many it takes.
    pub(crate) fn elements(&self, cta: u32, iteration: u64) -> (u64, u64) {
        let turn = match self.share {
            Share::Contiguous => u64::from(cta) * self.turns + iteration,
            Share::GridStride => iteration * self.ctas + u64::from(cta),
        };
        let first = turn * self.step;
        (first, self.step.min(self.elements - first))
    }
}

impl Array {
    /// Where so many elements lie.
    pub(crate) const fn run(&self, first: u64, count: u64) -> Bytes<'static> {
        Bytes::run(self.offset_bytes + first * self.bytes, count * self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn work(elements: u64, share: Share) -> Streaming {
        let array = |bytes, buffer| Array { bytes, buffer, offset_bytes: 0 };
        Streaming {
            elements,
            inputs: vec![array(4, 0), array(2, 1)],
            outputs: vec![array(2, 2)],
            operations: 0.0,
            result: None,
            share,
            thread_elements: None,
            times: Times::default(),
        }
    }

    #[test]
    fn a_thread_takes_16_bytes_of_the_widest_array() {
        assert_eq!(work(1, Share::Contiguous).elements_of_thread(), 4);
        let wide = Array { bytes: 64, buffer: 0, offset_bytes: 0 };
        assert_eq!(Streaming { inputs: vec![wide], ..work(1, Share::Contiguous) }.elements_of_thread(), 1);
    }

    #[test]
    fn contiguous_elements_follow_each_other_in_a_cta_and_those_of_a_grid_stride_loop_over_the_grid() {
        // Iterations of 128 elements: eight and a short one.
        let taken = |share| {
            let plan = Plan::new(&work(1030, share), 4, 32);
            [0, 1, 2, 3].map(|cta| (0..plan.iterations(cta)).map(|i| plan.elements(cta, i)).collect::<Vec<_>>())
        };
        let contiguous = [
            vec![(0, 128), (128, 128), (256, 128)],
            vec![(384, 128), (512, 128), (640, 128)],
            vec![(768, 128), (896, 128), (1024, 6)],
            vec![],
        ];
        assert_eq!(taken(Share::Contiguous), contiguous);
        assert_eq!(taken(Share::GridStride)[0], [(0, 128), (512, 128), (1024, 6)]);
        assert_eq!(taken(Share::GridStride)[3], [(384, 128), (896, 128)]);
    }

    proptest! {
        #[test]
        fn every_element_is_taken_once(
            elements in 1..50_000_u64, ctas in 1..40_u64, warps in 1..5_u32, each in 1..9_u64, stride: bool,
        ) {
            let share = if stride { Share::GridStride } else { Share::Contiguous };
            let work = Streaming { thread_elements: Some(each), ..work(elements, share) };
            let plan = Plan::new(&work, ctas, 32 * warps);
            let mut runs: Vec<(u64, u64)> =
                (0..ctas as u32).flat_map(|cta| (0..plan.iterations(cta)).map(move |i| plan.elements(cta, i))).collect();
            runs.sort_unstable();
            let mut next = 0;
            for (first, count) in runs {
                prop_assert_eq!(first, next);
                prop_assert!(count > 0);
                next += count;
            }
            prop_assert_eq!(next, elements);
        }
    }
}
