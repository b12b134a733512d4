//! The front end against a second one, written down in the plainest way: the host's calls, streams, events and graphs.

use std::collections::BTreeMap;

use proptest::prelude::*;
use wavesim::records::Records;
use wavesim::workload::Item;

use super::cases::{Case, cases, config, free_dispatch};
use super::view::{of_kernel, rows};

fn ps(ns: f64) -> u64 {
    (ns * 1e3).round() as u64
}

/// An operation that a stream's next one waits for: when it is done, when a dependent launch behind it may go, the gap to
/// the next, and whether it is a kernel.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    op: usize,
    done: u64,
    signalled: u64,
    gap: u64,
    kernel: bool,
}

/// When each launch was issued, and when it is ready at the earliest.
fn expected(case: &Case, records: &Records) -> Vec<(u64, u64)> {
    let launch = &case.device.launch;
    let mut out = Vec::new();
    let mut host = 0;
    let mut ops = 0;
    let mut streams: BTreeMap<u32, Vec<Ahead>> = BTreeMap::new();
    let mut events = BTreeMap::new();
    for item in &case.program.items {
        let (items, graph) = match item {
            Item::Graph(graph) => (graph.items.as_slice(), Some(graph)),
            other => (std::slice::from_ref(other), None),
        };
        let at = match item {
            Item::Launch(launch) => launch.at_ns,
            Item::Copy(copy) => copy.at_ns,
            Item::Graph(graph) => graph.at_ns,
            _ => None,
        };
        let issue = host.max(ps(at.unwrap_or(0.0)));
        let root = graph.and_then(|graph| streams.get(&graph.stream).cloned()).unwrap_or_default();
        let gap = ps(if graph.is_some() { launch.graph_gap_ns } else { launch.stream_gap_ns });
        let (mut inside, mut inside_events) = (BTreeMap::new(), BTreeMap::new());
        let (streams_here, events_here) =
            if graph.is_some() { (&mut inside, &mut inside_events) } else { (&mut streams, &mut events) };
        let mut made: Vec<Ahead> = Vec::new();
        let mut waited_for: Vec<usize> = Vec::new();
        for item in items {
            match item {
                Item::Record(record) => {
                    let tail = streams_here.entry(record.stream).or_insert_with(|| root.clone()).clone();
                    events_here.insert(record.event.as_str(), tail);
                }
                Item::Wait(wait) => {
                    let tail = streams_here.entry(wait.stream).or_insert_with(|| root.clone());
                    let reached: Vec<Ahead> = events_here[wait.event.as_str()].clone();
                    for ahead in reached {
                        if tail.iter().all(|other| other.op != ahead.op) {
                            tail.push(ahead);
                        }
                    }
                }
                Item::Launch(of) => {
                    let tail = streams_here.entry(of.stream).or_insert_with(|| root.clone());
                    let loosened = of.dependent && tail.len() == 1 && tail[0].kernel;
                    let free = |ahead: &Ahead| {
                        if loosened { ahead.signalled + ps(launch.dependent_gap_ns) } else { ahead.done + ahead.gap }
                    };
                    let ready = tail.iter().map(free).max().unwrap_or(0).max(issue + ps(launch.submit_ns));
                    let id = out.len();
                    out.push((issue, ready));
                    let done = records.kernels.complete[id].0;
                    let signalled = if of.trigger { records.kernels.placed[id].0 } else { done };
                    waited_for.extend(tail.iter().map(|ahead| ahead.op));
                    made.push(Ahead { op: ops, done, signalled, gap, kernel: true });
                    *tail = vec![made[made.len() - 1]];
                    ops += 1;
                }
                Item::Copy(copy) => {
                    let tail = streams_here.entry(copy.stream).or_insert_with(|| root.clone());
                    let ready = tail.iter().map(|ahead| ahead.done + ahead.gap).max().unwrap_or(0);
                    let length = copy.duration.ps(case.device.clock.cycles_to_ps(1.0)).round() as u64;
                    let done = ready.max(issue + ps(launch.submit_ns)) + length;
                    waited_for.extend(tail.iter().map(|ahead| ahead.op));
                    made.push(Ahead { op: ops, done, signalled: done, gap, kernel: false });
                    *tail = vec![made[made.len() - 1]];
                    ops += 1;
                }
                Item::Graph(_) => unreachable!("a graph holds no graph"),
            }
        }
        if !made.is_empty() {
            host = issue + ps(launch.host_issue_ns);
        }
        if let Some(graph) = graph
            && !made.is_empty()
        {
            let last = made.iter().filter(|ahead| !waited_for.contains(&ahead.op));
            let gap = ps(launch.stream_gap_ns);
            streams.insert(graph.stream, last.map(|&ahead| Ahead { gap, ..ahead }).collect());
        }
    }
    out
}

fn without_triggers(item: &mut Item) {
    match item {
        Item::Launch(launch) => launch.trigger = false,
        Item::Graph(graph) => graph.items.iter_mut().for_each(without_triggers),
        _ => {}
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_kernel_is_issued_before_its_time_nor_ready_before_what_its_stream_waits_for(case in cases()) {
        let records = case.simulate();
        for (id, (issue, ready)) in expected(&case, &records).into_iter().enumerate() {
            prop_assert_eq!(records.kernels.issue[id].0, issue, "issue of launch {}", id);
            prop_assert!(records.kernels.ready[id].0 >= ready, "launch {id} is ready before {ready}");
        }
    }

    #[test]
    fn kernels_are_ready_exactly_when_all_that_they_wait_for_is_done(case in cases()) {
        let mut case = case;
        // Nothing between a kernel's last slot and its completion that the records do not tell.
        case.device.dispatch = free_dispatch(&case.device);
        case.device.launch.drain_ns = 0.0;
        case.device.launch.resident_kernels = 128;
        // When a signal arrives is not recorded; those launches are held by the law above.
        case.program.items.iter_mut().for_each(without_triggers);
        let records = case.simulate();
        for (id, (_, ready)) in expected(&case, &records).into_iter().enumerate() {
            prop_assert_eq!(records.kernels.ready[id].0, ready, "launch {}", id);
        }
    }

    #[test]
    fn no_cta_starts_before_its_kernel_is_ready(case in cases()) {
        let records = case.simulate();
        for row in rows(&records) {
            let ready = records.kernels.ready[row.kernel].0;
            prop_assert!(row.start >= ready && ready >= records.kernels.issue[row.kernel].0, "{row:?}");
        }
    }

    #[test]
    fn kernels_of_a_stream_run_one_after_the_other_unless_they_are_launched_dependent(case in cases()) {
        let records = case.simulate();
        let launches = case.launches();
        let graphs = case.program.items.iter().any(|item| matches!(item, Item::Graph(_)));
        prop_assume!(!graphs);
        for (id, launch) in launches.iter().enumerate() {
            let before = (0..id).rev().find(|&other| launches[other].stream == launch.stream);
            let Some(before) = before else { continue };
            let (start, end) = (records.kernels.start[id], records.kernels.end[before]);
            if !(launch.dependent && launches[before].trigger) {
                prop_assert!(start >= end, "launch {id} starts at {start}, before {before} ends at {end}");
            }
            // Its work waits in any case.
            for row in of_kernel(&rows(&records), id) {
                prop_assert!(row.end >= end.0);
            }
        }
    }
}
