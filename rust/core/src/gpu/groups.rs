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

/// How many CTAs each SM still gets in one pass over the machine.
#[derive(Debug)]
pub(crate) struct Shares {
    of_sm: IdVec<SmId, u32>,
    of_group: Vec<u32>,
}

impl Shares {
    /// What the SMs of a group still get together.
    pub(crate) fn of_group(&self, group: usize) -> u32 {
        self.of_group[group]
    }

    /// Takes one CTA from an SM's share; false if it has none left.
    pub(crate) fn take(&mut self, group: usize, sm: SmId) -> bool {
        if self.of_sm[sm] == 0 {
            return false;
        }
        self.of_sm[sm] -= 1;
        self.of_group[group] -= 1;
        true
    }
}

/// SMs that share a TPC are neighbours in a group's list, and CTAs are spread over TPCs before they share one.
pub(super) const SMS_PER_TPC: usize = 2;

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
    pub(crate) fn shares(&self, ctas: u64, ahead: bool, sms: &Sms, need: &Footprint) -> Option<Shares> {
        let mut room = IdVec::filled(0, sms.count());
        (0..sms.count()).map(SmId::from_index).for_each(|sm| room[sm] = sms.room(sm, need));
        let most = room.values().copied().max().filter(|&most| most > 0)?;
        let next = room.values().copied().filter(|&room| room < most).max().unwrap_or(0);
        let roomiest: Vec<SmId> = (0..sms.count()).map(SmId::from_index).filter(|&sm| room[sm] == most).collect();
        let all = roomiest.len() as u64;
        let each = u64::from(most - next).min(ctas / all) as u32;
        let mut of_sm = IdVec::filled(0, sms.count());
        for &sm in &roomiest {
            of_sm[sm] = each;
        }
        let rest = ctas - u64::from(each) * all;
        let last = each == 0;
        if last || (ahead && each < most && rest < all) {
            let extra = self.spread(rest as usize, &roomiest, sms).filter(|&sm| last || self.is_left_over(sm));
            extra.for_each(|sm| of_sm[sm] += 1);
        }
        let sum = |group: &Group| group.sms.iter().map(|&sm| of_sm[sm]).sum();
        let of_group = self.groups.iter().map(sum).collect();
        Some(Shares { of_sm, of_group })
    }

    fn is_left_over(&self, sm: SmId) -> bool {
        let cell = self.cell_of(sm);
        self.groups.iter().any(|group| group.left_over && group.cells.contains(&cell))
    }

    /// Which of some SMs get the few CTAs that are left for them: left-over TPCs first, then GPCs in turn, in each of them a
    /// TPC that is empty before one that is not.
    fn spread(&self, ctas: usize, among: &[SmId], sms: &Sms) -> impl Iterator<Item = SmId> + use<> {
        let mut open = IdVec::filled(false, sms.count());
        for &sm in among {
            open[sm] = true;
        }
        let mut order = Vec::with_capacity(among.len());
        for (index, group) in self.groups.iter().enumerate() {
            let mut turns: Vec<u32> = Vec::new();
            for tpc in group.sms.chunks(SMS_PER_TPC) {
                let others: u32 = tpc.iter().filter(|&&sm| !open[sm]).map(|&sm| sms.resident_on(sm)).sum();
                for (&sm, load) in tpc.iter().filter(|&&sm| open[sm]).zip(others..) {
                    turns.resize(turns.len().max(load as usize + 1), 0);
                    let turn = &mut turns[load as usize];
                    let key = if group.left_over { (false, load, 0, index) } else { (true, load, *turn, index) };
                    order.push((key, sm));
                    *turn += 1;
                }
            }
        }
        if ctas < order.len() {
            order.select_nth_unstable(ctas);
        }
        order.into_iter().take(ctas).map(|(_, sm)| sm)
    }
}

#[cfg(test)]
mod tests {
    use super::{Groups, Shares};
    use crate::device::{Shape, catalogue};
    use crate::gpu::sm::{Footprint, Resident, Sms};
    use crate::ids::SmId;

    /// What is placed on the H200: the shares of each GPC and of the left-over TPCs, which are the second group.
    fn passes(ctas: u64, ahead: bool, before: &[u16]) -> Vec<Vec<u32>> {
        let device = catalogue::device("h200").expect("the catalogue has it");
        let (groups, mut sms) = (Groups::new(&device), Sms::new(&device, 1));
        let occupancy = device.occupancy(&Shape { threads: 512, ..Shape::default() });
        let need = Footprint::new(&occupancy, 1);
        for &sm in before {
            sms.place(SmId(sm), None, &need, Resident::default());
        }
        let (mut left, mut found) = (ctas, Vec::new());
        while let Some(shares) = groups.shares(left, ahead, &sms, &need).filter(|_| left > 0) {
            let of_groups: Vec<u32> = (0..groups.count()).map(|group| shares.of_group(group)).collect();
            left -= u64::from(of_groups.iter().sum::<u32>()).min(left);
            place(&groups, shares, &mut sms, &need);
            found.push(of_groups);
        }
        found
    }

    fn place(groups: &Groups, mut shares: Shares, sms: &mut Sms, need: &Footprint) {
        for group in 0..groups.count() {
            for &sm in groups.sms(group) {
                while shares.take(group, sm) {
                    sms.place(sm, None, need, Resident::default());
                }
            }
        }
    }

    #[test]
    fn few_ctas_go_to_left_over_tpcs_and_then_to_one_sm_of_each_tpc() {
        assert_eq!(passes(66, false, &[]), [[4, 8, 8, 8, 8, 8, 8, 7, 7]]);
    }

    #[test]
    fn more_of_them_share_tpcs() {
        assert_eq!(passes(100, false, &[]), [[8, 8, 12, 12, 12, 12, 12, 12, 12]]);
    }

    #[test]
    fn whole_layers_come_first_and_the_rest_is_spread() {
        let layers = [16, 16, 32, 32, 32, 32, 32, 36, 36];
        assert_eq!(passes(392, false, &[]), [layers, [8, 8, 16, 16, 16, 16, 16, 16, 16]]);
    }

    #[test]
    fn left_over_tpcs_can_have_their_part_of_the_rest_ahead() {
        assert_eq!(passes(392, true, &[])[0], [16, 24, 32, 32, 32, 32, 32, 36, 36]);
    }

    #[test]
    fn sms_with_more_room_are_brought_level_first() {
        let busy: Vec<u16> = (2..132).collect();
        let passes = passes(134, false, &busy);
        assert_eq!(passes[0], [2, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(passes[1].iter().sum::<u32>(), 132);
    }

    #[test]
    fn a_full_machine_has_no_shares() {
        assert!(passes(10, false, &(0..132).flat_map(|sm| [sm; 4]).collect::<Vec<u16>>()).is_empty());
    }
}
