//! Which SMs the dispatcher sees together.
//!
//! A *group* is what one visit of the dispatcher covers, mostly a GPC. A cluster lies within a *cell* of it: the whole group,
//! or, where the device says that a group takes small clusters only, each of the parts of that size.

use super::sm::{Footprint, Sms};
use crate::device::Device;
use crate::ids::{IdVec, SmId};

/// The groups of a device, in the order of its list.
#[derive(Debug)]
pub(crate) struct Groups {
    groups: Vec<Group>,
    cells: Vec<Vec<SmId>>,
    /// The cell of each SM.
    cell_of: IdVec<SmId, u16>,
    /// The GPC of each SM.
    gpc_of: IdVec<SmId, u16>,
}

#[derive(Debug)]
struct Group {
    sms: Vec<SmId>,
    cells: std::ops::Range<usize>,
}

/// SMs that share a TPC are neighbours in a group's list, and CTAs are spread over TPCs before they share one.
const SMS_PER_TPC: usize = 2;

impl Groups {
    pub(crate) fn new(device: &Device) -> Self {
        let mut cell_of = IdVec::filled(0, device.sm_count());
        let mut gpc_of = IdVec::filled(0, device.sm_count());
        for (i, gpc) in device.topology.gpcs.iter().enumerate() {
            gpc.sms().for_each(|sm| gpc_of[sm] = i as u16);
        }
        let mut groups = Vec::new();
        let mut cells: Vec<Vec<SmId>> = Vec::new();
        for group in device.topology.gpcs.iter().flat_map(|gpc| &gpc.groups) {
            let first = cells.len();
            let cell_size = group.max_cluster.map_or(group.sms.len(), |max| max.max(1) as usize);
            for cell in group.sms.chunks(cell_size) {
                for &sm in cell {
                    cell_of[sm] = cells.len() as u16;
                }
                cells.push(cell.to_vec());
            }
            groups.push(Group { sms: group.sms.clone(), cells: first..cells.len() });
        }
        Self { groups, cells, cell_of, gpc_of }
    }

    pub(crate) fn count(&self) -> usize {
        self.groups.len()
    }

    pub(crate) fn sms(&self, group: usize) -> &[SmId] {
        &self.groups[group].sms
    }

    pub(crate) fn cells(&self, group: usize) -> std::ops::Range<usize> {
        self.groups[group].cells.clone()
    }

    #[inline]
    pub(crate) fn gpc_of(&self, sm: SmId) -> usize {
        usize::from(self.gpc_of[sm])
    }

    pub(crate) fn cell_of(&self, sm: SmId) -> usize {
        usize::from(self.cell_of[sm])
    }

    /// Finds the places of a cluster of `size` CTAs in a cell: on the least loaded TPCs, each SM taken once. The answer is
    /// the most CTAs that one of these SMs holds already.
    pub(crate) fn pick(
        &self,
        cell: usize,
        size: usize,
        sms: &Sms,
        need: &Footprint,
        places: &mut Vec<SmId>,
    ) -> Option<u32> {
        places.clear();
        let cell = &self.cells[cell];
        if size > cell.len() {
            return None;
        }
        let unit = if size == 1 { 1 } else { SMS_PER_TPC };
        let mut units: Vec<(u32, usize)> = cell
            .chunks(unit)
            .enumerate()
            .filter(|(_, tpc)| tpc.iter().all(|&sm| sms.fits(sm, need)))
            .map(|(i, tpc)| (tpc.iter().map(|&sm| sms.resident_on(sm)).max().unwrap_or(0), i))
            .collect();
        units.sort_unstable();
        let mut taken = 0;
        let mut load = 0;
        let mut chosen = 0;
        for &(of_unit, i) in &units {
            if taken >= size {
                break;
            }
            taken += cell.chunks(unit).nth(i).map_or(0, <[SmId]>::len);
            load = load.max(of_unit);
            chosen += 1;
        }
        if taken < size {
            return None;
        }
        units.truncate(chosen);
        units.sort_unstable_by_key(|&(_, i)| i);
        places.extend(units.iter().flat_map(|&(_, i)| cell[i * unit..].iter().take(unit)).copied());
        places.truncate(size);
        Some(load)
    }

    /// Where the CTAs go if there are fewer of them than SMs with room: spread over the groups, and over the TPCs of each
    /// before two share one. True for each SM that gets one.
    pub(crate) fn spread(&self, ctas: usize, sms: &Sms, need: &Footprint) -> IdVec<SmId, bool> {
        let mut chosen = IdVec::filled(false, self.cell_of.len());
        let lanes: Vec<Vec<SmId>> = self
            .cells
            .iter()
            .map(|cell| {
                let mut lane: Vec<(u32, usize, SmId)> = cell
                    .iter()
                    .enumerate()
                    .filter(|&(_, &sm)| sms.fits(sm, need))
                    .map(|(i, &sm)| (sms.resident_on(sm), i % SMS_PER_TPC, sm))
                    .collect();
                lane.sort_by_key(|&(load, within_tpc, _)| (load, within_tpc));
                lane.into_iter().map(|(_, _, sm)| sm).collect()
            })
            .collect();
        let longest = lanes.iter().map(Vec::len).max().unwrap_or(0);
        (0..longest)
            .flat_map(|turn| lanes.iter().filter_map(move |lane| lane.get(turn)))
            .take(ctas)
            .for_each(|&sm| chosen[sm] = true);
        chosen
    }
}
