//! wavesim simulates how a GPU schedules its work: which CTA (thread block) runs on which SM, when, and what the time was
//! lost to. It is a timing model: it runs no device code and computes no results.
//!
//! ```text
//! device + workload + seed -> simulate -> records
//! ```
//!
//! A guided tour, in the order in which data flows:
//!
//! * [`device`]: what the machine is. The catalogue knows some; any can be edited or scaled.
//! * [`workload`]: what it is asked to do: kernels, what their CTAs do, and the program that launches them.
//! * [`engine`]: time, the event queue and random streams, which know nothing of GPUs.
//! * `gpu` (private): the model, a file for each box of the block diagram, and its policies.
//! * [`records`]: what happened, as columns; the ledger of where slot time went; a digest.
//!
//! How long does a grid of 10,000 CTAs of 5 us take on an H200, and how much of its slots' time is lost?
//!
//! ```
//! use wavesim::device::catalogue;
//! use wavesim::records::Account;
//! use wavesim::workload::{Duration, Kernel, Program, Span, Work};
//! use wavesim::{Options, simulate};
//!
//! let device = catalogue::device("h200")?;
//! let work = Work::Duration(Duration::Constant(Span::Ns(5_000.0)));
//! let program = Program::of(Kernel { work, ..Kernel::of(10_000, 256) });
//! let run = simulate(&device, &program, &[], &Options::default(), &mut || false)?;
//!
//! let makespan_us = run.makespan.ns() / 1e3;
//! let slot_time = run.slots as f64 * run.makespan.0 as f64;
//! let busy = run.ledger.total(Account::Busy) as f64 / slot_time;
//! assert!((52.0..60.0).contains(&makespan_us)); // ten waves, and what dispatch and launch cost
//! assert!((0.75..0.95).contains(&busy));
//! # Ok::<(), wavesim::Error>(())
//! ```

pub mod device;
pub mod engine;
pub mod error;
mod gpu;
pub mod ids;
pub mod records;
pub mod simulate;
pub mod workload;

pub use error::{Error, Result};
pub use simulate::{Detail, Dispatcher, IssueMode, Options, shape_of, simulate};
