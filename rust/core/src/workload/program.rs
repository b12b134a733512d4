//! A program: kernels on streams, with events and graphs, in the order in which the host issues them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::kernel::Kernel;
use super::work::Span;
use crate::error::{Error, Result};

/// What a run simulates. Streams order their own items; between streams only events do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The kernels that the items launch.
    pub kernels: Vec<Kernel>,
    /// What the host issues, in order.
    pub items: Vec<Item>,
    /// Properties of streams; a stream that is not named here has priority 0.
    #[serde(default)]
    pub streams: BTreeMap<u32, Stream>,
}

/// A stream's properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Lower is more urgent, as in CUDA; clamped to the device's range.
    #[serde(default)]
    pub priority: i32,
}

/// One thing that the host issues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// A kernel launch.
    Launch(Launch),
    /// Marks a point in a stream.
    Record(Record),
    /// Holds a stream until a marked point is reached.
    Wait(Wait),
    /// A copy or fill by a copy engine: takes time in its stream and no SM.
    Copy(Copy),
    /// Several items launched at once.
    Graph(Graph),
}

/// A kernel launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Which of the program's kernels.
    pub kernel: usize,
    /// In which stream.
    #[serde(default)]
    pub stream: u32,
    /// The host issues it no earlier than this, in nanoseconds from the start of the run.
    #[serde(default)]
    pub at_ns: Option<f64>,
    /// Programmatic dependent launch: its CTAs may be launched before the kernel ahead of it in the stream has ended.
    #[serde(default)]
    pub dependent: bool,
    /// Its CTAs signal the dependent launch behind it as soon as they start; without, the end of each does.
    #[serde(default)]
    pub trigger: bool,
}

/// Marks a point in a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The event's name.
    pub event: String,
    /// In which stream.
    #[serde(default)]
    pub stream: u32,
}

/// Holds a stream until the last [`Record`] of this event that was issued before is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// The event's name.
    pub event: String,
    /// Which stream waits.
    #[serde(default)]
    pub stream: u32,
}

/// A copy or fill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Copy {
    /// How long it takes.
    pub duration: Span,
    /// In which stream.
    #[serde(default)]
    pub stream: u32,
    /// The host issues it no earlier than this, in nanoseconds from the start of the run.
    #[serde(default)]
    pub at_ns: Option<f64>,
}

/// Items captured in a graph: the host launches them with one call. Streams and events inside give the order of its
/// nodes, as in a stream capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// The captured items, in issue order; a graph in a graph is refused.
    pub items: Vec<Item>,
    /// The stream into which it is launched.
    #[serde(default)]
    pub stream: u32,
    /// The host issues it no earlier than this, in nanoseconds from the start of the run.
    #[serde(default)]
    pub at_ns: Option<f64>,
}

impl Program {
    /// One kernel, launched once.
    pub fn of(kernel: Kernel) -> Self {
        let launch = Launch { kernel: 0, stream: 0, at_ns: None, dependent: false, trigger: false };
        Self { kernels: vec![kernel], items: vec![Item::Launch(launch)], streams: BTreeMap::new() }
    }

    /// Checks all that needs no device; `arrays` are the lengths of the number lists that come with it.
    ///
    /// # Errors
    /// The first field that can't be, with its path and value.
    pub fn validate(&self, arrays: &[usize]) -> Result<()> {
        if self.items.is_empty() {
            return Err(Error::invalid("items", "[]", "a program launches at least one item"));
        }
        for (i, kernel) in self.kernels.iter().enumerate() {
            kernel.validate(arrays).map_err(|e| e.within(&format!("kernels[{i}]")))?;
        }
        let mut recorded = BTreeSet::new();
        self.validate_items(&self.items, "items", false, &mut recorded)
    }

    fn validate_items<'a>(
        &self,
        items: &'a [Item],
        path: &str,
        in_graph: bool,
        recorded: &mut BTreeSet<&'a str>,
    ) -> Result<()> {
        for (i, item) in items.iter().enumerate() {
            let at = |field: &str| format!("{path}[{i}].{field}");
            match item {
                Item::Launch(launch) => {
                    if launch.kernel >= self.kernels.len() {
                        let why = format!("the program has {} kernels", self.kernels.len());
                        return Err(Error::invalid(at("launch.kernel"), launch.kernel, why));
                    }
                    check_at(&at("launch.at_ns"), launch.at_ns, in_graph)?;
                }
                Item::Record(record) => {
                    recorded.insert(&record.event);
                }
                Item::Wait(wait) => {
                    if !recorded.contains(wait.event.as_str()) {
                        let why = "no record of this event is issued before the wait, so it can never be reached";
                        return Err(Error::invalid(at("wait.event"), wait.event.as_str(), why));
                    }
                }
                Item::Copy(copy) => {
                    copy.duration.validate(&at("copy.duration"))?;
                    check_at(&at("copy.at_ns"), copy.at_ns, in_graph)?;
                }
                Item::Graph(graph) => {
                    if in_graph {
                        return Err(Error::invalid(at("graph"), "graph", "a graph holds no graph"));
                    }
                    if graph.items.is_empty() {
                        return Err(Error::invalid(at("graph.items"), "[]", "a graph has at least one node"));
                    }
                    check_at(&at("graph.at_ns"), graph.at_ns, false)?;
                    // What a graph records is known inside that graph only, as in a stream capture.
                    let mut inside = BTreeSet::new();
                    self.validate_items(&graph.items, &at("graph.items"), true, &mut inside)?;
                }
            }
        }
        Ok(())
    }
}

impl Program {
    /// Checks the numbers of the lists themselves: durations that can be, and waits for CTAs that are there and do not
    /// wait for each other in a circle.
    ///
    /// # Errors
    /// The first number that can't be, with the path of what refers to it.
    pub fn validate_lists(&self, arrays: &[&[f64]]) -> Result<()> {
        for (i, kernel) in self.kernels.iter().enumerate() {
            kernel.validate_lists(arrays).map_err(|e| e.within(&format!("kernels[{i}]")))?;
        }
        Ok(())
    }
}

fn check_at(field: &str, at_ns: Option<f64>, in_graph: bool) -> Result<()> {
    match at_ns {
        Some(at) if in_graph => Err(Error::invalid(
            field,
            at,
            "nodes of a graph start when those before them end: only the graph has a time",
        )),
        Some(at) if crate::engine::Time::from_ns(at).is_none() => {
            Err(Error::invalid(field, at, "a time is a number of nanoseconds from 0 to 4.32e15 (50 days)"))
        }
        _ => Ok(()),
    }
}
