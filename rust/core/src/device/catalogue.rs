//! The known devices: one TOML file each, in `catalogue/`.
//!
//! A file holds what is known of the device. `[topology] gpc_sizes` stands for GPCs whose SM numbers are dealt in pairs, and
//! `like = "h200"` there for that device's list. `like` in `[dispatch]`, `[launch]`, `[sync]`, `[issue]`, `[l2]` or `[dram]` takes the fields that
//! the file does not give from that device, and marks them as assumed. Limits follow from the compute capability.

use std::sync::{LazyLock, OnceLock};

use serde_json::{Map, Value};

use super::Device;
use super::limits::{ComputeCapability, Limits};
use super::provenance::{Provenance, Status};
use super::topology::Topology;
use crate::error::{Error, Result, any_of};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("catalogue/", $name, ".toml")))),*]
    };
}

/// The devices' names and files.
const FILES: [(&str, &str); 18] = files![
    "v100-sxm2",
    "a100-sxm4-40",
    "a100-sxm4-80",
    "a100-pcie-80",
    "a10",
    "rtx3090",
    "rtx4090",
    "l40s",
    "l4",
    "h100-sxm",
    "h100-pcie",
    "gh200",
    "h200",
    "b200",
    "rtx5090",
    "mi210",
    "mi250x",
    "mi300x",
];

/// Words of product names that say nothing of the model.
const VENDOR_WORDS: [&str; 7] = ["nvidia", "amd", "tesla", "geforce", "instinct", "corporation", "graphics"];

/// The names of the known devices.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|&(name, _)| name)
}

/// The device that a name means: its short name, or the product's name as drivers write it, in any case and punctuation.
pub fn find(name: &str) -> Option<&'static str> {
    let wanted = normal(name);
    KNOWN_AS.iter().find_map(|(short, known)| known.contains(&wanted).then_some(*short))
}

/// Each device's names, as [`normal`] writes them.
static KNOWN_AS: LazyLock<Vec<(&str, Vec<String>)>> = LazyLock::new(|| {
    let of = |&(short, text)| {
        let file = parse(short, text);
        let aliases = file["aliases"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let all = std::iter::once(short).chain(file["title"].as_str()).chain(aliases);
        (short, all.map(normal).filter(|known| !known.is_empty()).collect())
    };
    FILES.iter().map(of).collect()
});

/// The devices that have been read so far, in the order of [`FILES`].
static LOADED: [OnceLock<Device>; FILES.len()] = [const { OnceLock::new() }; FILES.len()];

/// A device of the catalogue, by a name that [`find`] understands.
///
/// # Errors
/// [`Error::Invalid`] for an unknown name; it suggests the nearest ones.
pub fn device(name: &str) -> Result<Device> {
    let Some(short) = find(name) else {
        let near = nearest(name);
        let why = if near.is_empty() {
            format!("no such device: must be {}", any_of(&names().collect::<Vec<_>>()))
        } else {
            format!("no such device; did you mean {}?", any_of(&near))
        };
        return Err(Error::invalid("device", name, why));
    };
    Ok(load(short).clone())
}

/// A device that the catalogue does not have, from its compute capability and its number of SMs.
///
/// It is the catalogue's device of the nearest capability, scaled to `sms`, with the limits of its own capability; every
/// number is marked as assumed.
///
/// # Errors
/// [`Error::Invalid`] when `sms` is no number of SMs.
pub fn generic(capability: &ComputeCapability, title: &str, sms: usize) -> Result<Device> {
    let known = match capability {
        ComputeCapability::Cuda(major, minor) => Limits::nearest_known(*major, *minor),
        ComputeCapability::Gfx(name) => match name.as_str() {
            known @ ("gfx90a" | "gfx942" | "gfx950") => ComputeCapability::Gfx(known.to_owned()),
            name if name < "gfx94" => ComputeCapability::Gfx("gfx90a".to_owned()),
            _ => ComputeCapability::Gfx("gfx942".to_owned()),
        },
    };
    let like = match &known {
        ComputeCapability::Cuda(7, _) => "v100-sxm2",
        ComputeCapability::Cuda(8, 0) => "a100-sxm4-80",
        ComputeCapability::Cuda(8, 9) => "l40s",
        ComputeCapability::Cuda(8, _) => "a10",
        ComputeCapability::Cuda(9, _) => "h100-sxm",
        ComputeCapability::Cuda(10 | 11, _) => "b200",
        ComputeCapability::Cuda(..) => "rtx5090",
        ComputeCapability::Gfx(name) if name == "gfx90a" => "mi210",
        ComputeCapability::Gfx(_) => "mi300x",
    };
    let mut device = load(like).scaled(sms)?;
    device.name = normal(title);
    if device.name.is_empty() {
        device.name = format!("cc-{capability}");
    }
    title.clone_into(&mut device.title);
    if title.is_empty() {
        device.title = format!("unnamed device of compute capability {capability}");
    }
    device.compute_capability = capability.clone();
    device.limits = Limits::of(&known)?;
    device.provenance = ["topology", "limits", "clock", "dispatch", "launch", "sync", "issue", "l2", "dram"]
        .into_iter()
        .map(|part| {
            let source = if part == "limits" {
                format!("the limits of compute capability {known}")
            } else {
                format!("as {like}, the catalogue's device of the nearest compute capability")
            };
            (part.to_owned(), Provenance { source, status: Status::Assumed })
        })
        .collect();
    device.validate()?;
    Ok(device)
}

/// The names that come nearest to one that is not known.
fn nearest(name: &str) -> Vec<&'static str> {
    let wanted = normal(name);
    let mut scored: Vec<(usize, &str)> = names()
        .map(|short| {
            let plain = normal(short);
            let within = !wanted.is_empty() && (plain.contains(&wanted) || wanted.contains(&plain));
            let shared = plain.chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
            let distance = distance(&plain, &wanted);
            let score = if within { 0 } else { (distance + 1).saturating_sub(shared / 2) };
            (score, short)
        })
        .filter(|&(score, _)| score <= 1 + wanted.len() / 3)
        .collect();
    scored.sort_unstable();
    scored.into_iter().take(4).map(|(_, short)| short).collect()
}

/// A name without case, punctuation and the vendor's words.
fn normal(name: &str) -> String {
    name.to_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !VENDOR_WORDS.contains(word))
        .collect()
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.chars().count()]
}

fn parse(short: &str, text: &str) -> Value {
    toml::from_str(text).unwrap_or_else(|error| panic!("catalogue/{short}.toml: {error}"))
}

/// Reads a file of the catalogue. The files are part of the crate, and a test reads each: a fault in one is a panic.
fn load(short: &str) -> &'static Device {
    let at = FILES
        .iter()
        .position(|&(name, _)| name == short)
        .unwrap_or_else(|| panic!("catalogue/{short}.toml is not listed"));
    LOADED[at].get_or_init(|| {
        let mut file = parse(short, FILES[at].1);
        expand(&mut file).unwrap_or_else(|error| panic!("catalogue/{short}.toml: {error}"));
        let device: Device =
            serde_json::from_value(file).unwrap_or_else(|error| panic!("catalogue/{short}.toml: {error}"));
        device.validate().unwrap_or_else(|error| panic!("catalogue/{short}.toml: {error}"));
        device
    })
}

/// Replaces a file's short forms by a whole device.
fn expand(file: &mut Value) -> Result<()> {
    let fields = object(file, "device")?;
    fields.remove("aliases");
    for part in ["dispatch", "launch", "sync", "issue", "l2", "dram"] {
        let given = object(fields.entry(part).or_insert_with(|| Value::Object(Map::new())), part)?;
        let Some(like) = given.remove("like") else { continue };
        let like = like.as_str().unwrap_or_default().to_owned();
        let other = load(&like);
        let Value::Object(inherited) = json(other)[part].take() else { unreachable!() };
        for (key, value) in inherited {
            given.entry(key).or_insert(value);
        }
        let source = format!("as {}; not known for this device", other.title);
        provenance(fields, part, source, Status::Assumed)?;
    }
    let capability: ComputeCapability = fields["compute_capability"].as_str().unwrap_or_default().parse()?;
    let source = match capability {
        ComputeCapability::Cuda(..) => "CUDA programming guide; NVIDIA/cccl arch_traits.h",
        ComputeCapability::Gfx(_) => "AMD CDNA instruction set manuals; LLVM AMDGPU back end",
    };
    let limits = object(fields.entry("limits").or_insert_with(|| Value::Object(Map::new())), "limits")?;
    let Value::Object(usual) = json(&Limits::of(&capability)?) else { unreachable!() };
    for (key, value) in usual {
        limits.entry(key).or_insert(value);
    }
    provenance(fields, "limits", source.to_owned(), Status::Published)?;
    if fields["limits"]["max_cluster"] != 1 {
        let source = "as the H200, where it was measured".to_owned();
        provenance(fields, "limits.ctas_in_clusters", source, Status::Assumed)?;
        if capability != ComputeCapability::Cuda(9, 0) {
            let source = "not confirmed for this capability".to_owned();
            provenance(fields, "limits.max_nonportable_cluster", source, Status::Assumed)?;
        }
    }
    let halves = fields["l2"]["halves"].as_u64().unwrap_or(1) as u8;
    let topology = object(&mut fields["topology"], "topology")?;
    if let Some(like) = topology.remove("like") {
        let other = load(like.as_str().unwrap_or_default());
        fields.insert("topology".to_owned(), json(&other.topology));
    } else if let Some(sizes) = topology.remove("gpc_sizes") {
        let sizes: Vec<usize> = serde_json::from_value(sizes)
            .map_err(|error| Error::invalid("topology.gpc_sizes", "a list", error.to_string()))?;
        fields.insert("topology".to_owned(), json(&Topology::dealt(&sizes, halves)));
    }
    Ok(())
}

fn json<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("a device is plain data")
}

fn object<'a>(value: &'a mut Value, field: &str) -> Result<&'a mut Map<String, Value>> {
    value.as_object_mut().ok_or_else(|| Error::invalid(field, "a value", "must be a table"))
}

/// Adds an entry for a part, unless the file has its own.
fn provenance(fields: &mut Map<String, Value>, part: &str, source: String, status: Status) -> Result<()> {
    let entries = fields.entry("provenance").or_insert_with(|| Value::Object(Map::new()));
    object(entries, "provenance")?.entry(part).or_insert_with(|| json(&Provenance { source, status }));
    Ok(())
}
