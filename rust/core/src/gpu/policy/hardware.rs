//! The dispatcher as the silicon has it: one serial server for the whole die.
//!
//! A kernel that finds an empty machine is placed in visits: the dispatcher goes round the GPCs and gives each SM one CTA a
//! visit, which takes it only a few cycles. A slot that comes back goes another way: the end of its CTA is a message to a
//! server that takes them one at a time, and the next CTA goes where that message came from. So the first placement is
//! several times as fast as what follows, and what follows does not get faster with more SMs.
//!
//! TPCs that are left over from incomplete GPCs form groups that take small clusters only. The dispatcher comes by them
//! first, and then once in a while between the full GPCs, at no cost of its own. Where it begins, among the GPCs and among
//! the left-over TPCs, is where the launch before left off.

use rand_core::Rng;

use super::{Dispatch, Launched, Reusable, Start, Visit};
use crate::device::Device;
use crate::engine::{Time, rng};
use crate::gpu::tpc::Tpcs;
use crate::ids::{IdVec, SmId};
use crate::simulate::Options;

/// Visits to full GPCs after a plain launch's first visit to the left-over TPCs, and after each further one, until the next.
/// Cluster launches come by them once a round over all GPCs, cooperative ones before they turn to any GPC.
const FULL_BETWEEN: [u32; 2] = [5, 6];

/// The timings, in time; and what is busy until when.
#[derive(Debug)]
pub(crate) struct Hardware {
    visit: Time,
    refill: Time,
    single_cluster: Time,
    cluster_latency: Time,
    switch: Time,
    cold: Time,
    cold_return: Time,
    fetched_interval: Time,
    setup: Setup,
    crowded_setup: Setup,
    crowded_warps: u32,
    max_setup: Time,
    rounds: Rounds,
    server_free: Time,
    /// The same if all ways to it were equally long.
    ends_taken: Time,
    least_return: Time,
    /// When the next cluster can be sent into slots that came back.
    next_cluster: Time,
    sms: IdVec<SmId, SmPort>,
}

/// What an SM takes to set up a CTA.
#[derive(Clone, Copy, Debug)]
struct Setup {
    cta: u64,
    warp: u64,
}

/// Whose turn it is among the groups.
#[derive(Debug)]
struct Rounds {
    full: Vec<usize>,
    left_over: Vec<LeftOver>,
    /// Position in `full`. It stays from one kernel to the next, so that kernels begin with different GPCs.
    next: usize,
    /// With which of their TPCs the visits to left-over groups begin.
    next_tpc: usize,
    /// How the launch that is being placed was launched; none yet.
    launched: Option<Launched>,
    /// Visits to full GPCs until the left-over TPCs' turn.
    until_left_over: u32,
    /// Visits of this pass to left-over TPCs.
    left_over_visits: u32,
    /// Passes of this launch that came by left-over TPCs.
    left_over_passes: u32,
}

/// A group of left-over TPCs.
#[derive(Clone, Copy, Debug)]
struct LeftOver {
    group: usize,
    tpcs: usize,
}

/// The way to one SM.
#[derive(Clone, Copy, Debug, Default)]
struct SmPort {
    send: Time,
    back: Time,
    next_start: Time,
    /// The launch's last instructions have been fetched.
    exit_warm: Time,
    setup_free: Time,
}

impl Hardware {
    pub(crate) fn new(device: &Device, options: &Options) -> Self {
        let dispatch = &device.dispatch;
        let time = |cycles: f64| Time(device.clock.cycles_to_ps(cycles).round() as u64);
        let mut sms = IdVec::filled(SmPort::default(), device.sm_count());
        for gpc in &device.topology.gpcs {
            let far = if gpc.far { 1.0 } else { 0.0 };
            for group in &gpc.groups {
                for &sm in &group.sms {
                    sms[sm].send = time(dispatch.send_cycles + far * dispatch.far_send_cycles);
                    sms[sm].back = time(dispatch.return_cycles + far * dispatch.far_return_cycles);
                }
            }
        }
        let setup = |cta, warp| Setup { cta: time(cta).0, warp: time(warp).0 };
        Self {
            visit: time(dispatch.visit_cycles),
            refill: time(dispatch.refill_cycles),
            single_cluster: time(dispatch.single_cluster_cycles),
            cluster_latency: time(dispatch.cluster_latency_cycles),
            switch: Time((device.launch.switch_ns * 1e3).round() as u64),
            cold: time(dispatch.cold_cycles),
            cold_return: time(dispatch.cold_return_cycles),
            fetched_interval: time(dispatch.fetched_interval_cycles),
            setup: setup(dispatch.setup_cycles, dispatch.setup_warp_cycles),
            crowded_setup: setup(dispatch.crowded_setup_cycles, dispatch.crowded_setup_warp_cycles),
            crowded_warps: dispatch.crowded_warps as u32,
            max_setup: time(dispatch.max_setup_cycles),
            rounds: Rounds::new(device, options),
            server_free: Time::ZERO,
            ends_taken: Time::ZERO,
            least_return: time(dispatch.refill_cycles) + sms.values().map(|port| port.back).min().unwrap_or_default(),
            next_cluster: Time::ZERO,
            sms,
        }
    }

    /// One message at the server.
    #[inline]
    fn serve(&mut self, arrival: Time) -> Time {
        self.server_free = self.server_free.max(arrival) + self.refill;
        self.server_free
    }
}

impl Rounds {
    fn new(device: &Device, options: &Options) -> Self {
        let (mut full, mut left_over) = (Vec::new(), Vec::new());
        // Which GPC, and which TPC among the left-over ones, each given SM belongs to.
        let (mut next, mut next_tpc) = (None, None);
        for (index, group) in device.topology.gpcs.iter().flat_map(|gpc| &gpc.groups).enumerate() {
            let mut given = options.first_sms.iter().flatten();
            let place = given.find_map(|first| group.sms.iter().position(|sm| sm == first));
            match group.max_cluster {
                None => {
                    next = next.or(place.map(|_| full.len()));
                    full.push(index);
                }
                Some(size) => {
                    let size = size.max(1) as usize;
                    next_tpc = next_tpc.or(place.map(|place| place / size));
                    left_over.push(LeftOver { group: index, tpcs: group.sms.len().div_ceil(size) });
                }
            }
        }
        let drawn = |purpose, among: usize| {
            let random = rng::stream(options.seed, purpose, 0).next_u64();
            (random % among.max(1) as u64) as usize
        };
        let tpcs = left_over.iter().map(|group| group.tpcs).max().unwrap_or(0);
        Self {
            next: next.unwrap_or_else(|| drawn("first group", full.len())),
            next_tpc: next_tpc.unwrap_or_else(|| drawn("first left-over TPC", tpcs)),
            full,
            left_over,
            launched: None,
            until_left_over: 0,
            left_over_visits: 0,
            left_over_passes: 0,
        }
    }

    /// A launch begins.
    fn begin(&mut self, of: Launched, has_room: &mut dyn FnMut(usize) -> bool) {
        let before = self.launched.replace(of);
        // Plain launches take turns between the two halves of the left-over TPCs; two passes are two turns.
        if before == Some(Launched::Plain) && !self.left_over_passes.is_multiple_of(2) {
            self.next_tpc += self.left_over.first().map_or(0, |group| group.tpcs / 2);
        }
        // One that does not begin with them leaves out a GPC.
        let without = !self.left_over.is_empty() && self.left_over.iter().all(|one| !has_room(one.group));
        if before.is_some() && of == Launched::Plain && without {
            self.next = (self.next + 1) % self.full.len().max(1);
        }
        self.left_over_passes = 0;
        self.begin_pass();
    }

    /// A pass over the machine begins, with the left-over TPCs.
    fn begin_pass(&mut self) {
        self.until_left_over = 0;
        self.left_over_visits = 0;
    }

    fn next(&mut self, at: Time, has_room: &mut dyn FnMut(usize) -> bool) -> Option<Visit> {
        let count = self.full.len();
        let full = (0..count).map(|turn| (self.next + turn) % count).find(|&turn| has_room(self.full[turn]));
        if (self.until_left_over == 0 || full.is_none())
            && let Some(LeftOver { group, tpcs }) = self.left_over.iter().copied().find(|one| has_room(one.group))
        {
            self.until_left_over = match self.launched {
                Some(Launched::Clusters) => count as u32,
                Some(Launched::Cooperatively) => 0,
                Some(Launched::Plain) | None => FULL_BETWEEN[self.left_over_visits.min(1) as usize],
            };
            self.left_over_visits += 1;
            self.left_over_passes += u32::from(self.left_over_visits == 1);
            let step = if self.launched == Some(Launched::Plain) { (tpcs / 2).max(1) } else { 1 };
            let cell = self.next_tpc % tpcs / step * step;
            return Some(Visit { at, group, cell });
        }
        let turn = full?;
        self.next = (turn + 1) % count;
        self.until_left_over = self.until_left_over.saturating_sub(1);
        Some(Visit { at, group: self.full[turn], cell: 0 })
    }
}

impl Dispatch for Hardware {
    fn tpcs(&self, device: &Device) -> Tpcs {
        Tpcs::new(device)
    }

    fn first_visit(&mut self, now: Time, of: Launched, has_room: &mut dyn FnMut(usize) -> bool) -> Option<Visit> {
        self.rounds.begin(of, has_room);
        self.rounds.next(now, has_room)
    }

    fn next_visit(&mut self, last: Visit, single: bool, has_room: &mut dyn FnMut(usize) -> bool) -> Option<Visit> {
        let free = self.rounds.left_over.iter().any(|one| one.group == last.group);
        let mut at = if free { last.at } else { last.at + self.visit };
        if single {
            at += self.single_cluster;
        }
        self.rounds.next(at, has_room)
    }

    fn next_pass(&mut self, last: Visit, has_room: &mut dyn FnMut(usize) -> bool) -> Option<Visit> {
        self.rounds.begin_pass();
        self.rounds.next(last.at + self.visit, has_room)
    }

    #[inline]
    fn reusable(&mut self, out: Time, sm: SmId, cold: bool) -> Reusable {
        let port = &mut self.sms[sm];
        if cold {
            port.exit_warm = out + self.cold_return;
        }
        let left = out.max(port.exit_warm);
        let arrival = left + port.back;
        let (earliest, at) = (arrival + self.refill, self.serve(arrival));
        // A far one that ended a little earlier is no queue.
        let queued = self.ends_taken > left;
        self.ends_taken = self.ends_taken.max(left) + self.refill;
        Reusable { earliest, at, queued }
    }

    #[inline]
    fn least_return(&self) -> Time {
        self.least_return
    }

    fn signalled(&mut self, at: Time, sm: SmId) -> Time {
        self.serve(at + self.sms[sm].back)
    }

    fn cluster(&mut self, now: Time, size: usize) -> Time {
        let single = if size == 1 { self.single_cluster } else { Time::ZERO };
        let sent = self.next_cluster.max(now);
        self.next_cluster = sent + self.visit + single;
        if size == 1 { sent } else { sent + self.cluster_latency }
    }

    #[inline]
    fn start(&mut self, entered: Time, sm: SmId, warps: u32, running_warps: u32, cold: bool, work: Time) -> Start {
        let port = &mut self.sms[sm];
        let arrival = entered + port.send;
        // The first one waits for its instructions; those that came meanwhile then follow it closely.
        let ready = if cold { arrival + self.cold } else { arrival };
        let first = ready.max(port.next_start);
        port.next_start = first + self.fetched_interval;
        let roomy = self.crowded_warps.saturating_sub(running_warps).min(warps);
        let crowded = warps - roomy;
        let cta = if crowded == 0 { self.setup.cta } else { self.crowded_setup.cta };
        let warps = u64::from(roomy) * self.setup.warp + u64::from(crowded) * self.crowded_setup.warp;
        // Warps that have ended make room for the next ones: what ends at once is set up at once.
        let all = first.max(port.setup_free) + Time(cta + warps).min(self.max_setup).min(work);
        port.setup_free = all;
        Start { first, all }
    }

    fn switch(&self) -> Time {
        self.switch
    }
}

#[cfg(test)]
mod tests {
    use super::{Launched, Options, Rounds};
    use crate::device::catalogue;
    use crate::engine::Time;
    use crate::ids::SmId;

    const LEFT_OVER: usize = 1;

    fn rounds(first_sms: [u16; 2]) -> Rounds {
        let device = catalogue::device("h200").expect("the catalogue has it");
        Rounds::new(&device, &Options { first_sms: first_sms.map(|sm| Some(SmId(sm))), ..Options::default() })
    }

    /// The groups of the next visits, and for those to left-over TPCs, with which of these they begin.
    fn visits(rounds: &mut Rounds, count: usize) -> Vec<(usize, usize)> {
        let mut next = || rounds.next(Time::ZERO, &mut |_| true).expect("there is room everywhere");
        (0..count).map(|_| next()).map(|visit| (visit.group, visit.cell)).collect()
    }

    fn positions_of_left_over(visits: &[(usize, usize)]) -> Vec<usize> {
        (0..visits.len()).filter(|&i| visits[i].0 == LEFT_OVER).collect()
    }

    #[test]
    fn a_launch_begins_where_it_is_told_to_and_goes_round_in_the_order_of_the_list() {
        let mut rounds = rounds([128, 10]);
        rounds.begin(Launched::Plain, &mut |_| true);
        // SM 10 is in the sixth GPC, whose group is the seventh; 128 is in the third of four left-over TPCs.
        let expected = [(1, 2), (6, 0), (7, 0), (8, 0), (0, 0), (2, 0), (1, 2), (3, 0), (4, 0), (5, 0), (6, 0)];
        assert_eq!(visits(&mut rounds, 11), expected);
    }

    #[test]
    fn plain_launches_come_by_left_over_tpcs_after_five_gpcs_and_then_after_six() {
        let mut rounds = rounds([124, 2]);
        rounds.begin(Launched::Plain, &mut |_| true);
        assert_eq!(positions_of_left_over(&visits(&mut rounds, 21)), [0, 6, 13, 20]);
    }

    #[test]
    fn cluster_launches_come_by_left_over_tpcs_once_a_round() {
        let mut rounds = rounds([126, 2]);
        rounds.begin(Launched::Clusters, &mut |_| true);
        let visits = visits(&mut rounds, 19);
        assert_eq!(positions_of_left_over(&visits), [0, 9, 18]);
        assert_eq!(visits[0].1, 1, "they begin with any of the TPCs");
    }

    #[test]
    fn cooperative_launches_fill_left_over_tpcs_first() {
        let mut rounds = rounds([130, 2]);
        rounds.begin(Launched::Cooperatively, &mut |_| true);
        assert_eq!(visits(&mut rounds, 3), [(LEFT_OVER, 3); 3]);
    }

    #[test]
    fn plain_launches_take_turns_between_the_halves_of_the_left_over_tpcs() {
        let mut rounds = rounds([124, 2]);
        let first: Vec<usize> = (0..3)
            .map(|_| {
                rounds.begin(Launched::Plain, &mut |_| true);
                visits(&mut rounds, 9)[0].1 % 4
            })
            .collect();
        assert_eq!(first, [0, 2, 0]);
    }

    #[test]
    fn a_launch_that_leaves_out_the_left_over_tpcs_leaves_out_a_gpc_too() {
        let mut rounds = rounds([124, 2]);
        rounds.begin(Launched::Plain, &mut |_| true);
        // Two of these ten are to left-over TPCs; after the other eight it is the first GPC's turn again.
        let before = visits(&mut rounds, 10);
        let full = |group| group != LEFT_OVER;
        rounds.begin(Launched::Plain, &mut { full });
        let next = rounds.next(Time::ZERO, &mut { full }).map(|visit| visit.group);
        assert_eq!((before[1].0, next), (2, Some(3)));
    }
}
