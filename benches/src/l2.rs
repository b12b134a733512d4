//! The L2 model beside a bare LRU loop over the same lines: lines a second, in the same run, each the best of several turns
//! taken in rotation. The model does all that a run does with a line: it shares requests, looks in the reader's part and at
//! the line's home, counts, and says when the line comes, in whole pages where all accesses are that large. The bare loop
//! looks each line up once in a cache of one part.

use std::time::Instant;

use wavesim::device::{Device, catalogue};
use wavesim::workload::{Access, Item, Kernel, Launch, Pattern, Program, Tiles, Times, Work};
use wavesim::{Detail, Options, simulate};

const TURNS: usize = 5;
const CTAS: u64 = 1_056;
const THREADS: u32 = 256;
const LINE: u64 = 128;
const LAUNCHES: usize = 3;
const WAYS: usize = 16;
const SETS: usize = 1 << 15;

/// Sixteen ways, tags beside the times of their last use.
struct Bare {
    tags: Vec<[u64; WAYS]>,
    used: Vec<[u64; WAYS]>,
    clock: u64,
}

impl Bare {
    fn new() -> Self {
        Self { tags: vec![[u64::MAX; WAYS]; SETS], used: vec![[0; WAYS]; SETS], clock: 0 }
    }

    fn look_up(&mut self, line: u64) -> bool {
        self.clock += 1;
        let set = line as usize & (SETS - 1);
        let (tags, used) = (&mut self.tags[set], &mut self.used[set]);
        if let Some(way) = tags.iter().position(|&tag| tag == line) {
            used[way] = self.clock;
            return true;
        }
        let mut oldest = 0;
        for way in 1..WAYS {
            oldest = if used[way] < used[oldest] { way } else { oldest };
        }
        (tags[oldest], used[oldest]) = (line, self.clock);
        false
    }
}

/// The lines of the launches in about the order in which they are read: all CTAs go forward together, 32 lines at a time.
fn bare(cache: &mut Bare, lines: u64) -> u64 {
    const AT_ONCE: u64 = THREADS as u64 * 16 / LINE;
    let mut hits = 0;
    for _ in 0..LAUNCHES {
        for first in (0..lines).step_by(AT_ONCE as usize) {
            for cta in 0..CTAS {
                let start = cta * lines + first;
                hits += (start..start + AT_ONCE).map(|line| u64::from(cache.look_up(line))).sum::<u64>();
            }
        }
    }
    hits
}

/// A kernel of so many CTAs, launched several times one after the other.
fn program(pattern: Pattern, ctas: u64, launches: usize) -> Program {
    let (write, buffer, buffer_bytes) = (false, 0, None);
    let work = Access { pattern, write, buffer, buffer_bytes, times: Times::default() };
    let kernel = Kernel { work: Work::Access(work), ..Kernel::of(ctas as u32, THREADS) };
    let launch = Item::Launch(Launch { kernel: 0, stream: 0, at_ns: None, dependent: false, trigger: false });
    Program { items: vec![launch; launches], ..Program::of(kernel) }
}

/// How many lookups a run makes.
fn lookups(device: &Device, program: &Program) -> u64 {
    let options = Options { detail: Detail::Kernels, ..Options::default() };
    let run = simulate(device, program, &[], &options, &mut || false).expect("the kernel launches");
    run.l2.traffic.iter().map(|moved| moved.sectors + moved.fabric).sum::<u64>() * 32 / LINE
}

/// Prints both.
pub(crate) fn compare() {
    let device = catalogue::device("h200").expect("the catalogue has it");
    for (name, lines) in [("20 MB, which fit", 160), ("50 MB, which do not", 384)] {
        let by_page = program(Pattern::Stream { bytes: lines * LINE }, CTAS, LAUNCHES);
        let by_line =
            Pattern::Strided { piece_bytes: LINE, pieces: lines, stride_bytes: LINE, cta_stride_bytes: lines * LINE };
        let by_line = program(by_line, CTAS, LAUNCHES);
        let mut best = [f64::INFINITY; 3];
        let mut made = [lines * CTAS * LAUNCHES as u64; 3];
        for _ in 0..TURNS {
            let mut turn = |which: usize, run: &mut dyn FnMut() -> Option<u64>| {
                let start = Instant::now();
                made[which] = std::hint::black_box(run()).unwrap_or(made[which]);
                best[which] = best[which].min(start.elapsed().as_secs_f64());
            };
            // The loop's memory is the loop's only cost that is no lookup: it is there before.
            let mut cache = Bare::new();
            turn(0, &mut || (bare(&mut cache, lines) > u64::MAX / 2).then_some(0));
            turn(1, &mut || Some(lookups(&device, &by_page)));
            turn(2, &mut || Some(lookups(&device, &by_line)));
        }
        let rates: Vec<f64> = made.iter().zip(best).map(|(&made, seconds)| made as f64 / seconds / 1e6).collect();
        println!(
            "L2, {LAUNCHES} launches of {name}: lookups of lines in millions a second (and as a ratio to the loop)"
        );
        println!("  bare LRU loop          {:6.1}", rates[0]);
        println!("  L2 model, whole pages  {:6.1}  {:.2}", rates[1], rates[1] / rates[0]);
        println!("  L2 model, line by line {:6.1}  {:.2}", rates[2], rates[2] / rates[0]);
    }
}

/// Prints how long large kernels take, the best of several turns.
pub(crate) fn walls() {
    let device = catalogue::device("h200").expect("the catalogue has it");
    let streams = [4096, 16_384].map(|bytes| {
        (format!("a stream of {} CTAs of {bytes} bytes", 1 << 20), program(Pattern::Stream { bytes }, 1 << 20, 1))
    });
    let product = ("a product of 8192 x 8192 x 2048 in 4096 tiles".to_owned(), Program::of(product()));
    for (name, program) in streams.into_iter().chain([product]) {
        let seconds = (0..TURNS).map(|_| {
            let start = Instant::now();
            assert!(lookups(&device, &program) > 0);
            start.elapsed().as_secs_f64()
        });
        println!("{name}: {:.2} s", seconds.fold(f64::INFINITY, f64::min));
    }
}

/// A matrix product with a CTA a tile of 128 x 128, three steps of 64 ahead.
fn product() -> Kernel {
    let tiles = Tiles {
        m: 8192,
        n: 8192,
        k: 2048,
        tile: [128, 128, 64],
        element_bytes: 2,
        output_bytes: 2,
        stages: 3,
        order: None,
        buffer: 0,
        times: Times::default(),
    };
    Kernel { work: Work::Tiles(tiles), shared_memory: 98_304, ..Kernel::of(4096, THREADS) }
}
