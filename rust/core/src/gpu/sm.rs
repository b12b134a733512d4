//! The SMs: what each has left of its resources, and which of its slots are taken.

use crate::device::{Device, Limits, Occupancy};
use crate::engine::Time;
use crate::ids::{Id, IdVec, KernelId, SlotId, SmId};

/// What a CTA of a kernel takes of an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footprint {
    /// Equal for equal footprints of a program.
    pub(crate) shape: u32,
    pub(crate) warps: u32,
    registers: u32,
    shared_bytes: u32,
    barriers: u32,
    /// What the SM's shared memory is set to for this kernel.
    carve_out_bytes: u32,
    /// CTAs an SM holds when all are of this footprint.
    pub(crate) residency: u32,
    /// The same by what a CTA keeps until its end: its slot, shared memory and barriers.
    kept: u32,
}

impl Footprint {
    pub(crate) fn new(occupancy: &Occupancy, barriers: u32) -> Self {
        Self {
            shape: 0,
            carve_out_bytes: occupancy.carve_out_bytes,
            warps: occupancy.warps_per_cta,
            registers: occupancy.registers_per_cta,
            shared_bytes: occupancy.shared_per_cta_bytes,
            barriers: if occupancy.by_barriers.is_some() { barriers } else { 0 },
            residency: occupancy.ctas_per_sm,
            kept: [occupancy.by_shared, occupancy.by_barriers].into_iter().flatten().fold(occupancy.by_ctas, u32::min),
        }
    }
}

/// Slots are numbered within an SM and kept as bits of one word.
const MAX_SLOTS: u32 = 64;

/// One SM.
#[derive(Clone, Debug)]
struct Sm {
    ctas: u32,
    warps: u32,
    registers: u32,
    shared_bytes: u32,
    barriers: u32,
    /// What shared memory is set to while CTAs are resident.
    carve_out_bytes: u32,
    resident: u32,
    /// The shape that all residents share, or [`MIXED`].
    shape: u32,
    /// Warps of CTAs that have been let in and have not ended.
    running_warps: u32,
    last_kernel: Option<KernelId>,
    taken: u64,
    /// Slots whose CTAs have ended, and whose coming back the dispatcher has not heard of.
    ended: u64,
    /// Slots of CTAs whose last warp runs, as the dispatcher has heard.
    nearly_free: u64,
}

/// CTAs of different shapes are on one SM.
const MIXED: u32 = u32::MAX;

/// What one SM has done so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    last_ended: Option<KernelId>,
    pub(crate) ctas: u64,
    pub(crate) busy_ps: u128,
    pub(crate) last_end: Time,
    /// From when to when CTAs ran, as far as is known of those that have ended: the last stretch, and those before it that one
    /// which still runs could join.
    stretch: (Time, Time),
    earlier: Vec<(Time, Time)>,
    /// The sum of all others.
    settled: Time,
}

/// So many stretches are kept before a look at which of them nobody can join.
const FEW_STRETCHES: usize = 64;

impl Usage {
    /// A CTA ran from `start` to `end`, and none that ran here ended later.
    #[inline]
    fn ran(&mut self, start: Time, end: Time) {
        if start < self.stretch.0 || start > self.stretch.1 {
            self.other_stretch(start);
        }
        self.stretch.1 = end;
    }

    /// The last stretch is a new one from `start` on; or it began then already, and what lies between is part of it.
    #[cold]
    #[inline(never)]
    fn other_stretch(&mut self, start: Time) {
        if start > self.stretch.1 {
            self.earlier.push(self.stretch);
        }
        self.stretch.0 = start;
        while let Some((from, _)) = self.earlier.pop_if(|(_, until)| *until >= start) {
            self.stretch.0 = start.min(from);
        }
    }

    /// Whether it is time to settle what nobody can join.
    #[inline]
    fn has_many_stretches(&self) -> bool {
        self.earlier.len() >= FEW_STRETCHES && self.earlier.len().is_power_of_two()
    }

    /// None that still runs, or comes, began before `earliest`.
    fn settle(&mut self, earliest: Time) {
        let joined = self.earlier.partition_point(|&(_, until)| until < earliest);
        self.settled +=
            self.earlier.drain(..joined).map(|(from, until)| until - from).fold(Time::ZERO, |sum, one| sum + one);
    }

    /// How long at least one CTA ran.
    pub(crate) fn active(&self) -> Time {
        let stretches = self.earlier.iter().chain([&self.stretch]);
        stretches.fold(self.settled, |sum, &(from, until)| sum + (until - from))
    }
}

/// One CTA in its place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resident {
    pub(crate) kernel: KernelId,
    pub(crate) cta: u32,
    pub(crate) start: Time,
}

/// All SMs and the CTAs on them.
#[derive(Debug)]
pub(crate) struct Sms {
    sms: IdVec<SmId, Sm>,
    usage: IdVec<SmId, Usage>,
    /// CTAs of each shape on each SM.
    of_shape: Vec<u8>,
    shapes: usize,
    residents: Vec<Resident>,
    /// From when on a CTA's last warp runs alone, by place.
    last_warps: Vec<Time>,
    most_resident: u32,
}

/// An SM and one of its slots as one small number, which the event queue carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) u32);

impl Place {
    pub(crate) fn new(sm: SmId, slot: u32) -> Self {
        Self(sm.index() as u32 * MAX_SLOTS + slot)
    }

    #[inline]
    pub(crate) fn sm(self) -> SmId {
        SmId((self.0 / MAX_SLOTS) as u16)
    }

    #[inline]
    pub(crate) fn slot(self) -> SlotId {
        SlotId((self.0 % MAX_SLOTS) as u16)
    }
}

impl Sms {
    /// `shapes` is the number of different footprints of the program.
    pub(crate) fn new(device: &Device, shapes: usize) -> Self {
        let limits: &Limits = &device.limits;
        let sm = Sm {
            ctas: limits.ctas.min(MAX_SLOTS),
            warps: limits.warps,
            registers: limits.registers,
            shared_bytes: limits.shared_bytes,
            barriers: limits.barriers.unwrap_or(u32::MAX),
            carve_out_bytes: 0,
            resident: 0,
            shape: MIXED,
            running_warps: 0,
            last_kernel: None,
            taken: 0,
            ended: 0,
            nearly_free: 0,
        };
        let count = device.sm_count();
        Self {
            sms: IdVec::filled(sm, count),
            usage: IdVec::filled(Usage::default(), count),
            of_shape: vec![0; count * shapes],
            shapes,
            residents: vec![Resident::default(); count * MAX_SLOTS as usize],
            last_warps: vec![Time::MAX; count * MAX_SLOTS as usize],
            most_resident: 0,
        }
    }

    /// How many places there are.
    pub(crate) fn places(&self) -> usize {
        self.residents.len()
    }

    pub(crate) fn count(&self) -> usize {
        self.sms.len()
    }

    /// The most CTAs that one SM held at once.
    pub(crate) fn most_resident(&self) -> u32 {
        self.most_resident
    }

    #[inline]
    fn index_of(&self, sm: SmId, need: &Footprint) -> usize {
        sm.index() * self.shapes + need.shape as usize
    }

    /// CTAs on an SM.
    #[inline]
    pub(crate) fn resident_on(&self, sm: SmId) -> u32 {
        self.sms[sm].resident
    }

    /// Warps of CTAs that have been let in to an SM and have not ended.
    #[inline]
    pub(crate) fn running_warps(&self, sm: SmId) -> u32 {
        self.sms[sm].running_warps
    }

    /// Whether an SM has not run this launch yet.
    #[inline]
    pub(crate) fn is_new_to(&self, sm: SmId, kernel: KernelId) -> bool {
        self.sms[sm].last_kernel != Some(kernel)
    }

    /// Whether one more CTA fits. An idle SM is set to any split of shared memory and L1; a busy one stays as it is, so it
    /// takes no kernel that needs a larger one.
    #[inline]
    pub(crate) fn fits(&self, sm: SmId, need: &Footprint) -> bool {
        let own = self.of_shape[self.index_of(sm, need)];
        let sm = &self.sms[sm];
        if sm.resident == 0 || sm.shape == need.shape {
            // Where only the last warps of some CTAs run, as many more as fit beside these.
            return sm.resident < need.residency
                || (sm.nearly_free != 0
                    && sm.resident < need.kept
                    && sm.warps >= need.warps
                    && sm.registers >= need.registers);
        }
        u32::from(own) < need.residency
            && sm.ctas > 0
            && sm.warps >= need.warps
            && sm.registers >= need.registers
            && sm.carve_out_bytes >= need.carve_out_bytes
            && sm.shared_bytes >= need.shared_bytes
            && sm.barriers >= need.barriers
    }

    /// How many more CTAs fit.
    pub(crate) fn room(&self, id: SmId, need: &Footprint) -> u32 {
        let sm = &self.sms[id];
        if sm.resident == 0 || sm.shape == need.shape {
            return need.residency.saturating_sub(sm.resident);
        }
        if !self.fits(id, need) {
            return 0;
        }
        let of = |free: u32, each: u32| free.checked_div(each).unwrap_or(u32::MAX);
        sm.ctas
            .min(of(sm.warps, need.warps))
            .min(of(sm.registers, need.registers))
            .min(of(sm.shared_bytes, need.shared_bytes))
            .min(of(sm.barriers, need.barriers))
    }

    /// Puts a CTA on an SM where it fits: in this slot, or in the first free one.
    #[inline]
    pub(crate) fn place(&mut self, id: SmId, slot: Option<SlotId>, need: &Footprint, cta: Resident) -> Place {
        let own = self.index_of(id, need);
        self.of_shape[own] += 1;
        let sm = &mut self.sms[id];
        if sm.resident == 0 {
            sm.carve_out_bytes = need.carve_out_bytes;
            sm.shared_bytes = need.carve_out_bytes;
            sm.shape = need.shape;
        } else if sm.shape != need.shape {
            sm.shape = MIXED;
        }
        sm.ctas -= 1;
        sm.warps -= need.warps;
        // Alone on the SM, a footprint may hold as many CTAs as the rules of residency say; the plain sums below are only
        // compared where kernels mix.
        sm.registers = sm.registers.wrapping_sub(need.registers);
        sm.shared_bytes = sm.shared_bytes.wrapping_sub(need.shared_bytes);
        sm.barriers = sm.barriers.wrapping_sub(need.barriers);
        sm.resident += 1;
        sm.last_kernel = Some(cta.kernel);
        self.most_resident = self.most_resident.max(sm.resident);
        let slot = slot.map_or(sm.taken.trailing_ones(), |slot| u32::from(slot.0));
        sm.taken |= 1 << slot;
        let place = Place::new(id, slot);
        self.residents[place.0 as usize] = cta;
        self.last_warps[place.0 as usize] = Time::MAX;
        place
    }

    #[inline]
    pub(crate) fn resident(&self, place: Place) -> Resident {
        self.residents[place.0 as usize]
    }

    /// When the CTA at this place starts, which has been let in.
    #[inline]
    pub(crate) fn starts(&mut self, place: Place, warps: u32, at: Time) {
        self.sms[place.sm()].running_warps += warps;
        self.residents[place.0 as usize].start = at;
    }

    /// Puts a CTA in the place of one of the same launch that has ended.
    #[inline]
    pub(crate) fn replace(&mut self, place: Place, cta: Resident) {
        self.sms[place.sm()].last_kernel = Some(cta.kernel);
        self.residents[place.0 as usize] = cta;
    }

    /// The CTA at this place has run its last instruction; whether it is the first of its launch that ends there.
    #[inline]
    pub(crate) fn ended(&mut self, place: Place, kernel: KernelId, warps: u32, end: Time, busy: Time) -> bool {
        self.sms[place.sm()].running_warps -= warps;
        let record = &mut self.usage[place.sm()];
        record.ctas += 1;
        record.busy_ps += u128::from(busy.0);
        record.last_end = end;
        record.ran(end - busy, end);
        let first = record.last_ended.replace(kernel) != Some(kernel);
        if record.has_many_stretches() {
            self.settle(place.sm(), end);
        }
        first
    }

    /// Settles what nobody on this SM can join any more at `now`.
    #[cold]
    #[inline(never)]
    fn settle(&mut self, sm: SmId, now: Time) {
        let taken = self.sms[sm].taken;
        let residents =
            (0..MAX_SLOTS).filter(|slot| taken >> slot & 1 == 1).map(|slot| self.resident(Place::new(sm, slot)));
        let earliest = residents.map(|cta| cta.start).min().unwrap_or(now);
        self.usage[sm].settle(earliest);
    }

    /// From when on the last warp of a CTA runs alone.
    pub(crate) fn last_warp_from(&mut self, place: Place, at: Time) {
        self.last_warps[place.0 as usize] = at;
    }

    /// The CTA at this place has ended at `now`: the other slots of its SM on which CTAs of the same launch have only their
    /// last warp left.
    pub(crate) fn nearly_free(&mut self, place: Place, now: Time) -> u64 {
        let sm = &mut self.sms[place.sm()];
        sm.ended |= 1 << place.slot().0;
        let kernel = self.residents[place.0 as usize].kernel;
        let (mut left, mut found) = (sm.taken & !sm.ended, 0);
        while left != 0 {
            let slot = left.trailing_zeros();
            left &= left - 1;
            let other = Place::new(place.sm(), slot).0 as usize;
            if self.last_warps[other] <= now && self.residents[other].kernel == kernel {
                found |= 1 << slot;
            }
        }
        found
    }

    /// The dispatcher hears that on these slots only the last warps run: all that the others held can be given away.
    pub(crate) fn nearly_free_up(&mut self, id: SmId, slots: u64, need: &Footprint) {
        let sm = &mut self.sms[id];
        let new = (slots & !sm.nearly_free).count_ones();
        sm.nearly_free |= slots;
        sm.warps += new * (need.warps - 1);
        sm.registers = sm.registers.wrapping_add(new * (need.registers - need.registers / need.warps));
    }

    /// The CTA's place and resources can be given away again; whether its SM is empty now.
    #[inline]
    pub(crate) fn free(&mut self, place: Place, need: &Footprint) -> bool {
        let own = self.index_of(place.sm(), need);
        self.of_shape[own] -= 1;
        let sm = &mut self.sms[place.sm()];
        let slot = 1 << place.slot().0;
        let (warps, registers) =
            if sm.nearly_free & slot == 0 { (need.warps, need.registers) } else { (1, need.registers / need.warps) };
        sm.ctas += 1;
        sm.warps += warps;
        sm.registers = sm.registers.wrapping_add(registers);
        sm.shared_bytes = sm.shared_bytes.wrapping_add(need.shared_bytes);
        sm.barriers = sm.barriers.wrapping_add(need.barriers);
        sm.resident -= 1;
        sm.taken &= !slot;
        sm.ended &= !slot;
        sm.nearly_free &= !slot;
        sm.resident == 0
    }

    /// What each SM did, by number.
    pub(crate) fn usage(&self) -> impl Iterator<Item = &Usage> {
        self.usage.values()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_cta_joins_the_stretches_of_short_ones_beside_it() {
        let mut usage = Usage::default();
        for (start, end) in [(10, 20), (30, 40), (50, 60), (25, 60)] {
            usage.ran(Time(start), Time(end));
        }
        assert_eq!(usage.active(), Time(10 + 35));
    }

    proptest! {
        /// An SM is active for as long as the union of its CTAs' times, whenever a look is taken at what can be settled.
        #[test]
        fn active_time_is_that_of_the_union(
            mut ctas in prop::collection::vec((0..200_u64, 0..40_u64), 1..60),
            looks in 1..10_usize,
        ) {
            for (start, end) in &mut ctas {
                *end += *start;
            }
            ctas.sort_unstable_by_key(|&(_, end)| end);
            let mut usage = Usage::default();
            for (i, &(start, end)) in ctas.iter().enumerate() {
                usage.ran(Time(start), Time(end));
                if i % looks == 0 {
                    let earliest = ctas[i + 1..].iter().map(|&(start, _)| start).min().unwrap_or(end);
                    usage.settle(Time(earliest));
                }
            }
            let moments = (0..240).filter(|&at| ctas.iter().any(|&(start, end)| start <= at && at < end)).count();
            prop_assert_eq!(usage.active(), Time(moments as u64));
        }
    }
}
