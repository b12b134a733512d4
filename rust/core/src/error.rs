//! What a caller can cause is an error; a broken invariant of the model is a panic.

use std::fmt;

use thiserror::Error;

/// Why a simulation, a device or a workload was refused, or could not go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that can't be: the field's path, what it got, and what it should be.
    #[error("{field}: {why} (got {value})")]
    Invalid {
        /// The path of the field, such as `program.items[2].kernel.block`.
        field: String,
        /// The value as it was given.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// A kernel that the device can't run: which limit, and by how much.
    #[error("{field}: kernel `{kernel}` cannot launch on {device}: {why}")]
    CannotLaunch {
        /// The path of the kernel's field that asks for too much.
        field: String,
        /// The value of that field.
        value: String,
        /// The kernel's name.
        kernel: String,
        /// The device's name.
        device: String,
        /// Which limit it breaks, and by how much.
        why: String,
    },
    /// Nothing can go on, and something has not finished.
    #[error("deadlock at {at_ns} ns: {who}")]
    Deadlock {
        /// When the last thing happened, in whole nanoseconds.
        at_ns: u64,
        /// Who waits for whom.
        who: String,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// A value that can't be.
    #[allow(clippy::needless_pass_by_value)] // so that numbers can be given as they are
    pub fn invalid(field: impl Into<String>, value: impl fmt::Display, why: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), value: value.to_string(), why: why.into() }
    }

    /// The same error, seen from one level up: `prefix.field`.
    #[must_use]
    pub fn within(mut self, prefix: &str) -> Self {
        if let Self::Invalid { field, .. } | Self::CannotLaunch { field, .. } = &mut self {
            *field = if field.is_empty() { prefix.to_owned() } else { format!("{prefix}.{field}") };
        }
        self
    }
}

/// What the core's functions return.
pub type Result<T> = std::result::Result<T, Error>;
