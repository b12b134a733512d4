//! What a caller can cause is an error; a broken invariant of the model is a panic.

use std::fmt;

use thiserror::Error;

use crate::ids::SmId;

/// A value that was refused, as it was given; or what it is, in words.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A whole number; one that 64 bits do not hold is given as text.
    Whole(i64),
    /// Any other number.
    Number(f64),
    /// Text.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

macro_rules! whole {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                i64::try_from(value).map_or_else(|_| Self::Text(value.to_string()), Self::Whole)
            }
        }
    )*};
}
whole!(i32, i64, u8, u16, u32, u64, u128, usize);

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<SmId> for Value {
    fn from(sm: SmId) -> Self {
        sm.0.into()
    }
}

/// Why a simulation, a device or a workload was refused, or could not go on.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that can't be: the field's path, what it got, and what it should be.
    #[error("{field}: {why} (got {value})")]
    Invalid {
        /// The path of the field, such as `program.items[2].kernel.block`.
        field: String,
        /// The value as it was given.
        value: Value,
        /// What is wrong with it.
        why: String,
    },
    /// A kernel that the device can't run: which limit, and by how much.
    #[error("{field}: kernel `{kernel}` cannot launch on {device}: {why}")]
    CannotLaunch {
        /// The path of the kernel's field that asks for too much.
        field: String,
        /// The value of that field.
        value: Value,
        /// The kernel's name.
        kernel: String,
        /// The device's name.
        device: String,
        /// Which limit it breaks, and by how much.
        why: String,
    },
    /// Nothing can go on, and something has not finished.
    #[error("deadlock{}: {who}", at_ns.map_or_else(String::new, |at_ns| format!(" at {at_ns} ns")))]
    Deadlock {
        /// From when on nothing more could happen, in whole nanoseconds: when the last of those that wait began to, or what
        /// else happened last. None if it is known before the run.
        at_ns: Option<u64>,
        /// Who waits for whom.
        who: String,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// A value that can't be.
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, why: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), value: value.into(), why: why.into() }
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

/// What may be given, in an error: `a, b or c`.
pub(crate) fn any_of<N: AsRef<str>>(names: &[N]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// What the core's functions return.
pub type Result<T> = std::result::Result<T, Error>;
