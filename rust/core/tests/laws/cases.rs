//! Random devices, kernels and programs: small, and odd in every way that is allowed.
//!
//! A case is drawn as a plan of plain numbers and then fitted to its device, so that it shrinks number by number.

use std::collections::BTreeMap;
use std::time::Instant;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wavesim::device::{
    Deal, Device, Dispatch, Gpc, Group, LaunchTimings, Replacement, Shape, SyncTimings, Topology, WritePolicy,
    catalogue,
};
use wavesim::ids::SmId;
use wavesim::records::Records;
use wavesim::workload::work::{Needs, Tasks};
use wavesim::workload::{
    Access, Copy, Duration, Graph, Item, Kernel, Launch, Pattern, Program, Record, Span, Stream, Times, Wait, Work,
};
use wavesim::{Dispatcher, Options, Result, simulate};

/// A device, what runs on it, and how.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) device: Device,
    pub(crate) program: Program,
    pub(crate) arrays: Vec<Vec<f64>>,
    pub(crate) options: Options,
}

impl Case {
    /// One kernel on a device, with the ideal dispatcher.
    pub(crate) fn ideal(device: Device, kernel: Kernel) -> Self {
        let options = Options { dispatcher: Dispatcher::Ideal, ..Options::default() };
        Self { device, program: Program::of(kernel), arrays: Vec::new(), options }
    }

    pub(crate) fn simulate(&self) -> Records {
        self.simulate_with(&self.options).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs it with other options. A run that does not end is stopped, so that it fails as one that was interrupted.
    pub(crate) fn simulate_with(&self, options: &Options) -> Result<Records> {
        const LONGEST_SECONDS: u64 = 20;
        let arrays: Vec<&[f64]> = self.arrays.iter().map(Vec::as_slice).collect();
        let start = Instant::now();
        let mut stop = || start.elapsed().as_secs() > LONGEST_SECONDS;
        simulate(&self.device, &self.program, &arrays, options, &mut stop)
    }

    /// The launches in the order of the records.
    pub(crate) fn launches(&self) -> Vec<&Launch> {
        let items = self.program.items.iter().flat_map(|item| match item {
            Item::Graph(graph) => graph.items.as_slice(),
            other => std::slice::from_ref(other),
        });
        items.filter_map(|item| if let Item::Launch(launch) = item { Some(launch) } else { None }).collect()
    }

    /// The kernels of the launches.
    pub(crate) fn kernels(&self) -> Vec<&Kernel> {
        self.launches().into_iter().map(|launch| &self.program.kernels[launch.kernel]).collect()
    }
}

/// The same cases each time, unless the environment asks for others.
pub(crate) fn config() -> ProptestConfig {
    let asked = ProptestConfig::default();
    let set = |name: &str| std::env::var_os(name).is_some();
    ProptestConfig {
        cases: if set("PROPTEST_CASES") { asked.cases } else { 96 },
        rng_seed: if set("PROPTEST_RNG_SEED") { asked.rng_seed } else { RngSeed::Fixed(7) },
        failure_persistence: None,
        ..asked
    }
}

/// The same timings with every time of the unit set to zero.
fn zeroed<T: Serialize + DeserializeOwned>(timings: &T, unit: &str) -> T {
    let mut json = serde_json::to_value(timings).unwrap();
    for (_, value) in json.as_object_mut().unwrap().iter_mut().filter(|(name, _)| name.ends_with(unit)) {
        *value = 0.0.into();
    }
    serde_json::from_value(json).unwrap()
}

/// A dispatcher that takes no time.
pub(crate) fn free_dispatch(device: &Device) -> Dispatch {
    zeroed(&device.dispatch, "_cycles")
}

/// Launches that take no time.
fn free_launch(device: &Device) -> LaunchTimings {
    zeroed(&device.launch, "_ns")
}

/// Atomics that take no time; only polls of a barrier stay apart.
fn free_sync(device: &Device) -> SyncTimings {
    SyncTimings { barrier_poll_cycles: 50.0, ..zeroed(&device.sync, "_cycles") }
}

/// The device when nothing but work takes time.
pub(crate) fn without_overhead(device: &Device) -> Device {
    Device { dispatch: free_dispatch(device), launch: free_launch(device), sync: free_sync(device), ..device.clone() }
}

const NAMES: [&str; 6] = ["h200", "a100-sxm4-80", "l40s", "v100-sxm2", "mi300x", "b200"];

/// The groups' sizes, whether it is far, and whether its last group takes small clusters only.
type GpcPlan = (Vec<usize>, bool, Option<u32>);

fn topology(gpcs: &[GpcPlan], halves: u8, backwards: bool) -> Topology {
    let count: usize = gpcs.iter().flat_map(|(sizes, _, _)| sizes).sum();
    let mut numbers: Vec<SmId> = (0..count as u16).map(SmId).collect();
    if backwards {
        numbers.reverse();
    }
    let mut numbers = numbers.into_iter();
    let gpc = |(i, (sizes, far, max_cluster)): (usize, &GpcPlan)| {
        let last = sizes.len() - 1;
        let group = |(j, &size)| Group {
            sms: numbers.by_ref().take(size).collect(),
            max_cluster: max_cluster.filter(|_| j == last),
        };
        let groups = sizes.iter().enumerate().map(group).collect();
        Gpc { groups, half: (i % usize::from(halves)) as u8, far: *far }
    };
    Topology { gpcs: gpcs.iter().enumerate().map(gpc).collect() }
}

/// A device of the catalogue: scaled, or with GPCs of uneven sizes; with its own timings, with odd ones or with none.
pub(crate) fn devices() -> impl Strategy<Value = Device> {
    let gpc = (prop::collection::vec(1..=5_usize, 1..=2), any::<bool>(), prop::option::weighted(0.3, 1..=2_u32));
    let shape =
        prop_oneof![(1..=40_usize).prop_map(Ok), (prop::collection::vec(gpc, 1..=5), any::<bool>()).prop_map(Err),];
    let timings = (0..4_u8, 0..4_u8, 0..3_u8, prop::sample::select(vec![1_u32, 2, 128]));
    let odd = (0.0..40.0_f64, 0.0..400.0_f64, prop::sample::select(vec![500.0, 1_000.0, 1_980.0]));
    let round_robin = prop::bool::weighted(0.2);
    (prop::sample::select(NAMES.to_vec()), shape, timings, odd, round_robin).prop_map(
        |(name, shape, (dispatch, launch, sync, resident_kernels), (cycles, ns, sm_mhz), round_robin)| {
            let named = catalogue::device(name).unwrap();
            let mut device = match shape {
                Ok(sms) => named.scaled(sms).unwrap(),
                Err((gpcs, backwards)) => Device { topology: topology(&gpcs, named.l2.halves, backwards), ..named },
            };
            device.clock.sm_mhz = sm_mhz;
            if round_robin {
                device.dispatch.deal = Deal::RoundRobin;
            }
            match dispatch {
                0 => device.dispatch = free_dispatch(&device),
                1 => {
                    device.dispatch.refill_cycles = cycles;
                    device.dispatch.visit_cycles = cycles / 3.0;
                    device.dispatch.far_send_cycles = 10.0 * cycles;
                    device.dispatch.setup_warp_cycles = cycles;
                }
                _ => {}
            }
            match launch {
                0 => device.launch = free_launch(&device),
                1 => {
                    device.launch.host_issue_ns = ns;
                    device.launch.drain_ns = 10.0 * ns;
                    device.launch.dependent_gap_ns = ns / 7.0;
                }
                _ => {}
            }
            if sync == 0 {
                device.sync = free_sync(&device);
            }
            device.launch.resident_kernels = resident_kernels;
            // As many policies as there are timings: which go together says nothing.
            device.l2.replacement =
                [Replacement::Lru, Replacement::NotRecentlyUsed, Replacement::Random, Replacement::Protected]
                    [usize::from(dispatch)];
            if launch == 0 {
                device.l2.write_policy = WritePolicy::WriteThrough;
            }
            // Says nothing to the model, and much where a case is printed.
            device.provenance.clear();
            device.validate().unwrap();
            device
        },
    )
}

/// How long CTAs take: the kind, and two lengths in tenths of a nanosecond.
type LengthPlan = (u8, u32, u32);

fn length() -> impl Strategy<Value = LengthPlan> {
    (0..8_u8, 0..20_000_u32, 0..20_000_u32)
}

fn duration((kind, a, b): LengthPlan, count: u64, arrays: &mut Vec<Vec<f64>>) -> Duration {
    let (low, high) = (f64::from(a.min(b)) / 10.0, f64::from(a.max(b)) / 10.0);
    let ns = Span::Ns;
    match kind {
        0 => Duration::Constant(ns(low)),
        1 => Duration::Constant(Span::Cycles(high)),
        2 => Duration::Uniform { low: ns(low), high: ns(high) },
        3 => Duration::Normal { mean: ns(low), std: ns(high) },
        4 => Duration::LogNormal { mean: ns(high), cv: 0.5 },
        5 => Duration::Exponential { mean: Span::Cycles(low) },
        6 => Duration::Bimodal { low: ns(low), high: ns(high), high_share: 0.25 },
        _ => {
            let value = |i| low + (high - low) * (i as f64 * 0.618).fract();
            arrays.push((0..count).map(value).collect());
            Duration::PerCta { array: arrays.len() - 1, unit: ns(1.0) }
        }
    }
}

#[derive(Clone, Debug)]
enum Job {
    Plain,
    Tasks { tasks: u64, schedule: Tasks, overhead: f64 },
    Chain { distance: u64, lists: bool },
    Barrier { rounds: u32 },
    Memory(AccessPlan),
}

/// Memory work: which pattern, three numbers for its sizes, whether it writes, and which buffer.
#[derive(Clone, Debug)]
struct AccessPlan {
    pattern: u8,
    bytes: u64,
    count: u64,
    skew: u64,
    write: bool,
    buffer: u16,
}

fn access_plan() -> impl Strategy<Value = AccessPlan> {
    let sizes = (prop::sample::select(vec![1_u64, 32, 100, 128, 512, 4096, 10_000]), 1..=30_u64, 0..=700_u64);
    (0..9_u8, sizes, prop::bool::weighted(0.3), 0..2_u16).prop_map(|(pattern, (bytes, count, skew), write, buffer)| {
        AccessPlan { pattern, bytes, count, skew, write, buffer }
    })
}

fn access(plan: &AccessPlan, ctas: u64, overhead: LengthPlan, arrays: &mut Vec<Vec<f64>>) -> Access {
    let &AccessPlan { pattern, bytes, count, skew, write, buffer } = plan;
    let pattern = match pattern {
        0 => Pattern::Stream { bytes },
        1 => Pattern::Reuse { chunk_bytes: bytes, chunks: count, passes: 2, shift: skew % 7 },
        2 => Pattern::Panels { a_bytes: bytes, b_bytes: 512, steps: 3, tiles_m: ctas, tiles_n: 1, order: None },
        3 => Pattern::Attention {
            q_bytes: bytes,
            kv_bytes: 512,
            steps: 4,
            q_tiles: ctas,
            heads: 1,
            kv_heads: 1,
            causal: skew % 2 == 0,
        },
        4 => Pattern::Strided { piece_bytes: bytes, pieces: count, stride_bytes: skew, cta_stride_bytes: bytes },
        5 => Pattern::Random { bytes: bytes * (1 + skew), piece_bytes: bytes, pieces: count },
        6 => {
            arrays.push((0..ctas * count).map(|i| (i * skew % 100_000) as f64).collect());
            Pattern::Listed { offsets: arrays.len() - 1, piece_bytes: bytes }
        }
        7 => Pattern::Broadcast { bytes, skew_bytes: skew },
        _ => Pattern::Chase { bytes: 32 * count, stride_bytes: 32, loads: count },
    };
    let (startup, finish) = (Span::Ns(f64::from(overhead.1) / 10.0), Span::Cycles(f64::from(overhead.2) / 100.0));
    let cold = (skew % 3 == 0).then_some(Span::Ns(0.0));
    let times = Times { startup, cold, overhead: Span::Cycles(20.0), finish };
    Access { pattern, write, buffer, buffer_bytes: None, times }
}

fn job() -> impl Strategy<Value = Job> {
    let schedule = prop_oneof![Just(Tasks::Static), Just(Tasks::Atomic)];
    let tasks = (0..=150_u64, schedule, 0.0..100.0_f64);
    prop_oneof![
        4 => Just(Job::Plain),
        1 => tasks.prop_map(|(tasks, schedule, overhead)| Job::Tasks { tasks, schedule, overhead }),
        1 => (1..=40_u64, any::<bool>()).prop_map(|(distance, lists)| Job::Chain { distance, lists }),
        1 => (0..=3_u32).prop_map(|rounds| Job::Barrier { rounds }),
        2 => access_plan().prop_map(Job::Memory),
    ]
}

/// A kernel before it is fitted to a device.
#[derive(Clone, Debug)]
pub(crate) struct KernelPlan {
    grid: u32,
    block: u32,
    registers: u32,
    shared_kb: u32,
    cluster: u32,
    cluster_launch: bool,
    barriers: u32,
    job: Job,
    lengths: [LengthPlan; 2],
}

pub(crate) fn kernels() -> impl Strategy<Value = KernelPlan> {
    let shape = (
        1..=200_u32,
        prop::sample::select(vec![1_u32, 32, 64, 96, 256, 1_000, 1_024]),
        prop::sample::select(vec![16_u32, 32, 64, 128]),
        prop::sample::select(vec![0_u32, 0, 1, 7, 20, 48, 100]),
    );
    let cluster = (prop::sample::select(vec![1_u32, 1, 1, 2, 3, 4]), prop::bool::weighted(0.1), 1..=4_u32);
    (shape, cluster, job(), [length(), length()]).prop_map(
        |((grid, block, registers, shared_kb), (cluster, cluster_launch, barriers), job, lengths)| KernelPlan {
            grid,
            block,
            registers,
            shared_kb,
            cluster,
            cluster_launch,
            barriers,
            job,
            lengths,
        },
    )
}

/// What the occupancy rules are asked about a kernel.
pub(crate) fn shape_of(kernel: &Kernel) -> Shape {
    Shape {
        threads: kernel.threads(),
        registers: kernel.registers,
        accumulation_registers: 0,
        shared_bytes: kernel.shared_memory,
        barriers: kernel.barriers,
        cluster: kernel.cluster,
        cluster_launch: kernel.cluster_launch || kernel.cluster > 1,
        non_portable_cluster: kernel.non_portable_cluster,
    }
}

/// The kernel of a plan as this device launches it.
pub(crate) fn fitted(plan: &KernelPlan, device: &Device, arrays: &mut Vec<Vec<f64>>) -> Kernel {
    let mut kernel = Kernel {
        name: "planned".to_owned(),
        registers: plan.registers,
        shared_memory: plan.shared_kb * 1024,
        cluster: plan.cluster,
        cluster_launch: plan.cluster_launch,
        barriers: plan.barriers,
        ..Kernel::of(1, plan.block)
    };
    let dealt = device.dispatch.deal == Deal::RoundRobin;
    if dealt || matches!(plan.job, Job::Barrier { .. }) || !device.occupancy(&shape_of(&kernel)).launchable {
        (kernel.cluster, kernel.cluster_launch) = (1, false);
    }
    if !device.occupancy(&shape_of(&kernel)).launchable {
        (kernel.registers, kernel.shared_memory, kernel.barriers) = (32, 0, 1);
    }
    let residency = device.occupancy(&shape_of(&kernel)).ctas_per_sm;
    let mut grid = plan.grid.next_multiple_of(kernel.cluster);
    if let Job::Barrier { .. } = plan.job {
        // Where CTAs are dealt by their number, the smallest GPC says how many can be there at once.
        let gpcs = &device.topology.gpcs;
        let least = gpcs.iter().map(Gpc::sm_count).min().unwrap_or(1);
        let sms = if dealt { least * gpcs.len() } else { device.sm_count() };
        grid = grid.min(sms as u32 * residency);
    }
    kernel.grid = [grid, 1, 1];
    let ctas = u64::from(grid);
    let [first, second] = plan.lengths;
    kernel.work = match plan.job {
        Job::Plain => Work::Duration(duration(first, ctas, arrays)),
        Job::Tasks { tasks, schedule, overhead } => Work::Persistent {
            tasks,
            duration: duration(first, tasks, arrays),
            schedule,
            overhead: Span::Cycles(overhead),
            startup: Span::Cycles(2.0 * overhead),
        },
        // Dealt by number, CTAs of two kernels can hold each other's places: a deadlock, and rightly so.
        Job::Chain { .. } if dealt => Work::Duration(duration(second, ctas, arrays)),
        Job::Chain { distance, lists } => Work::Chain {
            before: duration(first, ctas, arrays),
            after: duration(second, ctas, arrays),
            needs: if lists { needs_of(ctas, distance, arrays) } else { Needs::Previous { distance } },
        },
        Job::Barrier { rounds } => {
            kernel.cooperative = true;
            Work::GridSync { rounds, duration: duration(first, ctas, arrays) }
        }
        Job::Memory(ref plan) => Work::Access(access(plan, ctas, first, arrays)),
    };
    kernel
}

/// Each CTA waits for two that come before it, or fewer.
fn needs_of(ctas: u64, distance: u64, arrays: &mut Vec<Vec<f64>>) -> Needs {
    let far = |cta: u64| if cta >= distance { (cta - distance) as f64 } else { -1.0 };
    let half = |cta: u64| if cta > 0 && !cta.is_multiple_of(3) { (cta / 2) as f64 } else { -1.0 };
    arrays.push((0..ctas).map(far).collect());
    arrays.push((0..ctas).map(half).collect());
    Needs::Lists { arrays: vec![arrays.len() - 2, arrays.len() - 1] }
}

/// An item: its kind, its kernel or event, its stream, when at the earliest, and dependent or trigger.
type ItemPlan = (u8, u8, u32, Option<u32>, (bool, bool));

fn item() -> impl Strategy<Value = ItemPlan> {
    (0..9_u8, 0..3_u8, 0..3_u32, prop::option::weighted(0.3, 0..30_000_u32), any::<(bool, bool)>())
}

fn fitted_item(plan: &ItemPlan, kernels: usize, recorded: &mut [bool; 3], in_graph: bool) -> Item {
    let &(kind, which, stream, at, (dependent, trigger)) = plan;
    let at_ns = at.filter(|_| !in_graph).map(|tenths| f64::from(tenths) / 10.0);
    let event = ["a", "b", "c"][usize::from(which)].to_owned();
    match kind {
        6 => Item::Copy(Copy { duration: Span::Ns(f64::from(at.unwrap_or(70))), stream, at_ns }),
        7 => {
            recorded[usize::from(which)] = true;
            Item::Record(Record { event, stream })
        }
        8 if recorded[usize::from(which)] => Item::Wait(Wait { event, stream }),
        _ => {
            let kernel = usize::from(which) % kernels;
            Item::Launch(Launch { kernel, stream, at_ns, dependent, trigger })
        }
    }
}

/// Up to three kernels, launched on three streams of several priorities, between copies, events and graphs.
pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let plans = (
        prop::collection::vec(kernels(), 1..=3),
        prop::collection::vec((item(), prop::option::weighted(0.15, prop::collection::vec(item(), 1..=4))), 1..=6),
        [-6..=1_i32, -6..=1, -6..=1],
    );
    let dispatcher = prop_oneof![Just(Dispatcher::Hardware), Just(Dispatcher::Ideal)];
    (devices(), plans, any::<u64>(), dispatcher).prop_map(|(device, (kernels, items, priorities), seed, dispatcher)| {
        let mut arrays = Vec::new();
        let kernels: Vec<Kernel> = kernels.iter().map(|plan| fitted(plan, &device, &mut arrays)).collect();
        let mut recorded = [false; 3];
        let mut made: Vec<Item> = Vec::new();
        for (plan, inside) in &items {
            made.push(match inside {
                None => fitted_item(plan, kernels.len(), &mut recorded, false),
                Some(inside) => {
                    let mut recorded = [false; 3];
                    let inner = inside.iter().map(|plan| fitted_item(plan, kernels.len(), &mut recorded, true));
                    Item::Graph(Graph { items: inner.collect(), stream: plan.2, at_ns: None })
                }
            });
        }
        // Of two kernels with grid barriers, each could hold places that the other needs.
        let barriers = kernels.iter().any(|kernel| matches!(kernel.work, Work::GridSync { .. }));
        let streams = if barriers {
            BTreeMap::new()
        } else {
            (0..).zip(priorities.map(|priority| Stream { priority })).collect()
        };
        let program = Program { kernels, items: made, streams };
        let options = Options { seed, dispatcher, ..Options::default() };
        Case { device, program, arrays, options }
    })
}

/// One launch of one kernel.
pub(crate) fn single_kernels() -> impl Strategy<Value = Case> {
    (cases(), kernels()).prop_map(|(case, plan)| {
        let mut arrays = Vec::new();
        let kernel = fitted(&plan, &case.device, &mut arrays);
        Case { program: Program::of(kernel), arrays, ..case }
    })
}

/// Programs in which each CTA just runs for its time, without clusters.
pub(crate) fn plain_cases() -> impl Strategy<Value = Case> {
    cases().prop_map(|mut case| {
        case.device.dispatch.deal = Deal::GpcBursts;
        let arrays = &mut case.arrays;
        for (i, kernel) in case.program.kernels.iter_mut().enumerate() {
            (kernel.cluster, kernel.cluster_launch, kernel.cooperative) = (1, false, false);
            if !matches!(kernel.work, Work::Duration(_)) {
                kernel.work = Work::Duration(duration((7, 40, 9_000 + i as u32), kernel.ctas(), arrays));
            }
        }
        case
    })
}
