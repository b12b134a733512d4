//! A larger or smaller die of the same kind.

use super::Device;
use super::memory::LARGEST_BYTES;
use super::provenance::{Provenance, Status};
use super::topology::{Gpc, Topology};
use crate::error::{Error, Result};
use crate::ids::{Id, SmId};

impl Device {
    /// The same kind of device with another number of SMs.
    ///
    /// - **GPCs** keep their sizes. A larger die repeats the list of GPCs from its start until it has enough SMs, each new
    ///   one as a single group and near to the part of L2 that has the fewest SMs; a smaller one drops GPCs from the end.
    ///   The last GPC is cut to fit. SM numbers are closed up.
    /// - **L2** (size, slices and bandwidths) and **DRAM** (bandwidth) grow and shrink in proportion to the SMs; latencies stay.
    /// - **The dispatcher** stays as it is: one serial server for the whole die, the same cycles a CTA. So do launches and
    ///   the clock.
    ///
    /// What changed is marked as assumed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for no SMs, more than an SM number can count, or so many that L2 would be larger than 16 GiB.
    pub fn scaled(&self, sms: usize) -> Result<Self> {
        if sms == 0 || sms > usize::from(u16::MAX) {
            return Err(Error::invalid("sms", sms, "a device has from 1 to 65,535 SMs"));
        }
        let before = self.sm_count();
        if sms == before {
            return Ok(self.clone());
        }
        let mut device = self.clone();
        device.name = format!("{}@{sms}", self.name.split('@').next().unwrap_or(&self.name));
        device.title = format!("{}, scaled from {before} to {sms} SMs", self.title);
        device.topology = scaled_topology(&self.topology, sms, self.l2.halves);
        let ratio = sms as f64 / before as f64;
        let grain = u64::from(self.l2.line_bytes) * u64::from(self.l2.halves) * u64::from(self.l2.ways);
        let lines = (self.l2.bytes as f64 * ratio / grain as f64).round().max(1.0) as u64;
        device.l2.bytes = lines * grain;
        if device.l2.bytes > LARGEST_BYTES {
            let most = LARGEST_BYTES * before as u64 / self.l2.bytes;
            let why = format!("this device has at most {most} SMs, with which its L2 has {LARGEST_BYTES} bytes");
            return Err(Error::invalid("sms", sms, why));
        }
        device.l2.reserved_bytes = (self.l2.reserved_bytes as f64 * ratio) as u64;
        let slices = (f64::from(self.l2.slices) * ratio / f64::from(self.l2.halves)).round().max(1.0) as u32;
        device.l2.slices = slices * u32::from(self.l2.halves);
        device.l2.bandwidth_gb_s *= ratio;
        device.l2.fabric_bandwidth_gb_s *= ratio;
        device.l2.write_bandwidth_gb_s *= ratio;
        device.dram.bandwidth_gb_s *= ratio;
        device.dram.reached_gb_s *= ratio;
        for path in [
            "topology",
            "l2.bytes",
            "l2.reserved_bytes",
            "l2.slices",
            "l2.bandwidth_gb_s",
            "l2.fabric_bandwidth_gb_s",
            "l2.write_bandwidth_gb_s",
            "dram.bandwidth_gb_s",
            "dram.reached_gb_s",
        ] {
            let nested = format!("{path}.");
            device.provenance.retain(|entry, _| !entry.starts_with(&nested));
            let source = format!("scaled from {} ({before} SMs) to {sms} SMs", self.name);
            device.provenance.insert(path.to_owned(), Provenance { source, status: Status::Assumed });
        }
        device.validate()?;
        Ok(device)
    }
}

fn scaled_topology(topology: &Topology, sms: usize, halves: u8) -> Topology {
    let mut gpcs: Vec<Gpc> = Vec::new();
    let mut count = 0;
    let mut near = vec![0_usize; usize::from(halves)];
    for (i, original) in topology.gpcs.iter().cycle().enumerate() {
        if count >= sms {
            break;
        }
        let mut gpc = if i < topology.gpcs.len() {
            original.clone()
        } else {
            let least = (0..near.len()).min_by_key(|&half| near[half]).unwrap_or(0);
            let first = topology.sm_count().max(count);
            let size = original.sm_count().min(sms - count);
            let sms = (first..first + size).map(SmId::from_index);
            Gpc { far: original.far, ..Gpc::of(sms, least as u8) }
        };
        cut(&mut gpc, sms - count);
        count += gpc.sm_count();
        near[usize::from(gpc.half)] += gpc.sm_count();
        gpcs.push(gpc);
    }
    close_up(&mut gpcs);
    Topology { gpcs }
}

/// Drops SMs from the end of a GPC that has more than `most`.
fn cut(gpc: &mut Gpc, most: usize) {
    let mut left = most;
    for group in &mut gpc.groups {
        group.sms.truncate(left);
        left -= group.sms.len();
    }
    gpc.groups.retain(|group| !group.sms.is_empty());
}

/// Numbers the SMs from 0 without gaps, in the order of the numbers that they had.
fn close_up(gpcs: &mut [Gpc]) {
    let mut sms: Vec<SmId> = gpcs.iter().flat_map(Gpc::sms).collect();
    sms.sort_unstable();
    for sm in gpcs.iter_mut().flat_map(|gpc| &mut gpc.groups).flat_map(|group| &mut group.sms) {
        let rank = sms.partition_point(|other| other < sm);
        *sm = SmId::from_index(rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::catalogue;

    fn sizes(device: &Device) -> Vec<usize> {
        device.topology.gpcs.iter().map(Gpc::sm_count).collect()
    }

    #[test]
    fn a_larger_die_repeats_the_gpcs_and_cuts_the_last() {
        let h200 = catalogue::device("h200").unwrap();
        let large = h200.scaled(264).unwrap();
        assert_eq!(sizes(&large), [sizes(&h200), sizes(&h200)].concat());
        let odd = h200.scaled(140).unwrap();
        assert_eq!(sizes(&odd), [sizes(&h200), vec![8]].concat());
    }

    #[test]
    fn a_smaller_die_drops_gpcs_from_the_end_and_numbers_its_sms_without_gaps() {
        let h200 = catalogue::device("h200").unwrap();
        let small = h200.scaled(20).unwrap();
        assert_eq!(sizes(&small), [16, 4]);
        small.topology.validate().unwrap();
    }

    #[test]
    fn memory_scales_with_the_sms_and_the_dispatcher_does_not() {
        let h200 = catalogue::device("h200").unwrap();
        let half = h200.scaled(66).unwrap();
        assert_eq!(half.l2.bytes * 2, h200.l2.bytes);
        assert!((half.dram.bandwidth_gb_s * 2.0 - h200.dram.bandwidth_gb_s).abs() < 1e-9);
        assert_eq!(half.dispatch, h200.dispatch);
        assert_eq!(half.provenance_of("l2.bytes").unwrap().status, Status::Assumed);
        assert_eq!(half.provenance_of("clock.sm_mhz"), h200.provenance_of("clock.sm_mhz"));
    }

    #[test]
    fn new_gpcs_balance_the_parts_of_l2() {
        let large = catalogue::device("h200").unwrap().scaled(264).unwrap();
        let near: usize = large.topology.gpcs.iter().filter(|gpc| gpc.half == 0).map(Gpc::sm_count).sum();
        assert!((116..=148).contains(&near), "{near} of 264");
    }

    #[test]
    fn no_sms_is_refused() {
        let error = catalogue::device("h200").unwrap().scaled(0).unwrap_err().to_string();
        assert_eq!(error, "sms: a device has from 1 to 65,535 SMs (got 0)");
    }

    #[test]
    fn each_device_of_the_catalogue_scales_to_the_largest_l2_and_says_how_many_sms_that_are() {
        for name in catalogue::names() {
            let device = catalogue::device(name).unwrap();
            let Err(error) = device.scaled(65_535) else { continue };
            let error = error.to_string();
            assert!(error.starts_with("sms: this device has at most "), "{error}");
            let most = error.split("at most ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
            let most: usize = most.parse().unwrap();
            assert!(device.scaled(most).is_ok(), "{name}: {error}");
            assert!(device.scaled(most + 1).is_err(), "{name}: {error}");
        }
    }
}
