//! The front end: what the host issues, in which order the streams allow it, and when it reaches the dispatcher.
//!
//! A program becomes a graph of operations once, before the run: stream order, events and captured graphs are all edges of
//! it, and differ in how long they take from the end of the one to the start of the other.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::device::Device;
use crate::engine::Time;
use crate::error::{Error, Result};
use crate::ids::{Id, IdVec, KernelId};
use crate::workload::{Item, Program};

/// Index of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OpId(u32);

impl Id for OpId {
    fn from_index(index: usize) -> Self {
        Self(index as u32)
    }
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// How one operation waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// Order of a stream, or an event between streams.
    Stream,
    /// An edge of a launched graph.
    Graph,
    /// Programmatic dependent launch: the successor is launched once every CTA of the predecessor has ended or signalled,
    /// and its work begins once the predecessor is complete.
    Dependent,
}

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpKind {
    /// A kernel launch.
    Kernel(KernelId),
    /// A copy, and how long it takes.
    Copy(Time),
}

/// A kernel launch or copy, and what it waits for.
#[derive(Debug)]
pub(crate) struct Op {
    pub(crate) kind: OpKind,
    successors: Vec<(OpId, Edge)>,
    /// Edges not yet resolved, and one more until the host has issued it.
    waits_for: u32,
    ready: Time,
    pub(crate) issued: bool,
}

/// A kernel launch as the program gives it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchSpec {
    /// Which of the program's kernels.
    pub(crate) kernel: usize,
    pub(crate) stream: u32,
    pub(crate) op: OpId,
    /// Its work begins only when the kernel ahead of it is complete.
    pub(crate) dependent: bool,
    /// Its CTAs signal the dependent launch behind it as soon as they start.
    pub(crate) trigger: bool,
}

/// One call of the host: its cost, when at the earliest, and the operations it issues.
#[derive(Debug)]
struct Call {
    at: Time,
    ops: Range<usize>,
    graph: bool,
}

/// The front end's timings, in time.
#[derive(Clone, Copy, Debug)]
struct Timings {
    host_issue: Time,
    submit: Time,
    stream: Time,
    graph: Time,
    dependent: Time,
}

/// The state of the front end.
#[derive(Debug)]
pub(crate) struct FrontEnd {
    ops: IdVec<OpId, Op>,
    pub(crate) launches: IdVec<KernelId, LaunchSpec>,
    calls: Vec<Call>,
    next_call: usize,
    timings: Timings,
    unfinished: usize,
    /// Issued operations that still wait for others.
    held: usize,
}

/// Where the next operation of a stream is attached.
#[derive(Clone, Debug, Default)]
struct Tail {
    after: Vec<(OpId, Edge)>,
}

impl FrontEnd {
    pub(crate) fn new(program: &Program, device: &Device) -> Result<Self> {
        let span = |field: &str, ns: f64| {
            Time::from_ns(ns).ok_or_else(|| Error::invalid(format!("device.launch.{field}"), ns, "no such time"))
        };
        let timings = Timings {
            host_issue: span("host_issue_ns", device.launch.host_issue_ns)?,
            submit: span("submit_ns", device.launch.submit_ns)?,
            stream: span("stream_gap_ns", device.launch.stream_gap_ns)?,
            graph: span("graph_gap_ns", device.launch.graph_gap_ns)?,
            dependent: span("dependent_gap_ns", device.launch.dependent_gap_ns)?,
        };
        let mut front_end = Self {
            ops: IdVec::new(),
            launches: IdVec::new(),
            calls: Vec::new(),
            next_call: 0,
            timings,
            unfinished: 0,
            held: 0,
        };
        let cycle_ps = device.clock.cycles_to_ps(1.0);
        front_end.build(program, cycle_ps);
        front_end.unfinished = front_end.ops.len();
        Ok(front_end)
    }

    fn build(&mut self, program: &Program, cycle_ps: f64) {
        let mut streams: BTreeMap<u32, Tail> = BTreeMap::new();
        let mut events: BTreeMap<&str, Tail> = BTreeMap::new();
        for item in &program.items {
            let first = self.ops.len();
            let (at, graph) = match item {
                Item::Launch(launch) => (launch.at_ns, false),
                Item::Copy(copy) => (copy.at_ns, false),
                Item::Graph(graph) => (graph.at_ns, true),
                Item::Record(_) | Item::Wait(_) => (None, false),
            };
            if let Item::Graph(graph) = item {
                // Inside, streams begin where the launching stream is, and it goes on when all of them have ended.
                let root = streams.remove(&graph.stream).unwrap_or_default();
                let mut inside = BTreeMap::new();
                let mut inside_events = BTreeMap::new();
                for item in &graph.items {
                    self.add(item, Some(&root), &mut inside, &mut inside_events, cycle_ps);
                }
                let mut last = Tail::default();
                for (op, op_state) in self.ops.iter().skip(first) {
                    if op_state.successors.is_empty() {
                        last.after.push((op, Edge::Stream));
                    }
                }
                streams.insert(graph.stream, if last.after.is_empty() { root } else { last });
            } else {
                self.add(item, None, &mut streams, &mut events, cycle_ps);
            }
            let ops = first..self.ops.len();
            if !ops.is_empty() {
                let at = at.and_then(Time::from_ns).unwrap_or(Time::ZERO);
                self.calls.push(Call { at, ops, graph });
            }
        }
    }

    /// Adds one item that is not a graph; `root` is where the streams of a graph begin.
    fn add<'a>(
        &mut self,
        item: &'a Item,
        root: Option<&Tail>,
        streams: &mut BTreeMap<u32, Tail>,
        events: &mut BTreeMap<&'a str, Tail>,
        cycle_ps: f64,
    ) {
        let begin = || root.cloned().unwrap_or_default();
        let edge = if root.is_some() { Edge::Graph } else { Edge::Stream };
        let (kind, stream, dependent) = match item {
            Item::Launch(launch) => {
                let spec = LaunchSpec {
                    kernel: launch.kernel,
                    stream: launch.stream,
                    op: OpId::from_index(self.ops.len()),
                    dependent: launch.dependent,
                    trigger: launch.trigger,
                };
                (OpKind::Kernel(self.launches.push(spec)), launch.stream, launch.dependent)
            }
            Item::Copy(copy) => {
                let duration = Time(copy.duration.ps(cycle_ps).round() as u64);
                (OpKind::Copy(duration), copy.stream, false)
            }
            Item::Record(record) => {
                let tail = streams.entry(record.stream).or_insert_with(begin).clone();
                events.insert(&record.event, tail);
                return;
            }
            Item::Wait(wait) => {
                let reached = events.get(wait.event.as_str()).cloned().unwrap_or_default();
                let tail = streams.entry(wait.stream).or_insert_with(begin);
                for (op, edge) in reached.after {
                    if tail.after.iter().all(|&(other, _)| other != op) {
                        tail.after.push((op, edge));
                    }
                }
                return;
            }
            Item::Graph(_) => unreachable!("a validated program has no graph in a graph"),
        };
        let tail = streams.entry(stream).or_insert_with(begin);
        let after = std::mem::take(&mut tail.after);
        let waits_for = 1 + after.len() as u32;
        let op = self.ops.push(Op { kind, successors: Vec::new(), waits_for, ready: Time::ZERO, issued: false });
        // Only the order of its own stream can be loosened by dependent launch: with one kernel ahead.
        let loosened = dependent && after.len() == 1 && matches!(self.ops[after[0].0].kind, OpKind::Kernel(_));
        if let (OpKind::Kernel(kernel), false) = (kind, loosened) {
            self.launches[kernel].dependent = false;
        }
        for (ahead, edge) in after {
            let edge = if loosened { Edge::Dependent } else { edge };
            self.ops[ahead].successors.push((op, edge));
        }
        streams.entry(stream).or_default().after.push((op, edge));
    }

    /// When the host makes its next call, if it has one left; `now` is when its last one returned.
    pub(crate) fn next_call(&self, now: Time) -> Option<Time> {
        self.calls.get(self.next_call).map(|call| call.at.max(now))
    }

    /// The host makes its next call at `now`: which operations it issues, and when it is free for another one.
    pub(crate) fn call(&mut self, now: Time) -> (Range<usize>, Time) {
        let call = &self.calls[self.next_call];
        self.next_call += 1;
        let ops = call.ops.clone();
        self.held += ops.len();
        let _ = call.graph;
        (ops, now + self.timings.host_issue)
    }

    /// An operation was issued at `now`; returns when it is ready, if nothing else holds it.
    pub(crate) fn issue(&mut self, op: OpId, now: Time) -> Option<Time> {
        self.ops[op].issued = true;
        self.settle(op, now + self.timings.submit)
    }

    fn settle(&mut self, op: OpId, earliest: Time) -> Option<Time> {
        let state = &mut self.ops[op];
        state.ready = state.ready.max(earliest);
        state.waits_for -= 1;
        if state.waits_for > 0 {
            return None;
        }
        self.held -= 1;
        Some(state.ready)
    }

    /// An operation is complete: its successors that become ready, and when.
    pub(crate) fn complete(&mut self, op: OpId, now: Time, ready: &mut Vec<(OpId, Time)>) {
        self.unfinished -= 1;
        self.resolve(op, now, |edge| edge != Edge::Dependent, ready);
    }

    /// Every CTA of a kernel has ended or signalled: the dependent launches behind it can be launched.
    pub(crate) fn signal(&mut self, op: OpId, now: Time, ready: &mut Vec<(OpId, Time)>) {
        self.resolve(op, now, |edge| edge == Edge::Dependent, ready);
    }

    fn resolve(&mut self, op: OpId, now: Time, which: impl Fn(Edge) -> bool, ready: &mut Vec<(OpId, Time)>) {
        for i in 0..self.ops[op].successors.len() {
            let (next, edge) = self.ops[op].successors[i];
            if !which(edge) {
                continue;
            }
            let gap = match edge {
                Edge::Stream => self.timings.stream,
                Edge::Graph => self.timings.graph,
                Edge::Dependent => self.timings.dependent,
            };
            ready.extend(self.settle(next, now + gap).map(|at| (next, at)));
        }
    }

    /// The kernels that wait for this one to be complete before their work begins.
    pub(crate) fn dependents(&self, op: OpId) -> impl Iterator<Item = KernelId> + '_ {
        self.ops[op].successors.iter().filter_map(|&(next, edge)| match self.ops[next].kind {
            OpKind::Kernel(kernel) if edge == Edge::Dependent => Some(kernel),
            _ => None,
        })
    }

    pub(crate) fn kind(&self, op: OpId) -> OpKind {
        self.ops[op].kind
    }

    /// Whether everything is complete.
    pub(crate) fn finished(&self) -> bool {
        self.unfinished == 0
    }

    /// Operations that are not complete.
    pub(crate) fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Whether issued work waits for other work.
    pub(crate) fn holds_work(&self) -> bool {
        self.held > 0
    }
}
