//! Warp programs: closed forms, laws of issue, and the shared rates held to the exact mode.

use wavesim::device::{Device, IssuePolicy, catalogue};
use wavesim::records::warps::State;
use wavesim::records::{Records, States};
use wavesim::workload::{Item, Kernel, Launch, Pipe, Program, Segment, SharedKind, Source, Span, Warps, Work};
use wavesim::{IssueMode, Options, simulate};

const POLICIES: [IssuePolicy; 5] = [
    IssuePolicy::GreedyOldestCta,
    IssuePolicy::GreedyThenOldest,
    IssuePolicy::OldestFirst,
    IssuePolicy::LooseRoundRobin,
    IssuePolicy::TwoLevel,
];

fn scaled(sms: usize) -> Device {
    catalogue::device("h200").expect("the catalogue has it").scaled(sms).expect("as few SMs are a device")
}

fn one_sm() -> Device {
    scaled(1)
}

fn with(policy: IssuePolicy) -> Device {
    let mut device = one_sm();
    device.issue.policy = policy;
    device
}

fn kernel(ctas: u32, warps: u32, program: Vec<Segment>) -> Kernel {
    let none = Span::Ns(0.0);
    let work =
        Work::Warps(Warps { programs: vec![program], accesses: vec![], order: None, startup: none, finish: none });
    Kernel { work, ..Kernel::of(ctas, 32 * warps) }
}

fn run(device: &Device, program: &Program, issue: IssueMode) -> Records {
    let options = Options { issue, ..Options::default() };
    simulate(device, program, &[], &options, &mut || false).expect("the program runs")
}

fn of(device: &Device, kernel: Kernel, issue: IssueMode) -> Records {
    run(device, &Program::of(kernel), issue)
}

/// How long the CTAs ran on average, in cycles.
fn mean_cycles(device: &Device, records: &Records) -> f64 {
    let ctas = records.ctas.as_ref().expect("CTAs are recorded");
    let sum: u64 = ctas.start.iter().zip(&ctas.end).map(|(start, end)| end.0 - start.0).sum();
    sum as f64 / ctas.start.len() as f64 / device.clock.cycles_to_ps(1.0)
}

fn span_cycles(device: &Device, records: &Records) -> f64 {
    let span = records.kernels.end[0].0 - records.kernels.start[0].0;
    span as f64 / device.clock.cycles_to_ps(1.0)
}

fn chain(instructions: u64, chains: u32) -> Segment {
    Segment::Arithmetic { instructions, latency_cycles: None, chains, pipe: Pipe::Fma }
}

fn turns(count: u64, body: Vec<Segment>) -> Segment {
    Segment::Loop { count, body, unrolled: false }
}

fn load(cycles: f64) -> Segment {
    Segment::Load { instructions: 1, bytes: 128, from: Source::LatencyCycles(cycles), wait: true }
}

const BOTH: [IssueMode; 2] = [IssueMode::Rates, IssueMode::Exact];

/// What the SM takes to set up a CTA of one warp, before its first instruction is issued.
const SETUP: f64 = 4.0 + 3.5;

#[test]
fn a_lone_warp_takes_the_sum_of_its_latencies() {
    let device = one_sm();
    // 64 multiply-adds 4 cycles apart and a branch of 10; the last one is not taken, which takes 5.
    for issue in BOTH {
        let records = of(&device, kernel(1, 1, vec![turns(1_000, vec![chain(64, 1)])]), issue);
        let expected = SETUP + 1_000.0 * (64.0 * 4.0 + 10.0);
        let got = mean_cycles(&device, &records);
        assert!((got - expected).abs() < 10.0, "{issue:?}: {got} cycles, expected {expected}");
    }
}

#[test]
fn independent_chains_fill_the_latency() {
    let device = one_sm();
    for (chains, cycles) in [(1, 4.0), (2, 2.0), (4, 1.0), (8, 1.0)] {
        let unrolled = Segment::Loop { count: 1_000, body: vec![chain(64, chains)], unrolled: true };
        let records = of(&device, kernel(1, 1, vec![unrolled]), IssueMode::Exact);
        let each = (mean_cycles(&device, &records) - SETUP) / 64_000.0;
        assert!((each - cycles).abs() < 0.01, "{chains} chains: {each} cycles an instruction");
    }
}

#[test]
fn a_load_that_is_waited_for_takes_its_latency_and_one_that_is_not_hides_behind_arithmetic() {
    let device = one_sm();
    let with = |wait, behind: Vec<Segment>| {
        let load = Segment::Load { instructions: 1, bytes: 128, from: Source::LatencyCycles(300.0), wait };
        let mut body = vec![load];
        body.extend(behind);
        let unrolled = Segment::Loop { count: 200, body, unrolled: true };
        (mean_cycles(&device, &of(&device, kernel(1, 1, vec![unrolled]), IssueMode::Exact)) - SETUP) / 200.0
    };
    let (waits, hidden) = (with(true, vec![chain(50, 1)]), with(false, vec![chain(50, 1), Segment::Wait]));
    assert!((waits - 500.0).abs() < 5.0, "{waits} cycles for 300 and 200 one after the other");
    assert!((hidden - 300.0).abs() < 5.0, "{hidden} cycles for 200 behind 300");
}

#[test]
fn a_load_of_any_latency_takes_it_in_both_modes() {
    let device = one_sm();
    for (latency, count) in [(0.0, 1_000), (5_000.0, 10), (50_000.0, 10), (1_000_000.0, 3)] {
        for issue in BOTH {
            let turn = vec![load(latency), chain(8, 1)];
            let records = of(&device, kernel(1, 2, vec![turns(count, turn)]), issue);
            let each = mean_cycles(&device, &records) / count as f64;
            assert!((latency..latency * 1.01 + 70.0).contains(&each), "{issue:?}: {each} cycles for {latency}");
        }
    }
}

#[test]
fn a_run_of_more_than_its_longest_time_is_refused() {
    let device = one_sm();
    let slow =
        Segment::Arithmetic { instructions: 1 << 40, latency_cycles: Some(1_000_000), chains: 1, pipe: Pipe::Fma };
    let program = Program::of(kernel(1, 1, vec![slow]));
    let refused = simulate(&device, &program, &[], &Options::default(), &mut || false).unwrap_err().to_string();
    assert!(refused.contains("a run lasts at most"), "{refused}");
}

#[test]
fn a_barrier_costs_two_cycles_a_warp_and_a_latency() {
    let device = one_sm();
    for (warps, cycles) in [(1, 16.0), (8, 30.0), (32, 78.0)] {
        let unrolled = Segment::Loop { count: 500, body: vec![Segment::Barrier], unrolled: true };
        let records = of(&device, kernel(1, warps, vec![unrolled]), IssueMode::Exact);
        let each = (span_cycles(&device, &records)) / 500.0;
        assert!((each - cycles).abs() < 2.0, "{warps} warps: {each} cycles a barrier");
    }
}

#[test]
fn tensor_cores_are_kept_as_long_as_the_device_says() {
    let device = one_sm();
    let tensor = Segment::Tensor { instructions: 64, interval_cycles: None, latency_cycles: None, chains: 16 };
    // Four warps for each of four tensor cores.
    let records = of(&device, kernel(1, 16, vec![turns(500, vec![tensor])]), IssueMode::Exact);
    let each = span_cycles(&device, &records) / (500.0 * 64.0 * 4.0);
    assert!((each - 4.0).abs() < 0.05, "{each} cycles an instruction");
}

#[test]
fn every_instruction_is_issued_once_whatever_the_policy() {
    for policy in POLICIES {
        let device = with(policy);
        let program = vec![turns(30, vec![load(300.0), chain(20, 2), Segment::Barrier])];
        let records = of(&device, kernel(6, 8, program), IssueMode::Exact);
        let issued = records.warps.cycles[0][State::Selected as usize];
        // A load, 20, a barrier and a branch a turn, and an exit.
        assert_eq!(issued.round() as u64, 6 * 8 * (30 * 23 + 1), "{policy:?}");
        let slots = span_cycles(&device, &records) * f64::from(device.limits.sub_partitions);
        assert!(issued <= slots, "{policy:?}: {issued} instructions in {slots} slots");
    }
}

#[test]
fn states_add_up_to_the_warps_time() {
    for issue in BOTH {
        let device = one_sm();
        let body = vec![load(250.0), chain(10, 1), Segment::Barrier];
        let records = of(&device, kernel(4, 4, vec![turns(100, body)]), issue);
        let all: f64 = records.warps.cycles[0].iter().sum();
        let resident = mean_cycles(&device, &records) * 4.0 * 4.0;
        assert!((all / resident - 1.0).abs() < 0.01, "{issue:?}: {all} cycles in states of {resident}");
    }
    assert_eq!(States::default().total(), 0);
}

#[test]
fn more_warps_never_lower_the_throughput_of_a_fair_policy() {
    let device = with(IssuePolicy::LooseRoundRobin);
    for body in [vec![chain(32, 1)], vec![load(300.0), chain(16, 1)], vec![chain(16, 4), Segment::Barrier]] {
        let mut best = 0.0_f64;
        for warps in [4, 8, 16, 24, 32] {
            let records = of(&device, kernel(1, warps, vec![turns(200, body.clone())]), IssueMode::Exact);
            let throughput = f64::from(warps) / span_cycles(&device, &records);
            assert!(throughput > best * 0.995, "{warps} warps of {body:?}: {throughput} after {best}");
            best = best.max(throughput);
        }
    }
}

#[test]
fn the_older_of_two_ctas_ends_earlier_and_the_younger_one_loses_nothing_to_a_fair_share() {
    let device = one_sm();
    let program = vec![turns(400, vec![chain(64, 1)])];
    for issue in BOTH {
        let records = of(&device, kernel(2, 16, program.clone()), issue);
        let ctas = records.ctas.as_ref().expect("CTAs are recorded");
        let lasted = |cta: usize| (ctas.end[cta].0 - ctas.start[cta].0) as f64;
        let ratio = lasted(1) / lasted(0);
        assert!((1.9..2.1).contains(&ratio), "{issue:?}: {ratio}");
    }
}

#[test]
fn a_kernel_beside_another_slows_both_and_each_does_its_work_once() {
    let device = one_sm();
    let work = |turn| vec![turns(turn, vec![chain(64, 1)])];
    let alone = mean_cycles(&device, &of(&device, kernel(1, 16, work(2_000)), IssueMode::Rates));
    let launch =
        |kernel, stream| Item::Launch(Launch { kernel, stream, at_ns: None, dependent: false, trigger: false });
    let program = Program {
        kernels: vec![kernel(1, 16, work(2_000)), kernel(1, 16, work(1_000))],
        items: vec![launch(0, 0), launch(1, 1)],
        ..Program::default()
    };
    for issue in BOTH {
        let records = run(&device, &program, issue);
        for (kernel, turns) in [(0, 2_000.0), (1, 1_000.0)] {
            let issued = records.warps.cycles[kernel][State::Selected as usize];
            let due = 16.0 * turns * 65.0;
            assert!((issued / due - 1.0).abs() < 0.005, "{issue:?}: kernel {kernel} issued {issued} of {due}");
        }
        let both = records.kernels.end[1].max(records.kernels.end[0]).0 - records.kernels.start[0].0;
        let cycles = both as f64 / device.clock.cycles_to_ps(1.0);
        assert!(cycles > 1.3 * alone, "{issue:?}: {cycles} cycles for both, {alone} for one alone");
    }
}

#[test]
fn both_modes_tell_what_warps_wait_for_where_some_are_not_served_for_long() {
    let device = one_sm();
    let unit = Segment::Shared { instructions: 8, kind: SharedKind::Load, ways: 8, wait: false };
    let [rates, exact] = BOTH.map(|issue| {
        let cycles =
            of(&device, kernel(8, 8, vec![turns(60, vec![unit.clone(), Segment::Wait])]), issue).warps.cycles[0];
        let sum: f64 = cycles.iter().sum();
        cycles.map(|state| state / sum)
    });
    assert!(exact[State::MioThrottle as usize] > 0.9, "{exact:?}");
    assert!(rates.iter().zip(exact).all(|(rate, exact)| (rate - exact).abs() < 0.01), "{rates:?} {exact:?}");
}

#[test]
fn runs_repeat_in_both_modes() {
    let device = scaled(8);
    let near = Source::FootprintBytes(1 << 20);
    let body = vec![Segment::Load { instructions: 1, bytes: 128, from: near, wait: true }, chain(16, 1)];
    for issue in BOTH {
        let once = of(&device, kernel(100, 4, vec![turns(20, body.clone())]), issue);
        let again = of(&device, kernel(100, 4, vec![turns(20, body.clone())]), issue);
        assert_eq!(once.digest, again.digest, "{issue:?}");
    }
}

/// Xorshift (Marsaglia 2003).
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    fn segment(&mut self, barriers: bool) -> Segment {
        match self.below(if barriers { 10 } else { 9 }) {
            0..=4 => {
                let pipe = self.of(&[Pipe::Fma, Pipe::Fma, Pipe::Alu, Pipe::Heavy, Pipe::Other]);
                let chains = self.of(&[1, 1, 2, 4]);
                Segment::Arithmetic { instructions: 1 + self.below(60), latency_cycles: None, chains, pipe }
            }
            5 => {
                let chains = self.of(&[1, 2, 4, 8]);
                let instructions = 1 + self.below(16);
                Segment::Tensor { instructions, interval_cycles: None, latency_cycles: None, chains }
            }
            6 => {
                let kind = self.of(&[SharedKind::Load, SharedKind::Store, SharedKind::Constant]);
                Segment::Shared { instructions: 1 + self.below(4), kind, ways: self.of(&[1, 1, 2, 4]), wait: true }
            }
            7 | 8 => {
                let from = Source::FootprintBytes(self.of(&[1 << 20, 40 << 20, 1 << 30]));
                Segment::Load { instructions: 1 + self.below(3), bytes: 128, from, wait: true }
            }
            _ => Segment::Barrier,
        }
    }

    /// Up to three loops, of segments and of loops.
    fn program(&mut self) -> Vec<Segment> {
        let barriers = self.below(2) == 0;
        let loops = 1 + self.below(3);
        (0..loops)
            .map(|_| {
                let count = 1 + self.below(5);
                let mut body: Vec<Segment> = (0..count).map(|_| self.segment(barriers)).collect();
                if self.below(4) == 0 {
                    body.push(turns(2 + self.below(10), vec![self.segment(barriers), chain(4, 1)]));
                }
                turns(60 + self.below(140), body)
            })
            .collect()
    }
}

/// How far mean CTA times by rates are from stepped ones, for so many random programs on a die of several SMs (a single one is
/// mostly stepped in both modes), the nearest first.
fn apart(policies: &[IssuePolicy], programs: usize, seed: u64) -> Vec<f64> {
    const SMS: u32 = 6;
    let mut draws = Draws(seed);
    let mut errors: Vec<f64> = (0..programs)
        .map(|_| {
            let mut device = scaled(SMS as usize);
            device.issue.policy = draws.of(policies);
            let warps = draws.of(&[1, 2, 3, 4, 6, 8, 12, 16]);
            let ctas = 1 + draws.below(u64::from((64 / warps).min(8))) as u32;
            let program = draws.program();
            let [rates, exact] = in_both(&device, &kernel(ctas * SMS, warps, program));
            (rates / exact - 1.0).abs()
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    println!("mean {:.4}, {errors:.4?}", errors.iter().sum::<f64>() / programs as f64);
    errors
}

#[test]
fn shared_rates_are_within_three_percent_of_exact_on_random_programs() {
    let errors = apart(&[IssuePolicy::GreedyOldestCta], 30, 12_345);
    assert!(errors.iter().sum::<f64>() < 0.006 * 30.0, "{errors:?}");
    assert!(errors[29] < 0.03, "{errors:?}");
}

#[test]
fn so_are_nearly_all_under_other_policies() {
    let errors = apart(&POLICIES[1..], 30, 88_172_645_463_325_252);
    assert!(errors.iter().sum::<f64>() < 0.01 * 30.0, "{errors:?}");
    assert!(errors[28] < 0.03, "{errors:?}");
    assert!(errors[29] < 0.12, "{errors:?}");
}

#[test]
fn a_run_in_which_ever_other_warps_meet_is_stepped_if_that_takes_no_longer() {
    // Unfair policies let each warp get on at its own pace, so that hardly any set comes twice.
    let program: Vec<Segment> =
        (1..=6).map(|loops| turns(100, vec![chain(10 * loops, 1 + loops as u32 % 3)])).collect();
    for (sms, stepped) in [(1, true), (132, false)] {
        let device = Device { issue: with(IssuePolicy::OldestFirst).issue, ..scaled(sms) };
        let kernel = kernel(8 * sms as u32, 8, program.clone());
        let [rates, exact] = BOTH.map(|issue| of(&device, kernel.clone(), issue).digest);
        assert_eq!(rates == exact, stepped, "{sms} SMs");
    }
}

/// Mean CTA times by rates and exactly.
fn in_both(device: &Device, kernel: &Kernel) -> [f64; 2] {
    BOTH.map(|issue| mean_cycles(device, &of(device, kernel.clone(), issue)))
}

#[test]
fn sub_partitions_with_fewer_warps_of_a_cta_get_ahead_of_the_others() {
    let device = one_sm();
    for (ctas, warps, chains) in [(8, 3, 2), (8, 6, 2), (4, 6, 4), (4, 3, 3), (8, 1, 1), (5, 7, 1)] {
        let kernel = kernel(ctas, warps, vec![turns(150, vec![chain(60, chains)])]);
        let [rates, exact] = BOTH.map(|issue| of(&device, kernel.clone(), issue));
        for of in [mean_cycles, |_: &Device, records: &Records| records.makespan.0 as f64] {
            let (rates, exact) = (of(&device, &rates), of(&device, &exact));
            assert!(
                (rates / exact - 1.0).abs() < 0.02,
                "{rates}, exactly {exact}: {ctas} CTAs of {warps}, {chains} chains"
            );
        }
    }
}

#[test]
fn warps_that_a_policy_prefers_leave_the_others_less_to_hide_latencies_behind() {
    let body = vec![load(400.0), chain(100, 2)];
    for policy in [IssuePolicy::GreedyThenOldest, IssuePolicy::OldestFirst] {
        let device = with(policy);
        let [rates, exact] = in_both(&device, &kernel(1, 16, vec![turns(100, body.clone())]));
        assert!((rates / exact - 1.0).abs() < 0.02, "{policy:?}: {rates}, exactly {exact}");
    }
}

#[test]
fn warps_that_are_ahead_wait_at_the_next_barrier() {
    let device = with(IssuePolicy::OldestFirst);
    let program =
        vec![turns(100, vec![chain(64, 4)]), Segment::Barrier, turns(100, vec![chain(40, 1), Segment::Barrier])];
    for warps in [6, 16] {
        let kernel = kernel(1, warps, program.clone());
        let [rates, exact] = in_both(&device, &kernel);
        assert!((rates / exact - 1.0).abs() < 0.02, "{rates}, exactly {exact}: {warps} warps");
        let waits = BOTH.map(|issue| of(&device, kernel.clone(), issue).warps.cycles[0][State::Barrier as usize]);
        assert!((waits[0] / waits[1] - 1.0).abs() < 0.1, "{waits:?} cycles at barriers: {warps} warps");
    }
}

#[test]
fn a_cta_ends_with_the_warp_whose_loads_took_longest() {
    let device = one_sm();
    let far = Segment::Load { instructions: 1, bytes: 128, from: Source::FootprintBytes(1 << 30), wait: true };
    // What chance did in one run says little: on average over some.
    let runs = [20, 60, 240].into_iter().flat_map(|count| [8, 16].map(|warps| (count, warps)));
    let ratio = |(count, warps)| {
        let [rates, exact] = in_both(&device, &kernel(1, warps, vec![turns(count, vec![far.clone(), chain(20, 1)])]));
        rates / exact
    };
    let ratios: Vec<f64> = runs.map(ratio).collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    assert!((mean - 1.0).abs() < 0.015, "{ratios:?}");
}

#[test]
fn a_cta_that_ends_when_another_one_begins_has_ended() {
    let device = catalogue::device("h200").expect("the catalogue has it").scaled(2).expect("a device");
    let far = Segment::Load { instructions: 1, bytes: 128, from: Source::FootprintBytes(1 << 32), wait: true };
    let records = of(&device, kernel(2_000, 1, vec![turns(10, vec![far])]), IssueMode::Rates);
    assert_eq!(records.ctas.expect("CTAs are recorded").end.len(), 2_000);
    let device = catalogue::device("a100-sxm4-80").expect("the catalogue has it");
    let shared = Segment::Shared { instructions: 1, kind: SharedKind::Load, ways: 1, wait: true };
    let records = of(&device, kernel(20_000, 4, vec![turns(20, vec![shared, Segment::Barrier])]), IssueMode::Rates);
    assert_eq!(records.ctas.expect("CTAs are recorded").end.len(), 20_000);
}

#[test]
fn a_program_that_issues_nothing_is_refused() {
    let program = Program::of(kernel(4, 1, vec![Segment::Wait, Segment::Wait]));
    for issue in BOTH {
        let options = Options { issue, ..Options::default() };
        let refused = simulate(&one_sm(), &program, &[], &options, &mut || false).unwrap_err().to_string();
        assert!(refused.contains("programs[0]: a program issues at least one instruction"), "{refused}");
    }
}

#[test]
fn latencies_longer_than_what_is_measured_take_as_long_as_in_exact_mode() {
    let device = catalogue::device("h200").expect("the catalogue has it").scaled(2).expect("a device");
    for latency in [10_000, 50_000] {
        let ahead = || {
            let from = Source::LatencyCycles(f64::from(latency));
            Segment::Load { instructions: 1, bytes: 128, from, wait: false }
        };
        let slow = Segment::Arithmetic { instructions: 20, latency_cycles: Some(latency), chains: 1, pipe: Pipe::Fma };
        let programs = [
            vec![ahead(), turns(100, vec![chain(10, 1)]), Segment::Wait],
            vec![turns(10, vec![ahead(), chain(10, 1), Segment::Wait])],
            vec![slow],
        ];
        for program in programs {
            let [rates, exact] =
                BOTH.map(|issue| mean_cycles(&device, &of(&device, kernel(8, 8, program.clone()), issue)));
            assert!((rates / exact - 1.0).abs() < 0.1, "{rates} cycles, exactly {exact}: {program:?}");
        }
    }
}

#[test]
fn shared_memory_and_constants_of_a_long_latency_take_it_in_both_modes() {
    const LATENCY: u32 = 9_000;
    let mut device = one_sm();
    (device.issue.shared_latency_cycles, device.issue.constant_latency_cycles) = (LATENCY, LATENCY);
    for kind in [SharedKind::Load, SharedKind::Constant] {
        for issue in BOTH {
            let shared = Segment::Shared { instructions: 1, kind, ways: 1, wait: true };
            let records = of(&device, kernel(1, 2, vec![turns(10, vec![shared, chain(8, 1)])]), issue);
            let each = mean_cycles(&device, &records) / 10.0;
            let latency = f64::from(LATENCY);
            assert!((latency..latency * 1.02).contains(&each), "{issue:?}: {each} cycles for {kind:?}");
        }
    }
}

#[test]
fn a_warp_is_not_selected_only_while_another_one_of_its_sub_partition_is() {
    let device = one_sm();
    let shared = |ways| Segment::Shared { instructions: 4, kind: SharedKind::Load, ways, wait: false };
    let store = Segment::Store { instructions: 8, bytes: 512, access: None };
    let alu = Segment::Arithmetic { instructions: 8, latency_cycles: None, chains: 4, pipe: Pipe::Alu };
    let bodies = [
        vec![shared(32)],
        vec![store, chain(4, 1)],
        vec![shared(8), Segment::Barrier],
        vec![alu, shared(4), chain(4, 2)],
    ];
    for body in bodies {
        for each in [1, 2, 8] {
            let program = vec![Segment::Loop { count: 100, body: body.clone(), unrolled: true }];
            let records = of(&device, kernel(1, 4 * each, program), IssueMode::Exact);
            let cycles = &records.warps.cycles[0];
            let (not, selected) = (cycles[State::NotSelected as usize], cycles[State::Selected as usize]);
            assert!(
                not <= selected * f64::from(each - 1),
                "{each} warps: {not} not selected, {selected} are: {body:?}"
            );
        }
    }
    let records = of(&device, kernel(1, 4, vec![turns(100, vec![shared(32)])]), IssueMode::Exact);
    let cycles = &records.warps.cycles[0];
    let throttled = cycles[State::MioThrottle as usize] / cycles.iter().sum::<f64>();
    assert!(throttled > 0.5, "{throttled} of the time of warps that wait for a full queue");
}

#[test]
fn stretches_between_loops_issue_their_own_instructions_and_no_more() {
    let device = one_sm();
    let slow = Segment::Arithmetic { instructions: 1, latency_cycles: Some(700), chains: 1, pipe: Pipe::Fma };
    let program = vec![turns(200, vec![chain(8, 1), turns(10, vec![slow])])];
    for issue in BOTH {
        let records = of(&device, kernel(2, 4, program.clone()), issue);
        let issued = records.warps.cycles[0][State::Selected as usize];
        let due = 2.0 * 4.0 * 200.0 * (8.0 + 10.0 * 2.0 + 1.0);
        assert!((issued / due - 1.0).abs() < 0.01, "{issue:?}: {issued} of {due}");
    }
}
