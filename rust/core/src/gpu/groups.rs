//! Which SMs the dispatcher sees together.
//!
//! A *group* is what one visit of the dispatcher covers, mostly a GPC. A cluster lies within a *cell* of it: the whole group,
//! or, where the device says that a group takes small clusters only, each of the parts of that size.

use super::sm::{Footprint, Sms};
use crate::device::Device;
use crate::ids::{Id, IdVec, SmId};

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
    left_over: bool,
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
            groups.push(Group { sms: group.sms.clone(), cells: first..cells.len(), left_over: group.is_left_over() });
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

    /// A group's cells, once round from the one at this position.
    pub(crate) fn cells_from(&self, group: usize, first: usize) -> impl Iterator<Item = usize> + use<> {
        let cells = self.cells(group);
        let count = cells.len();
        (0..count).map(move |turn| cells.start + (first + turn) % count)
    }

    /// The SMs of a cell, in the order of dispatch.
    pub(crate) fn sms_of_cell(&self, cell: usize) -> &[SmId] {
        &self.cells[cell]
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

    /// How many CTAs each SM gets in the next pass over the machine; none if nothing fits anywhere.
    ///
    /// Passes even out how many more CTAs of the kernel fit: SMs with the most room get as many as bring them to the next
    /// ones' room, as long as all of them get the same; what does not divide evenly is spread over them in a last pass.
    ///
    /// With `ahead`, left-over TPCs get their part of what does not divide evenly already now.
    pub(crate) fn shares(&self, ctas: u64, ahead: bool, sms: &Sms, need: &Footprint) -> Option<IdVec<SmId, u32>> {
        let mut room = IdVec::filled(0, sms.count());
        (0..sms.count()).map(SmId::from_index).for_each(|sm| room[sm] = sms.room(sm, need));
        let most = room.values().copied().max().filter(|&most| most > 0)?;
        let next = room.values().copied().filter(|&room| room < most).max().unwrap_or(0);
        let roomiest: Vec<SmId> = (0..sms.count()).map(SmId::from_index).filter(|&sm| room[sm] == most).collect();
        let all = roomiest.len() as u64;
        let each = u64::from(most - next).min(ctas / all) as u32;
        let mut shares = IdVec::filled(0, sms.count());
        roomiest.iter().for_each(|&sm| shares[sm] = each);
        let rest = ctas - u64::from(each) * all;
        let last = each == 0;
        if last || (ahead && each < most && rest < all) {
            let extra = self.spread(rest as usize, &roomiest, sms).filter(|&sm| last || self.is_left_over(sm));
            extra.for_each(|sm| shares[sm] += 1);
        }
        Some(shares)
    }

    fn is_left_over(&self, sm: SmId) -> bool {
        let cell = self.cell_of(sm);
        self.groups.iter().any(|group| group.left_over && group.cells.contains(&cell))
    }

    /// Which of some SMs get the few CTAs that are left for them: left-over TPCs first, then GPCs in turn, in each of them a
    /// TPC that is empty before one that is not.
    fn spread(&self, ctas: usize, among: &[SmId], sms: &Sms) -> impl Iterator<Item = SmId> + use<> {
        let mut open = IdVec::filled(false, sms.count());
        among.iter().for_each(|&sm| open[sm] = true);
        let mut order = Vec::with_capacity(among.len());
        for (index, group) in self.groups.iter().enumerate() {
            let mut turns: Vec<u32> = Vec::new();
            for tpc in group.sms.chunks(SMS_PER_TPC) {
                let mut load: u32 = tpc.iter().filter(|&&sm| !open[sm]).map(|&sm| sms.resident_on(sm)).sum();
                for &sm in tpc.iter().filter(|&&sm| open[sm]) {
                    turns.resize(turns.len().max(load as usize + 1), 0);
                    let turn = &mut turns[load as usize];
                    let key = if group.left_over { (false, load, 0, index) } else { (true, load, *turn, index) };
                    order.push((key, sm));
                    *turn += 1;
                    load += 1;
                }
            }
        }
        if ctas < order.len() {
            order.select_nth_unstable(ctas);
        }
        order.into_iter().take(ctas).map(|(_, sm)| sm)
    }
}
