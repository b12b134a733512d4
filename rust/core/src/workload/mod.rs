//! What the machine is asked to do: kernels, what their CTAs do, and the program that launches them.
//!
//! These are specs: plain data, never changed once [`Program::validate`] has passed.

pub mod access;
pub mod kernel;
pub mod poll;
pub mod program;
pub mod streaming;
pub mod tiles;
pub mod times;
pub(crate) mod walk;
pub mod warps;
pub mod work;

pub use access::{Access, Pattern};
pub use kernel::Kernel;
pub use poll::{Cycles, Poll, Since};
pub use program::{Copy, Graph, Item, Launch, Program, Record, Stream, Wait};
pub use streaming::Streaming;
pub use tiles::Tiles;
pub use times::Times;
pub use warps::{Pipe, Segment, SharedKind, Source, Warps};
pub use work::{Duration, Needs, Span, Tasks, Work};
