//! The ledger: every picosecond of every slot goes to exactly one account.
//!
//! Sums are kept in whole picoseconds of slot time, and once more by window of time for the timeline. When the run outgrows
//! the windows, neighbours are merged and the width doubles, so that their number stays between half of
//! [`MAX_WINDOWS`] and all of it, whatever the length of the run.

use crate::engine::Time;

/// Where slot time can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Account {
    /// A CTA runs in the slot.
    Busy,
    /// Nothing runs, and nothing is ready to run: the host or the front end is the reason.
    Launch,
    /// A CTA waits, the slot fits and is free, and the kernel's first placement is under way.
    Fill,
    /// A CTA waits, the slot fits and is free: the dispatcher is the reason.
    Starved,
    /// A CTA waits and the slot is free, but the CTA does not fit on the SM.
    Blocked,
    /// No CTA is left to place, others still run, and no other work waits for them.
    Tail,
    /// No CTA is left to place, others still run, and issued work waits for them.
    Dependency,
}

/// The number of accounts.
pub const ACCOUNTS: usize = 7;

impl Account {
    /// All accounts, in the order of the frames.
    pub const ALL: [Self; ACCOUNTS] =
        [Self::Busy, Self::Launch, Self::Fill, Self::Starved, Self::Blocked, Self::Tail, Self::Dependency];

    /// The account's name in frames.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Launch => "launch",
            Self::Fill => "fill",
            Self::Starved => "starved",
            Self::Blocked => "blocked",
            Self::Tail => "tail",
            Self::Dependency => "dependency",
        }
    }
}

/// Slot time by account, in picoseconds.
pub type Sums = [i128; ACCOUNTS];

/// The most windows kept.
const MAX_WINDOWS: usize = 2048;
/// The width of the first windows, in picoseconds.
const FIRST_WIDTH: u64 = 1024;

/// The accounts' sums, in all and by window of time.
#[derive(Clone, Debug)]
pub struct Ledger {
    totals: Sums,
    windows: Vec<Sums>,
    width: u64,
}

impl Ledger {
    /// Slot time of an account, in picoseconds.
    pub fn total(&self, account: Account) -> i128 {
        self.totals[account as usize]
    }

    /// The share of each account in `bins` equal parts of the time from zero to `makespan`. Windows that straddle two
    /// bins are divided in proportion.
    pub fn timeline(&self, bins: usize, makespan: Time) -> Vec<[f64; ACCOUNTS]> {
        let mut out = vec![[0.0; ACCOUNTS]; bins];
        let bin_width = makespan.0 as f64 / bins as f64;
        if bin_width <= 0.0 {
            return out;
        }
        for (i, window) in self.windows.iter().enumerate() {
            let start = (i as u64 * self.width) as f64;
            let end = ((i as u64 + 1) * self.width).min(makespan.0) as f64;
            if end <= start {
                continue;
            }
            let first = ((start / bin_width) as usize).min(bins - 1);
            let last = ((end / bin_width).ceil() as usize).clamp(first + 1, bins);
            for (bin, shares) in out.iter_mut().enumerate().take(last).skip(first) {
                let overlap = end.min((bin + 1) as f64 * bin_width) - start.max(bin as f64 * bin_width);
                for (share, &sum) in shares.iter_mut().zip(window) {
                    *share += sum as f64 * overlap.max(0.0) / (end - start);
                }
            }
        }
        for shares in &mut out {
            let sum: f64 = shares.iter().sum();
            if sum > 0.0 {
                for share in shares.iter_mut() {
                    *share /= sum;
                }
            }
        }
        out
    }
}

/// What one window (or the whole run) has gathered so far.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Time during which a free slot belonged to the account.
    idle: [u64; ACCOUNTS],
    /// Slot time of the account, short of `slots * idle`: the number of slots is known only at the end. So the slots that
    /// were not free during that time count negative here.
    sums: Sums,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        for account in 0..ACCOUNTS {
            self.idle[account] += other.idle[account];
            self.sums[account] += other.sums[account];
        }
    }

    fn resolve(&self, slots: u64) -> Sums {
        std::array::from_fn(|account| self.sums[account] + i128::from(slots) * i128::from(self.idle[account]))
    }
}

/// Keeps the ledger while a run goes on.
///
/// A slot is *assigned* from when a CTA is let in until it ends, then *returning* until the dispatcher may give it away again,
/// *waiting* from that decision until its CTA is let in, and else *free*. Assigned slots count as busy; what passes before the
/// CTA's first instruction is then moved from busy to where it belongs. Waiting slots belong to the account of their placement,
/// returning and free ones to the accounts of the moment.
#[derive(Debug)]
pub(crate) struct Bookkeeper {
    assigned: Count,
    returning: Count,
    /// Given to CTAs that wait to go in, by account.
    waiting: [Count; ACCOUNTS],
    free_account: Account,
    returning_account: Account,
    /// Up to when the window in use has been filled.
    since: u64,
    window: Tally,
    closed: Vec<Tally>,
    width: u64,
    window_end: u64,
    /// Slot time to be moved out of busy that has not been: no window can give more than it has.
    owed: [u64; ACCOUNTS],
}

/// A number of slots over time. Its integral needs no work between two changes: a slot that joins at `a` and leaves at `b`
/// adds `b - a`, so each change adds or subtracts its time, once.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    slots: u64,
    moment: i128,
}

impl Count {
    #[inline]
    fn join(&mut self, now: Time) {
        self.slots += 1;
        self.moment -= i128::from(now.0);
    }

    #[inline]
    fn leave(&mut self, now: Time) {
        self.slots -= 1;
        self.moment += i128::from(now.0);
    }

    /// The integral from the last call until `now`.
    fn take(&mut self, now: u64) -> i128 {
        let until_now = i128::from(self.slots) * i128::from(now);
        let integral = self.moment + until_now;
        self.moment = -until_now;
        integral
    }
}

impl Bookkeeper {
    /// To which a slot can belong while its CTA waits.
    const WAITS: [Account; 2] = [Account::Fill, Account::Starved];

    pub(crate) fn new() -> Self {
        Self {
            assigned: Count::default(),
            returning: Count::default(),
            waiting: [Count::default(); ACCOUNTS],
            free_account: Account::Launch,
            returning_account: Account::Launch,
            since: 0,
            window: Tally::default(),
            closed: Vec::new(),
            width: FIRST_WIDTH,
            window_end: FIRST_WIDTH,
            owed: [0; ACCOUNTS],
        }
    }

    /// Time comes to `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time) {
        if now.0 >= self.window_end {
            self.pass_windows(now);
        }
    }

    /// Enters into the window in use what has passed since the last time.
    fn settle(&mut self, now: u64) {
        let (assigned, returning) = (self.assigned.take(now), self.returning.take(now));
        self.window.sums[Account::Busy as usize] += assigned;
        self.window.sums[self.returning_account as usize] += returning;
        self.window.sums[self.free_account as usize] -= assigned + returning;
        for account in Self::WAITS {
            let waiting = self.waiting[account as usize].take(now);
            self.window.sums[account as usize] += waiting;
            self.window.sums[self.free_account as usize] -= waiting;
        }
        self.window.idle[self.free_account as usize] += now - self.since;
        self.since = now;
    }

    #[cold]
    #[inline(never)]
    fn pass_windows(&mut self, now: Time) {
        // A long quiet stretch would be cut into many windows only to merge them again.
        while (now.0 - self.since) / self.width > MAX_WINDOWS as u64 {
            self.merge();
        }
        while now.0 >= self.window_end {
            self.settle(self.window_end);
            self.pay();
            self.closed.push(std::mem::take(&mut self.window));
            self.window_end += self.width;
            if self.closed.len() == MAX_WINDOWS {
                self.merge();
            }
        }
    }

    /// Merges neighbours, so that windows are twice as wide; the one in use grows to its new end.
    fn merge(&mut self) {
        let odd = self.closed.len() % 2 == 1;
        if odd && let Some(last) = self.closed.pop() {
            self.window.add(&last);
        }
        let pairs = self.closed.len() / 2;
        for i in 0..pairs {
            let mut sum = self.closed[2 * i];
            sum.add(&self.closed[2 * i + 1]);
            self.closed[i] = sum;
        }
        self.closed.truncate(pairs);
        self.width *= 2;
        self.window_end = (pairs as u64 + 1) * self.width;
    }

    /// Moves what is owed out of this window's busy time, as far as that goes.
    fn pay(&mut self) {
        for account in 0..ACCOUNTS {
            let busy = self.window.sums[Account::Busy as usize].max(0) as u128;
            let paid = u128::from(self.owed[account]).min(busy) as u64;
            self.owed[account] -= paid;
            self.window.sums[Account::Busy as usize] -= i128::from(paid);
            self.window.sums[account] += i128::from(paid);
        }
    }

    /// A slot is given to a CTA that cannot go there yet; that time belongs to `account`.
    pub(crate) fn wait(&mut self, now: Time, account: Account) {
        debug_assert!(Self::WAITS.contains(&account));
        self.waiting[account as usize].join(now);
    }

    /// It can.
    pub(crate) fn stop_waiting(&mut self, now: Time, account: Account) {
        self.waiting[account as usize].leave(now);
    }

    /// A slot is assigned; its CTA starts after `latency`, which belongs to `account`.
    #[inline]
    pub(crate) fn assign(&mut self, now: Time, latency: Time, account: Account) {
        self.assigned.join(now);
        self.owed[account as usize] += latency.0;
    }

    /// The CTA of an assigned slot ends.
    #[inline]
    pub(crate) fn end(&mut self, now: Time) {
        self.assigned.leave(now);
        self.returning.join(now);
    }

    /// A returning slot may be given away again.
    #[inline]
    pub(crate) fn free(&mut self, now: Time) {
        self.returning.leave(now);
    }

    /// From now on, slots that no CTA uses belong to these accounts.
    pub(crate) fn idle_as(&mut self, now: Time, free: Account, returning: Account) {
        if (free, returning) != (self.free_account, self.returning_account) {
            self.settle(now.0);
            self.free_account = free;
            self.returning_account = returning;
        }
    }

    /// Ends the ledger at `makespan`, for a device of `slots` slots.
    pub(crate) fn close(mut self, makespan: Time, slots: u64) -> Ledger {
        self.settle(makespan.0);
        self.pay();
        self.closed.push(self.window);
        let mut totals = Tally::default();
        self.closed.iter().for_each(|window| totals.add(window));
        // What no window could give is taken from the whole: busy time covers it, since every CTA's own latencies lie
        // inside its assignment.
        for account in 0..ACCOUNTS {
            let owed = i128::from(self.owed[account]);
            totals.sums[Account::Busy as usize] -= owed;
            totals.sums[account] += owed;
        }
        Ledger {
            totals: totals.resolve(slots),
            windows: self.closed.iter().map(|window| window.resolve(slots)).collect(),
            width: self.width,
        }
    }
}
