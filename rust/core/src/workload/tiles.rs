//! Tiled kernels: a matrix product cut into tiles, whose operands come through L2.
//!
//! A CTA takes a tile of C and goes along K step by step. In each step it needs a part of a panel of A and of one of B, which
//! it has loaded some steps ahead; the tensor cores of its SM, which all CTAs there share, work on it; and behind the last
//! step the tile is stored. A grid smaller than the number of tiles is a persistent kernel: CTA `i` of `n` takes the tiles
//! at places `i`, `i + n`, ... of the order.

use serde::{Deserialize, Serialize};

use super::access::LARGEST;
use super::times::Times;
use super::walk::Bytes;
use crate::error::{Error, Result};

/// A tiled matrix product, C (m x n) = A (m x k) B (k x n).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiles {
    /// Rows of A and C.
    pub m: u64,
    /// Columns of B and C.
    pub n: u64,
    /// Columns of A and rows of B: what is summed over.
    pub k: u64,
    /// Rows and columns of a tile of C, and how much of `k` a step covers.
    pub tile: [u64; 3],
    /// Of an element of A and B. Tensor cores are given for 2, and are faster in proportion for 1, slower for 4.
    pub element_bytes: u64,
    /// Of an element of C.
    pub output_bytes: u64,
    /// How many steps' operands shared memory holds: when a step begins, the loads of the step `stages - 1` further on do.
    pub stages: u64,
    /// Which of the program's number lists has the tile `row * columns + column` at each place of the order; without, the
    /// tile at place `i` is `i`.
    #[serde(default)]
    pub order: Option<usize>,
    /// Which buffer holds A, B behind it, C behind that.
    #[serde(default)]
    pub buffer: u16,
    /// What a CTA takes beside its loads, its arithmetic and its stores: an iteration is a step.
    #[serde(default)]
    pub times: Times,
}

/// More would be no pipeline but a copy of the operands.
const MOST_STAGES: u64 = 64;

/// More than registers and shared memory of any SM: what a CTA stores at once.
const LARGEST_TILE: u64 = 1 << 24;

impl Tiles {
    /// Tiles along m and n.
    pub fn tiles(&self) -> (u64, u64) {
        (self.m.div_ceil(self.tile[0]), self.n.div_ceil(self.tile[1]))
    }

    /// Steps of a tile.
    pub fn steps(&self) -> u64 {
        self.k.div_ceil(self.tile[2])
    }

    /// What the tensor cores do in one step, a multiply-add being two.
    pub fn flops_of_step(&self) -> u64 {
        2 * self.tile.iter().product::<u64>()
    }

    /// What a step needs of A, and of B.
    pub fn step_bytes(&self) -> (u64, u64) {
        let [m, n, k] = self.tile;
        (m * k * self.element_bytes, n * k * self.element_bytes)
    }

    fn output_tile_bytes(&self) -> u64 {
        self.tile[0] * self.tile[1] * self.output_bytes
    }

    pub(crate) fn validate(&self, ctas: u64, shared_memory: u32, arrays: &[usize]) -> Result<()> {
        let size = |field: &str, value: u64, most: u64| match value {
            0 => Err(Error::invalid(field, value, "must be at least 1")),
            _ if value > most => Err(Error::invalid(field, value, format!("at most {most}"))),
            _ => Ok(()),
        };
        size("m", self.m, 1 << 32)?;
        size("n", self.n, 1 << 32)?;
        size("k", self.k, 1 << 32)?;
        for (i, &of) in self.tile.iter().enumerate() {
            size(&format!("tile[{i}]"), of, 1 << 16)?;
        }
        size("element_bytes", self.element_bytes, 16)?;
        size("output_bytes", self.output_bytes, 16)?;
        let [rows, columns, _] = self.tile;
        let output = rows * columns * self.output_bytes;
        if output > LARGEST_TILE {
            let why = format!("a tile of C takes {output} bytes, and no CTA holds more than {LARGEST_TILE}");
            return Err(Error::invalid("tile[0]", rows, why));
        }
        if !(2..=MOST_STAGES).contains(&self.stages) {
            let why = format!("must be from 2 (loads of the next step, while one is worked on) to {MOST_STAGES}");
            return Err(Error::invalid("stages", self.stages, why));
        }
        let (a, b) = self.step_bytes();
        let held = self.stages * (a + b);
        if held > u64::from(shared_memory) {
            let why = format!("{held} bytes of operands do not fit into the CTA's {shared_memory} of shared memory");
            return Err(Error::invalid("stages", self.stages, why));
        }
        let (rows, columns) = self.tiles();
        let tiles = rows.saturating_mul(columns);
        size("tiles", tiles, u64::from(u32::MAX))?;
        if ctas > tiles {
            let why = format!("the grid of {ctas} CTAs has more than the {rows} x {columns} tiles");
            return Err(Error::invalid("m", self.m, why));
        }
        let extent = self.extent();
        if extent > u128::from(LARGEST) {
            return Err(Error::invalid("m", self.m, format!("the matrices reach {extent} bytes; at most {LARGEST}")));
        }
        self.times.validate()?;
        match self.order.map(|order| (order, arrays.get(order))) {
            Some((order, None)) => Err(Error::invalid("order", order, "no such list of numbers")),
            Some((_, Some(&len))) if len as u64 != tiles => {
                let why = format!("one place a tile is needed, {tiles} in all");
                Err(Error::invalid("order", format!("a list of {len} values"), why))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn validate_lists(&self, arrays: &[&[f64]]) -> Result<()> {
        self.order.map_or(Ok(()), |order| each_tile_once("tiles.order", arrays[order]))
    }

    fn extent(&self) -> u128 {
        let ((rows, columns), (a, b)) = (self.tiles(), self.step_bytes());
        let of = |panels: u64, bytes: u64| u128::from(panels) * u128::from(self.steps()) * u128::from(bytes);
        of(rows, a) + of(columns, b) + u128::from(rows * columns) * u128::from(self.output_tile_bytes())
    }

    /// The largest power of two that divides the start and the length of every run, in bytes.
    pub(crate) fn alignment(&self) -> u64 {
        let (a, b) = self.step_bytes();
        1 << (a | b | self.output_tile_bytes()).trailing_zeros()
    }
}

/// An order of tiles, as long as there are tiles, has each of them.
pub(super) fn each_tile_once(field: &str, order: &[f64]) -> Result<()> {
    let mut seen = vec![false; order.len()];
    for (at, &tile) in order.iter().enumerate() {
        let refused = |why: String| Err(Error::invalid(format!("{field}[{at}]"), tile, why));
        if tile.fract() != 0.0 || !(0.0..order.len() as f64).contains(&tile) {
            return refused(format!("a tile is one of 0 to {}", order.len() - 1));
        }
        if std::mem::replace(&mut seen[tile as usize], true) {
            return refused("this tile has come before".to_owned());
        }
    }
    Ok(())
}

/// Where a launch's tiles find their operands. What a tile needs in one step is contiguous, step follows step along a panel,
/// and at the edges tiles are whole: matrices are padded.
#[derive(Clone, Debug)]
pub(crate) struct Plan<'a> {
    order: Option<&'a [f64]>,
    pub(crate) tiles: u64,
    pub(crate) steps: u64,
    columns: u64,
    a: u64,
    b: u64,
    c: u64,
    b_start: u64,
    c_start: u64,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(work: &Tiles, arrays: &[&'a [f64]]) -> Self {
        let ((rows, columns), (a, b), steps) = (work.tiles(), work.step_bytes(), work.steps());
        let b_start = rows * steps * a;
        Self {
            order: work.order.map(|order| arrays[order]),
            tiles: rows * columns,
            steps,
            columns,
            a,
            b,
            c: work.output_tile_bytes(),
            b_start,
            c_start: b_start + columns * steps * b,
        }
    }

    /// The tile at a place of the order.
    pub(crate) fn tile(&self, place: u64) -> u64 {
        self.order.map_or(place, |order| order[place as usize] as u64)
    }

    /// What a tile needs of A and of B in a step.
    pub(crate) fn operands(&self, tile: u64, step: u64) -> [Bytes<'static>; 2] {
        let (row, column) = (tile / self.columns, tile % self.columns);
        let part = |start: u64, panel: u64, len: u64| Bytes::run(start + (panel * self.steps + step) * len, len);
        [part(0, row, self.a), part(self.b_start, column, self.b)]
    }

    /// Where a tile is stored, and its bytes.
    pub(crate) fn output(&self, tile: u64) -> (u64, u64) {
        (self.c_start + tile * self.c, self.c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn product() -> Tiles {
        Tiles {
            m: 256,
            n: 300,
            k: 100,
            tile: [128, 64, 32],
            element_bytes: 2,
            output_bytes: 4,
            stages: 3,
            order: None,
            buffer: 0,
            times: Times::default(),
        }
    }

    fn place(bytes: Bytes<'_>) -> (u64, u64) {
        bytes.runs(1 << 63).next().expect("a tile has bytes")
    }

    #[test]
    fn edges_take_whole_tiles_and_whole_steps() {
        let work = product();
        assert_eq!((work.tiles(), work.steps()), ((2, 5), 4));
        assert_eq!(work.step_bytes(), (128 * 32 * 2, 64 * 32 * 2));
    }

    #[test]
    fn operands_lie_panel_by_panel_b_behind_a_and_c_behind_b() {
        let plan = Plan::new(&product(), &[]);
        // Tile 7 is (1, 2). A: 2 panels of 4 steps of 8,192 bytes; B: 5 panels of 4 steps of 4,096 bytes.
        let [a, b] = plan.operands(7, 3);
        assert_eq!(place(a), ((4 + 3) * 8192, 8192));
        assert_eq!(place(b), (8 * 8192 + (2 * 4 + 3) * 4096, 4096));
        assert_eq!(plan.output(7), (8 * 8192 + 20 * 4096 + 7 * 128 * 64 * 4, 128 * 64 * 4));
    }

    #[test]
    fn the_last_byte_of_the_last_tile_is_the_extent() {
        let (work, plan) = (product(), Plan::new(&product(), &[]));
        let (start, len) = plan.output(plan.tiles - 1);
        assert_eq!(u128::from(start + len), work.extent());
    }
}
