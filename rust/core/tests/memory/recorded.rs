//! By slice and by window of time: both add up to what the launches moved, and neither changes what happens.

use proptest::prelude::*;
use wavesim::device::catalogue;
use wavesim::records::{Records, Traffic};
use wavesim::workload::{Access, Kernel, Pattern, Program, Work};
use wavesim::{Detail, Options, simulate};

use super::policies::launch;
use super::{LINE, LINES, access, chase, device};

fn with_detail(device: &wavesim::device::Device, program: &Program, detail: Detail) -> Records {
    simulate(device, program, &[], &Options { detail, ..Options::default() }, &mut || false).unwrap()
}

/// Two kernels, one of which writes.
fn program(patterns: [Pattern; 2], ctas: u32, block: u32) -> Program {
    let works = [access(patterns[0]), Access { write: true, ..access(patterns[1]) }];
    let kernels = works.map(|work| Kernel { work: Work::Access(work), ..Kernel::of(ctas, block) });
    Program { kernels: kernels.into(), items: vec![launch(0), launch(1), launch(0)], ..Program::default() }
}

fn sum(traffic: impl Iterator<Item = Traffic>) -> Traffic {
    traffic.fold(Traffic::default(), |mut sum, traffic| {
        sum += traffic;
        sum
    })
}

proptest! {
    #[test]
    fn slices_and_windows_add_up_to_what_each_launch_moved(
        chunk in prop::sample::select(vec![100_u64, 512, 4096]), chunks in 1..300_u64, passes in 1..4_u64,
        ctas in 1..40_u32, piece in prop::sample::select(vec![4_u64, 32, 128, 200]), sms in 1..20_usize,
    ) {
        let device = catalogue::device("h200").unwrap().scaled(sms).unwrap();
        let reuse = Pattern::Reuse { chunk_bytes: chunk, chunks, passes, shift: 1 };
        let strided = Pattern::Strided { piece_bytes: piece, pieces: chunks, stride_bytes: 256, cta_stride_bytes: 64 };
        let program = program([reuse, strided], ctas, 64);
        let run = with_detail(&device, &program, Detail::Memory);
        let (slices, windows) = (run.l2_slices.unwrap(), run.l2_windows.unwrap());
        for (row, kernel) in run.l2.kernel.iter().enumerate() {
            let of_slices = slices.kernel.iter().zip(&slices.traffic).filter(|(id, _)| *id == kernel);
            prop_assert_eq!(sum(of_slices.map(|(_, &traffic)| traffic)), run.l2.traffic[row]);
            let of_windows = windows.kernel.iter().zip(&windows.traffic).filter(|(id, _)| *id == kernel);
            prop_assert_eq!(sum(of_windows.map(|(_, &traffic)| traffic)), run.l2.traffic[row]);
        }
        for (start, end) in windows.start.iter().zip(&windows.end) {
            prop_assert!(start < end && *start <= run.makespan);
        }
    }
}

#[test]
fn what_is_recorded_changes_nothing_that_happens() {
    let device = catalogue::device("h200").unwrap().scaled(10).unwrap();
    let reuse = Pattern::Reuse { chunk_bytes: 4096, chunks: 3000, passes: 2, shift: 3 };
    let program = program([reuse, Pattern::Stream { bytes: 5000 }], 50, 256);
    let [without, with] = [Detail::Ctas, Detail::Memory].map(|detail| with_detail(&device, &program, detail));
    assert_eq!(without.digest, with.digest);
    assert_eq!(without.l2.traffic, with.l2.traffic);
    assert!(without.l2_slices.is_none() && without.l2_windows.is_none());
    assert!(with.ctas.is_some());
}

#[test]
fn a_slice_has_whole_sets_and_neighbouring_lines_lie_in_different_slices() {
    // Two slices of four sets in each part. Twice as many lines as there are: each slice is asked for half of its part's.
    let lines = 2 * LINES;
    let kernel = Kernel { work: Work::Access(chase(lines, lines)), ..Kernel::of(1, 32) };
    let run = with_detail(&device(), &Program::of(kernel), Detail::Memory);
    let slices = run.l2_slices.unwrap();
    assert_eq!((slices.part, slices.slice), (vec![0, 0, 1, 1], vec![0, 1, 2, 3]));
    // All lookups of the reader's part, the first; and those of lines at home in the other.
    let asked: Vec<u64> = slices.traffic.iter().map(|traffic| traffic.sectors).collect();
    assert_eq!(asked, [lines / 2, lines / 2, 0, 0]);
    let fabric: Vec<u64> = slices.traffic.iter().map(|traffic| traffic.fabric).collect();
    assert_eq!(fabric, [0, 0, lines / 4, lines / 4]);
    let dram: Vec<u64> = slices.traffic.iter().map(|traffic| traffic.dram_read).collect();
    assert_eq!(dram, [lines / 4 * 32; 4]);
}

#[test]
fn windows_show_when_the_hits_begin() {
    // A first pass misses, a second one hits, both by one CTA of a warp.
    let work = access(Pattern::Reuse { chunk_bytes: LINE * 4, chunks: 2, passes: 50, shift: 0 });
    let kernel = Kernel { work: Work::Access(work), ..Kernel::of(1, 32) };
    let run = with_detail(&device(), &Program::of(kernel), Detail::Memory);
    let windows = run.l2_windows.unwrap();
    let first = windows.traffic.first().unwrap();
    let last = windows.traffic.last().unwrap();
    assert_eq!((first.hits, first.dram_read), (0, LINE * 4));
    assert_eq!((last.hits, last.dram_read), (last.sectors, 0));
    assert!(windows.start.windows(2).all(|pair| pair[0] < pair[1]));
}
