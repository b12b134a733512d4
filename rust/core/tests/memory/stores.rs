//! What stores leave in L2, and when DRAM gets it.

use super::*;

/// One CTA writes so many lines, then `readers` CTAs, each on an SM of its own, read them.
fn written_and_read(lines: u64, readers: u32) -> Records {
    let mut device = device();
    device.limits.ctas = 1;
    let write = Access { write: true, ..access(Pattern::Stream { bytes: lines * LINE }) };
    run(&device, [(1, write), (readers, chase(lines, lines))])
}

#[test]
fn a_store_leaves_a_copy_with_its_writer_and_none_in_other_parts() {
    let lines = LINES / 2;
    let (_, elsewhere) = homes(lines);
    assert_eq!(last_took(&written_and_read(lines, 1)), lines * NEAR);
    // Of four readers two are near to the other part.
    assert_eq!(last_took(&written_and_read(lines, 4)), lines * NEAR + elsewhere * FAR);
}

#[test]
fn what_is_written_takes_a_place_at_home_and_one_with_its_writer() {
    // All lines of one part: half of them are at home there, and the others' copies fill it up.
    let run = written_and_read(LINES, 1);
    assert_eq!((last(&run).hits, last(&run).dram_read), (LINES, 0));
    // A set more, and its lines drive each other out of the writer's part; at home there is room.
    let run = written_and_read(LINES + 2, 1);
    assert!(last_took(&run) > (LINES + 2) * NEAR);
}

#[test]
fn of_a_set_with_too_many_dirty_lines_the_oldest_is_written_back_and_stays() {
    let mut device = device();
    device.l2.dirty_ways = 1;
    // Two lines of each set are at home in each part.
    let write = Access { write: true, ..access(Pattern::Stream { bytes: LINES * LINE }) };
    let run = run(&device, [(1, write), (1, chase(LINES, LINES))]);
    assert_eq!(run.l2.traffic[0].dram_written, LINES / 2 * LINE);
    assert_eq!((last(&run).hits, last(&run).dram_written), (LINES, 0));
}

#[test]
fn a_dirty_line_may_stay_for_another_round_before_it_is_driven_out() {
    let driven_out = |stays: f64| {
        let mut device = device();
        device.l2.dirty_stays = stays;
        let run = run(&device, written_then_driven_out(LINES * LINE));
        assert_eq!(last(&run).dram_read, 2 * LINES * 32);
        last(&run).dram_written / LINE
    };
    assert_eq!(driven_out(0.0), LINES);
    // All stay as long as there are others.
    assert_eq!(driven_out(1.0), 0);
    let half = driven_out(0.5);
    assert!((1..LINES).contains(&half), "{half} of {LINES}");
}

/// How long a chase of 16 lines takes, in cycles, while another SM writes 512 bytes at a time through to DRAM, which passes 3.2 a cycle.
fn read_beside_writes(turnaround: f64) -> u64 {
    let mut device = device();
    device.l2.write_policy = WritePolicy::WriteThrough;
    (device.dram.bandwidth_gb_s, device.dram.reached_gb_s, device.dram.turnaround) = (3.2, 3.2, turnaround);
    let write = Access { write: true, ..access(Pattern::Stream { bytes: 512 * 1000 }) };
    let read = Access { buffer: 1, ..chase(16, 16) };
    let kernels = [write, read].map(|access| Kernel { work: Work::Access(access), ..Kernel::of(1, 32) });
    let launch = |kernel, at_ns| {
        Item::Launch(Launch { kernel, stream: kernel as u32, at_ns: Some(at_ns), dependent: false, trigger: false })
    };
    let program =
        Program { items: vec![launch(0, 0.0), launch(1, 20_000.0)], kernels: kernels.into(), ..Program::default() };
    let options = Options { dispatcher: Dispatcher::Ideal, ..Options::default() };
    let run = simulate(&device, &program, &[], &options, &mut || false).unwrap();
    let (start, end) = (&run.kernels.start, &run.kernels.end);
    assert!(start[0] < start[1] && end[1] < end[0], "something is written all the while");
    last_took(&run)
}

#[test]
fn what_is_read_waits_for_what_is_written_and_for_the_turn_of_dram_that_is_idle() {
    let (_, elsewhere) = homes(16);
    let alone = 16 * (NEAR + DRAM) + elsewhere * FAR;
    // 512 bytes are always on their way into DRAM, which takes 160 cycles.
    assert_eq!(read_beside_writes(0.0), alone + 16 * 160);
    // A sector has DRAM busy for 10 of 330 cycles, near and far. Of 32 of 33, the turn costs as much as what is written.
    assert_eq!(read_beside_writes(33.0 / 32.0), alone + 16 * 320);
}
