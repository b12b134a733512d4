//! Patterns of many places: strides, random lines, lists of addresses.

use wavesim::workload::{Access, Kernel, Pattern, Program, Work};
use wavesim::{Dispatcher, Error, Options, simulate};

use super::{DRAM, LINE, LINES, NEAR, access, device, last, last_took, one_part, refusal, run};

#[test]
fn a_stride_of_a_line_reads_a_sector_of_each_line_and_dram_no_more() {
    let pattern = Pattern::Strided { piece_bytes: 4, pieces: LINES, stride_bytes: LINE, cta_stride_bytes: 4 };
    let run = run(&one_part(), [(1, access(pattern)), (1, access(pattern))]);
    // A warp's 32 threads ask for 32 lines at once: a miss, then a hit.
    let moved: Vec<_> = run.l2.traffic.iter().map(|moved| (moved.sectors, moved.hits, moved.dram_read)).collect();
    assert_eq!(moved, [(LINES, 0, LINES * 32), (LINES, LINES, 0)]);
    assert_eq!(last_took(&run), NEAR);
}

#[test]
fn columns_of_a_matrix_share_the_sectors_in_which_they_overlap() {
    // Two CTAs of a warp read 16 rows of a column of two sectors each, the second one sector further on.
    let pattern = Pattern::Strided { piece_bytes: 64, pieces: 16, stride_bytes: 8 * LINE + LINE, cta_stride_bytes: 32 };
    let mut device = device();
    device.l2.coalesced_requests = 1;
    let run = run(&device, [(2, access(pattern))]);
    assert_eq!(last(&run).requested, 2 * 16 * 2);
    // The second finds one of its two on its way.
    assert_eq!(last(&run).dram_read, 16 * 96);
    assert_eq!((last(&run).hits, last(&run).merged), (16, 16));
}

#[test]
fn random_lines_of_what_fits_hit_after_the_first_time() {
    let pattern = Pattern::Random { bytes: LINES * LINE, piece_bytes: LINE, pieces: 2000 };
    let run = run(&one_part(), [(1, access(pattern)), (1, access(pattern))]);
    let [first, second] = [&run.l2.traffic[0], &run.l2.traffic[1]];
    // 2,000 draws of 32 lines come to all of them.
    assert_eq!((first.dram_read, second.dram_read), (LINES * LINE, 0));
    assert_eq!(first.requested, 2000 * 4);
    assert_eq!((second.hits, second.merged), (second.sectors, 0));
}

#[test]
fn a_list_is_read_in_its_order() {
    // One thread of 16 bytes: a piece an iteration. Line 0 misses, hits; 8 lines on is another place of its set.
    let offsets = [0.0, 16.0, 1024.0, 0.0];
    let work = Work::Access(access(Pattern::Listed { offsets: 0, piece_bytes: 16 }));
    let program = Program::of(Kernel { work, ..Kernel::of(1, 1) });
    let options = Options { dispatcher: Dispatcher::Ideal, ..Options::default() };
    let run = simulate(&one_part(), &program, &[&offsets], &options, &mut || false).unwrap();
    assert_eq!((last(&run).requested, last(&run).hits), (4, 2));
    assert_eq!(last_took(&run), 4 * NEAR + 2 * DRAM);
}

fn refused_list(offsets: &[f64], piece_bytes: u64, ctas: u32, buffer_bytes: Option<u64>) -> String {
    let work = Access { buffer_bytes, ..access(Pattern::Listed { offsets: 0, piece_bytes }) };
    let program = Program::of(Kernel { work: Work::Access(work), ..Kernel::of(ctas, 32) });
    match simulate(&device(), &program, &[offsets], &Options::default(), &mut || false) {
        Err(error @ Error::Invalid { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn lists_that_leave_their_buffer_or_cannot_be_shared_out_are_refused_with_the_place() {
    let at = "program.kernels[0].work.access.pattern.listed.offsets";
    let text = refused_list(&[0.0, 4000.0], 128, 1, Some(4096));
    assert!(text.starts_with(&format!("{at}[1]: an offset is a whole number of bytes from 0 to 3968")), "{text}");
    for wrong in [-1.0, 0.5, f64::NAN, 1e300] {
        assert!(refused_list(&[wrong], 32, 1, None).starts_with(&format!("{at}[0]: ")));
    }
    for (list, ctas) in [(&[0.0; 3][..], 2), (&[], 1)] {
        assert!(refused_list(list, 32, ctas, None).starts_with(&format!("{at}: each of {ctas} CTAs needs")));
    }
    assert!(refused_list(&[0.0], 0, 1, None).contains("listed.piece_bytes: must be at least 1"));
    let text = refused_list(&[0.0], 128, 1, Some(64));
    assert!(text.contains("access.buffer_bytes: the pattern leaves its buffer: it reaches 128 bytes"), "{text}");
}

#[test]
fn strides_and_random_pieces_that_cannot_be_are_refused_with_the_field() {
    let strided = |piece_bytes, pieces, stride_bytes| Pattern::Strided {
        piece_bytes,
        pieces,
        stride_bytes,
        cta_stride_bytes: 64,
    };
    // 4 CTAs, 64 bytes apart, of 3 pieces 100 apart: 3 x 64 + 2 x 100 + 32.
    let outside = Access { buffer_bytes: Some(423), ..access(strided(32, 3, 100)) };
    assert!(refusal(&device(), outside).contains("it reaches 424 bytes (got 423)"));
    assert!(refusal(&device(), access(strided(0, 3, 100))).contains("strided.piece_bytes: "));
    assert!(refusal(&device(), access(strided(32, 0, 100))).contains("strided.pieces: "));
    assert!(refusal(&device(), access(strided(32, 1 << 40, 1 << 40))).contains("at most 1099511627776 bytes"));
    assert!(refusal(&device(), access(strided(1 << 40, 1 << 40, 0))).contains("strided.pieces: "));
    let random = |bytes, piece_bytes, pieces| access(Pattern::Random { bytes, piece_bytes, pieces });
    assert!(refusal(&device(), random(100, 128, 1)).contains("random.piece_bytes: must not be larger than the 100"));
    assert!(refusal(&device(), random(100, 10, u64::MAX)).contains("random.pieces: "));
    let heads = |q_tiles, kv_heads| {
        access(Pattern::Attention { q_bytes: 1, kv_bytes: 1, steps: 1, q_tiles, heads: 2, kv_heads, causal: false })
    };
    assert!(refusal(&device(), heads(3, 1)).contains("attention.q_tiles: 3 x 2 tiles and heads need as many CTAs"));
    assert!(refusal(&device(), heads(2, 4)).contains("attention.kv_heads: must divide the 2 heads of queries"));
}
