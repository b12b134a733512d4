//! Time, the event queue, and random streams. Knows nothing of GPUs.

pub mod queue;
pub mod rng;
pub mod time;

pub use queue::EventQueue;
pub use time::Time;
