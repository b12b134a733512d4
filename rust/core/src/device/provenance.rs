//! Where a number is from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How well a number is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Measured on the device.
    Measured,
    /// Given by the vendor, by the driver, or in public measurements.
    Published,
    /// Neither: taken over from another device, or estimated.
    Assumed,
}

/// Where a number is from, and how well it is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// What was read or done to get it.
    pub source: String,
    /// How well it is known.
    pub status: Status,
}

/// The entry of `path`, or of the nearest part above it that has one.
pub(super) fn lookup<'a>(entries: &'a BTreeMap<String, Provenance>, path: &str) -> Option<&'a Provenance> {
    let mut path = path;
    loop {
        if let Some(entry) = entries.get(path) {
            return Some(entry);
        }
        path = &path[..path.rfind(['.', '['])?];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(paths: &[&str]) -> BTreeMap<String, Provenance> {
        paths
            .iter()
            .map(|p| {
                let entry = Provenance { source: (*p).to_owned(), status: Status::Measured };
                ((*p).to_owned(), entry)
            })
            .collect()
    }

    #[test]
    fn a_field_with_its_own_entry_does_not_take_its_parts() {
        let entries = entries(&["l2", "l2.bytes"]);
        assert_eq!(lookup(&entries, "l2.bytes").unwrap().source, "l2.bytes");
        assert_eq!(lookup(&entries, "l2.halves").unwrap().source, "l2");
    }

    #[test]
    fn an_element_of_a_list_takes_the_entry_of_the_list() {
        let entries = entries(&["topology.gpcs"]);
        assert!(lookup(&entries, "topology.gpcs[3].half").is_some());
        assert!(lookup(&entries, "topology").is_none());
    }
}
