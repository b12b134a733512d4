//! Spin-waits of warp programs: closed forms, who waits for whose issue slots, and the shared rates held to the exact mode.

use wavesim::device::{Device, catalogue};
use wavesim::records::Records;
use wavesim::workload::{Cycles, Kernel, Pipe, Poll, Program, Segment, Since, Span, Warps, Work};
use wavesim::{IssueMode, Options, simulate};

const BOTH: [IssueMode; 2] = [IssueMode::Rates, IssueMode::Exact];

fn scaled(sms: usize) -> Device {
    catalogue::device("h200").expect("the catalogue has it").scaled(sms).expect("as few SMs are a device")
}

fn kernel(ctas: u32, warps: u32, program: Vec<Segment>) -> Kernel {
    let none = Span::Ns(0.0);
    let work =
        Work::Warps(Warps { programs: vec![program], accesses: vec![], order: None, startup: none, finish: none });
    Kernel { work, ..Kernel::of(ctas, 32 * warps) }
}

fn of(device: &Device, kernel: Kernel, lists: &[&[f64]], issue: IssueMode) -> Records {
    let options = Options { issue, ..Options::default() };
    simulate(device, &Program::of(kernel), lists, &options, &mut || false).expect("the program runs")
}

fn one(latency: u32, pipe: Pipe) -> Segment {
    Segment::Arithmetic { instructions: 1, latency_cycles: Some(latency), chains: 1, pipe }
}

/// A turn of `while (clock64() - from < cycles) {}`: 29 cycles, and 10 for the branch back.
fn poll(cycles: Cycles, since: Since) -> Segment {
    let (alu, heavy) = (Pipe::Alu, Pipe::Heavy);
    let body = vec![one(6, Pipe::Other), one(5, alu), one(1, heavy), one(4, alu), one(13, alu)];
    Segment::Poll(Poll { cycles, since, body })
}

fn constant(cycles: f64) -> Segment {
    poll(Cycles::Constant(cycles), Since::Here)
}

/// In cycles, by the number of the CTA: when it started and ended.
fn times(device: &Device, records: &Records) -> Vec<(f64, f64)> {
    let ctas = records.ctas.as_ref().expect("CTAs are recorded");
    let mut rows: Vec<usize> = (0..ctas.cta.len()).collect();
    rows.sort_by_key(|&row| ctas.cta[row]);
    let first = ctas.start.iter().map(|start| start.0).min().unwrap_or(0);
    let cycles = |ps: u64| (ps - first) as f64 / device.clock.cycles_to_ps(1.0);
    rows.into_iter().map(|row| (cycles(ctas.start[row].0), cycles(ctas.end[row].0))).collect()
}

fn lengths(device: &Device, records: &Records) -> Vec<f64> {
    times(device, records).into_iter().map(|(start, end)| end - start).collect()
}

/// Beside the waiting: what the SM takes to set up a CTA of one warp.
const SETUP: f64 = 4.0 + 3.5;

#[test]
fn a_lone_warp_leaves_at_the_first_reading_that_is_late_enough() {
    let device = scaled(1);
    for (cycles, readings) in [(0.0, 0.0), (1.0, 1.0), (39.0, 1.0), (40.0, 2.0), (10_000.0, 257.0)] {
        let records = of(&device, kernel(1, 1, vec![constant(cycles)]), &[], IssueMode::Exact);
        let got = lengths(&device, &records)[0];
        // The branch that is not taken takes 5 cycles.
        let expected = SETUP + 39.0 * readings + 29.0 + 5.0;
        assert!((got - expected).abs() < 2.0, "{got} cycles for {cycles}, expected {expected}");
    }
}

#[test]
fn rates_leave_half_a_turn_late() {
    let device = scaled(1);
    for cycles in [100.0, 101.0, 7_777.5, 1e6] {
        let records = of(&device, kernel(1, 1, vec![constant(cycles)]), &[], IssueMode::Rates);
        let got = lengths(&device, &records)[0] - SETUP - 34.0;
        assert!((got - cycles - 39.0 / 2.0).abs() < 2.0, "{got} cycles for {cycles}");
    }
}

#[test]
fn a_wait_counts_from_the_start_or_from_its_own_first_reading() {
    let device = scaled(1);
    for issue in BOTH {
        let behind = |since| {
            let before = Segment::Arithmetic { instructions: 100, latency_cycles: None, chains: 1, pipe: Pipe::Fma };
            let program = vec![before, poll(Cycles::Constant(3_000.0), since)];
            lengths(&device, &of(&device, kernel(1, 1, program), &[], issue))[0]
        };
        let (start, here) = (behind(Since::Start), behind(Since::Here));
        assert!((3_000.0..3_090.0).contains(&start), "{issue:?}: {start}");
        assert!((here - start - 400.0).abs() <= 39.0, "{issue:?}: {here} and {start}");
    }
}

#[test]
fn each_turn_of_a_loop_waits_anew() {
    let device = scaled(1);
    let program = vec![Segment::Loop { count: 5, body: vec![constant(2_000.0)], unrolled: false }];
    for issue in BOTH {
        let got = lengths(&device, &of(&device, kernel(1, 1, program.clone()), &[], issue))[0];
        assert!((10_000.0..10_500.0).contains(&got), "{issue:?}: {got} cycles for five waits");
    }
}

#[test]
fn each_cta_waits_for_its_own_time() {
    let device = scaled(4);
    let list: Vec<f64> = (0..8).map(|cta| 500.0 * f64::from(cta * 3 % 8)).collect();
    for issue in BOTH {
        let kernel = kernel(8, 1, vec![poll(Cycles::PerCta(0), Since::Start)]);
        let got = lengths(&device, &of(&device, kernel, &[&list], issue));
        for (cta, (got, asked)) in got.iter().zip(&list).enumerate() {
            assert!((0.0..100.0).contains(&(got - asked)), "{issue:?}: CTA {cta} took {got}, of {asked}");
        }
    }
}

#[test]
fn the_last_of_two_warps_of_a_scheduler_is_on_time_and_that_of_eight_is_not() {
    let device = scaled(1);
    for issue in BOTH {
        let late = |warps| {
            let records = of(&device, kernel(1, warps, vec![constant(5_000.0)]), &[], issue);
            lengths(&device, &records)[0] - 5_000.0
        };
        assert!(late(8) < 120.0, "{issue:?}: {}", late(8));
        assert!(late(32) > 1.3 * late(8), "{issue:?}: {} and {}", late(32), late(8));
    }
}

/// Sixteen CTAs of a warp a scheduler, of which the oldest wait longest: as run 432 of `reference/h200`.
fn ramp() -> Vec<f64> {
    (0..16).map(|cta| 12_000.0 - 700.0 * f64::from(cta)).collect()
}

#[test]
fn young_ctas_whose_schedulers_are_full_end_only_behind_the_older_ones() {
    let device = scaled(1);
    let asked = ramp();
    for issue in BOTH {
        let kernel = kernel(16, 4, vec![poll(Cycles::PerCta(0), Since::Start)]);
        let ends: Vec<f64> = times(&device, &of(&device, kernel, &[&asked], issue)).iter().map(|cta| cta.1).collect();
        // The oldest six have what they need; the youngest, whose time is over long before, get nothing until one of those
        // has ended.
        for cta in 0..6 {
            let late = ends[cta] - asked[cta];
            assert!(late < 400.0, "{issue:?}: CTA {cta} is {late} cycles late");
        }
        let first = ends[..6].iter().copied().fold(f64::INFINITY, f64::min);
        for cta in 10..16 {
            assert!(
                ends[cta] > asked[8] && ends[cta] > asked[cta] + 1_000.0,
                "{issue:?}: CTA {cta} ended at {}",
                ends[cta]
            );
            assert!(ends[cta] < first + 1_500.0, "{issue:?}: CTA {cta} ended at {}", ends[cta]);
        }
    }
}

#[test]
fn few_ctas_do_not_wait_for_each_other() {
    let device = scaled(1);
    let asked: Vec<f64> = ramp()[..6].iter().rev().copied().collect();
    for issue in BOTH {
        let kernel = kernel(6, 4, vec![poll(Cycles::PerCta(0), Since::Start)]);
        let late = lengths(&device, &of(&device, kernel, &[&asked], issue));
        for (cta, (took, asked)) in late.iter().zip(&asked).enumerate() {
            assert!(took - asked < 250.0, "{issue:?}: CTA {cta} is {} cycles late", took - asked);
        }
    }
}

#[test]
fn states_add_up_to_the_warps_time() {
    let device = scaled(2);
    let program = vec![one(20, Pipe::Other), constant(9_000.0), Segment::Barrier, one(5, Pipe::Alu)];
    for issue in BOTH {
        let records = of(&device, kernel(40, 4, program.clone()), &[], issue);
        let states: f64 = records.warps.cycles.iter().flatten().sum();
        let lasted: f64 = lengths(&device, &records).iter().map(|cycles| cycles * 4.0).sum();
        assert!((states / lasted - 1.0).abs() < 0.03, "{issue:?}: {states} and {lasted}");
    }
}

#[test]
fn runs_repeat_in_both_modes() {
    let device = scaled(3);
    for issue in BOTH {
        let once = of(&device, kernel(90, 2, vec![constant(700.0)]), &[], issue).digest;
        let again = of(&device, kernel(90, 2, vec![constant(700.0)]), &[], issue).digest;
        assert_eq!(once, again, "{issue:?}");
    }
}

#[test]
fn the_longest_wait_there_is_ends() {
    let device = scaled(1);
    let records = of(&device, kernel(1, 1, vec![constant(4.32e15)]), &[], IssueMode::Rates);
    assert!((lengths(&device, &records)[0] / 4.32e15 - 1.0).abs() < 1e-6);
}

/// Xorshift (Marsaglia 2003).
fn below(state: &mut u64, bound: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) % bound
}

#[test]
fn spans_of_random_waits_by_rates_are_near_the_stepped_ones() {
    const SMS: usize = 3;
    let device = scaled(SMS);
    let mut state = 6_364_136_223_846_793_005;
    let mut errors: Vec<f64> = (0..16)
        .map(|_| {
            let warps = [1, 2, 4, 8][below(&mut state, 4) as usize];
            let resident = (64 / warps).min(32);
            let ctas = SMS as u32 * (1 + below(&mut state, 3 * u64::from(resident)) as u32);
            let mean = 1_000 + below(&mut state, 6_000);
            let list: Vec<f64> = (0..ctas).map(|_| below(&mut state, 2 * mean) as f64).collect();
            let code = vec![one(20, Pipe::Other), one(13, Pipe::Alu), one(12, Pipe::Other)];
            let behind = vec![Segment::Barrier, one(4, Pipe::Alu), one(13, Pipe::Alu), one(8, Pipe::Other)];
            let program = [code, vec![poll(Cycles::PerCta(0), Since::Start)], behind].concat();
            let [rates, exact] = BOTH.map(|issue| {
                let records = of(&device, kernel(ctas, warps, program.clone()), &[&list], issue);
                times(&device, &records).iter().map(|cta| cta.1).fold(0.0, f64::max)
            });
            rates / exact - 1.0
        })
        .collect();
    errors.sort_by(|one, other| one.abs().total_cmp(&other.abs()));
    println!("{errors:.4?}");
    let mean = errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64;
    // Some are stepped in both modes, where ever other warps meet.
    assert!(errors.iter().filter(|error| **error != 0.0).count() >= 6, "{errors:.4?}");
    assert!(mean < 0.005 && errors[15].abs() < 0.02, "{mean}: {errors:.4?}");
}
