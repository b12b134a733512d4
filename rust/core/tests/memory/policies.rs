//! Replacement as a run shows it, and the fabric between the parts.

use proptest::prelude::*;
use wavesim::device::{Device, Gpc, Replacement, Topology};
use wavesim::ids::SmId;
use wavesim::workload::{Item, Kernel, Launch, Pattern, Program, Work};
use wavesim::{Dispatcher, Options, simulate};

use super::{FAR, LINE, LINES, NEAR, access, chase, device, last, last_took, one_part, run};

/// What a CTA of one thread that reads these lines of a single part finds there.
fn hits(device: &Device, lines: &[u8], seed: u64) -> u64 {
    let offsets: Vec<f64> = lines.iter().map(|&line| f64::from(line) * LINE as f64).collect();
    // A thread moves 16 bytes: a line an iteration takes a warp's first 8.
    let work = Work::Access(access(Pattern::Listed { offsets: 0, piece_bytes: 128 }));
    let program = Program::of(Kernel { work, ..Kernel::of(1, 8) });
    let options = Options { seed, dispatcher: Dispatcher::Ideal, ..Options::default() };
    last(&simulate(device, &program, &[&offsets], &options, &mut || false).unwrap()).hits / 4
}

/// One part of 8 sets with other ways.
fn of_ways(ways: u32) -> Device {
    let mut device = one_part();
    (device.l2.ways, device.l2.bytes) = (ways, 8 * u64::from(ways) * LINE);
    device
}

proptest! {
    #[test]
    fn a_list_of_lines_hits_as_the_stack_distance_in_each_set_says(
        lines in prop::collection::vec(0..80_u8, 1..300), ways in 1..8_u32,
    ) {
        let mut stacks = vec![Vec::<u8>::new(); 8];
        let mut expected = 0;
        for &line in &lines {
            let stack = &mut stacks[usize::from(line % 8)];
            if let Some(distance) = stack.iter().position(|&other| other == line) {
                expected += u64::from(distance < ways as usize);
                stack.remove(distance);
            }
            stack.insert(0, line);
        }
        prop_assert_eq!(hits(&of_ways(ways), &lines, 0), expected);
    }

    #[test]
    fn more_ways_never_miss_more_under_lru(lines in prop::collection::vec(0..80_u8, 1..300), ways in 1..8_u32) {
        prop_assert!(hits(&of_ways(ways), &lines, 0) <= hits(&of_ways(ways + 1), &lines, 0));
    }
}

#[test]
fn passes_over_more_than_fits_hit_nothing_under_lru_and_something_under_every_other_policy() {
    // 40 lines in 8 sets of 4 ways, five times: under LRU each line is driven out just before it comes again.
    let lines: Vec<u8> = (0..5).flat_map(|_| 0..40).collect();
    let found = |replacement, protected_ways| {
        let mut device = one_part();
        (device.l2.replacement, device.l2.protected_ways) = (replacement, protected_ways);
        hits(&device, &lines, 3)
    };
    assert_eq!(found(Replacement::Lru, 0), 0);
    assert_eq!(found(Replacement::Protected, 0), 0);
    assert!(found(Replacement::NotRecentlyUsed, 0) > 0);
    assert!(found(Replacement::Random, 0) > 40);
    // A line that came twice is protected, and found again whatever comes between.
    let twice: Vec<u8> = [0_u8, 0].into_iter().chain((1..20).map(|i| i * 8 % 80)).chain([0]).collect();
    let mut device = one_part();
    let lru = hits(&device, &twice, 0);
    (device.l2.replacement, device.l2.protected_ways) = (Replacement::Protected, 1);
    assert!(hits(&device, &twice, 0) > lru);
}

#[test]
fn random_replacement_follows_from_the_seed() {
    let lines: Vec<u8> = (0..20).flat_map(|_| 0..40).collect();
    let mut device = one_part();
    device.l2.replacement = Replacement::Random;
    assert_eq!(hits(&device, &lines, 1), hits(&device, &lines, 1));
    assert!((2..9).any(|seed| hits(&device, &lines, seed) != hits(&device, &lines, 1)));
}

#[test]
fn a_chase_through_a_cache_of_one_set_is_as_long_as_its_misses() {
    let mut device = one_part();
    (device.l2.ways, device.l2.slices) = (LINES as u32, 1);
    let run = run(&device, [(1, chase(LINES, LINES)), (1, chase(LINES, LINES))]);
    assert_eq!((last(&run).hits, last_took(&run)), (LINES, LINES * NEAR));
}

#[test]
fn bandwidth_of_the_fabric_is_reached_and_not_passed_by_reads_of_the_other_part() {
    let mut device = device();
    device.topology = Topology { gpcs: vec![Gpc::of((0..8).map(SmId), 0)] };
    device.l2.fabric_bandwidth_gb_s = 2.0;
    // Twice what a part holds: after a first pass, the lines that are at home in the other part are found there again and
    // again, and never near. Eight CTAs take one chunk of four lines after the other.
    let lines = 2 * LINES;
    let passes = access(Pattern::Reuse { chunk_bytes: 512, chunks: lines / 4, passes: 50, shift: 0 });
    let run = run(&device, [(1, chase(lines, lines)), (8, passes)]);
    let over = last(&run).fabric * 32;
    assert!(over > 50 * LINES * LINE / 2);
    let least = over / 2;
    // In flight are 4 KiB at most, of which the fabric carries half: it is never without work for long.
    let took = last_took(&run);
    assert!(took >= least, "{took} of at least {least}");
    assert!(took < 2 * least, "{took} of at least {least}");
    let alone = NEAR + FAR;
    assert!(alone * 50 * 2 < least, "it is the fabric that took so long");
}

#[test]
fn an_endless_fabric_changes_nothing_where_there_is_one_part() {
    let mut narrow = one_part();
    narrow.l2.fabric_bandwidth_gb_s = 1e-3;
    let [slow, fast] = [narrow, one_part()].map(|device| last_took(&run(&device, [(1, chase(LINES, 100))])));
    assert_eq!(slow, fast);
}

/// A launch of a kernel by its number.
pub(super) fn launch(kernel: usize) -> Item {
    Item::Launch(Launch { kernel, stream: 0, at_ns: None, dependent: false, trigger: false })
}
