//! Policies on a single set, against lists in which what they say can be read off.

use proptest::prelude::*;

use super::*;
use crate::device::{Replacement as Named, catalogue};

fn policy(l2: &L2, sets: usize, seed: u64, part: usize) -> Box<dyn Replacement> {
    match l2.replacement {
        Named::Lru => Box::new(Lru::new(l2, sets, seed, part)),
        Named::NotRecentlyUsed => Box::new(NotRecentlyUsed::new(l2, sets, seed, part)),
        Named::Random => Box::new(Random::new(l2, sets, seed, part)),
        Named::Protected => Box::new(Protected::new(l2, sets, seed, part)),
    }
}

/// A set as the cache uses it: empty ways first, then the policy's.
struct Set {
    /// As they stand.
    lines: Vec<Option<u8>>,
    policy: Box<dyn Replacement>,
}

impl Set {
    fn new(named: Named, ways: u32, protected_ways: u32) -> Self {
        let mut l2 = catalogue::device("h200").unwrap().l2;
        (l2.replacement, l2.ways, l2.protected_ways) = (named, ways, protected_ways);
        // The second set of three: the others show that nothing else is touched.
        Self { lines: vec![None; ways as usize], policy: policy(&l2, 3, 5, 0) }
    }

    fn put(&mut self, from: usize, to: usize, line: Option<u8>) {
        self.lines.remove(from);
        self.lines.insert(to, line);
    }

    fn place_of(&self, line: Option<u8>) -> Option<usize> {
        self.lines.iter().position(|&held| held == line)
    }

    /// Whether the line was there.
    fn access(&mut self, line: u8) -> bool {
        let found = self.place_of(Some(line));
        let (from, to) = if let Some(place) = found {
            (place, self.policy.hit(1, place))
        } else {
            let empty = self.place_of(None);
            let place = self.policy.room(1, &|| empty);
            assert!(empty.is_none() || self.lines[place].is_none(), "a line makes room beside an empty way");
            (place, self.policy.filled(1, place))
        };
        self.put(from, to, Some(line));
        found.is_some()
    }

    fn drop_line(&mut self, line: u8) {
        if let Some(place) = self.place_of(Some(line)) {
            let to = self.policy.dropped(1, place);
            self.put(place, to, None);
        }
    }

    fn holds(&self, line: u8) -> bool {
        self.lines.contains(&Some(line))
    }

    fn run(&mut self, lines: &[u8]) -> Vec<bool> {
        lines.iter().map(|&line| self.access(line)).collect()
    }
}

const ALL: [Named; 4] = [Named::Lru, Named::NotRecentlyUsed, Named::Random, Named::Protected];

#[test]
fn no_policy_drives_a_line_out_of_a_set_that_has_an_empty_way() {
    for named in ALL {
        let mut set = Set::new(named, 8, 4);
        set.run(&[1, 2, 3, 4, 5, 6, 7, 8]);
        set.drop_line(3);
        set.run(&[1, 9]);
        for line in [1, 2, 4, 5, 6, 7, 8, 9] {
            assert!(set.holds(line), "{named:?} lost {line}");
        }
    }
}

#[test]
fn every_policy_works_with_a_single_way() {
    for named in ALL {
        let mut set = Set::new(named, 1, 0);
        assert_eq!(set.run(&[1, 1, 2, 2, 1]), [false, true, false, true, false], "{named:?}");
    }
}

#[test]
fn lru_drives_out_the_line_that_was_used_longest_ago() {
    let mut set = Set::new(Named::Lru, 3, 0);
    assert_eq!(set.run(&[1, 2, 3, 1, 4]), [false, false, false, true, false]);
    assert!(!set.holds(2) && set.holds(1));
}

#[test]
fn not_recently_used_forgets_all_but_the_last_when_all_have_been_used() {
    let mut set = Set::new(Named::NotRecentlyUsed, 3, 0);
    // When 3 comes, all have been used, and only 3 counts from then on: 1 is the first of the others, though used after 2.
    set.run(&[1, 2, 3, 4]);
    assert!(!set.holds(1) && set.holds(2) && set.holds(3));
    // 4 and 3 have been used: 2 makes room.
    set.access(5);
    assert!(!set.holds(2));
}

#[test]
fn a_stream_drives_out_no_line_that_was_found_again() {
    let mut set = Set::new(Named::Protected, 4, 2);
    set.run(&[1, 2, 1, 2]);
    set.run(&(10..100).collect::<Vec<_>>());
    assert!(set.holds(1) && set.holds(2) && set.holds(98) && set.holds(99));
    // Two are protected at most: with a third one found again, the one used longest ago is not any more.
    assert!(set.access(99));
    set.run(&(100..110).collect::<Vec<_>>());
    assert!(!set.holds(1) && set.holds(2) && set.holds(99));
}

#[test]
fn random_choices_fall_on_every_way_alike_and_are_the_same_for_a_seed() {
    let mut l2 = catalogue::device("h200").unwrap().l2;
    l2.ways = 12;
    let draws = |seed, part| -> Vec<usize> {
        let mut policy = Random::new(&l2, 1, seed, part);
        (0..12_000).map(|_| policy.victim(0)).collect()
    };
    let mut found = [0; 12];
    for way in draws(1, 0) {
        found[way] += 1;
    }
    // Of 1,000 on average, with a standard deviation of 30.
    assert!(found.iter().all(|&count| (850..1150).contains(&count)), "{found:?}");
    assert_eq!(draws(1, 0), draws(1, 0));
    assert_ne!(draws(1, 0), draws(2, 0));
    assert_ne!(draws(1, 0), draws(1, 1));
}

/// Segmented LRU as two lists, the front first.
fn segmented(lines: &[u8], ways: usize, most: usize) -> Vec<bool> {
    let (mut protected, mut others) = (Vec::<u8>::new(), Vec::<u8>::new());
    let mut access = |line: u8| {
        let found = protected.contains(&line) || others.contains(&line);
        protected.retain(|&held| held != line);
        others.retain(|&held| held != line);
        if found && most > 0 {
            protected.insert(0, line);
            others.splice(0..0, protected.split_off(protected.len().min(most)));
        } else {
            others.insert(0, line);
        }
        others.truncate(ways - protected.len());
        found
    };
    lines.iter().map(|&line| access(line)).collect()
}

proptest! {
    /// Mattson, Gecsei, Slutz and Traiger (1970): with the distance of an access the number of other lines used since the
    /// last access to its own, it hits where that is less than the ways.
    #[test]
    fn lru_hits_what_its_stack_distance_says(lines in prop::collection::vec(0..24_u8, 0..300), ways in 1..20_u32) {
        let mut stack: Vec<u8> = Vec::new();
        let expected: Vec<bool> = lines.iter().map(|&line| {
            let distance = stack.iter().position(|&other| other == line);
            if let Some(distance) = distance {
                stack.remove(distance);
            }
            stack.insert(0, line);
            distance.is_some_and(|distance| distance < ways as usize)
        }).collect();
        prop_assert_eq!(Set::new(Named::Lru, ways, 0).run(&lines), expected);
    }

    #[test]
    fn a_larger_lru_set_holds_all_that_a_smaller_one_does(
        lines in prop::collection::vec(0..24_u8, 0..200), ways in 1..16_u32, more in 1..8_u32,
    ) {
        let (mut small, mut large) = (Set::new(Named::Lru, ways, 0), Set::new(Named::Lru, ways + more, 0));
        for line in lines {
            small.access(line);
            large.access(line);
            prop_assert!((0..24).all(|line| !small.holds(line) || large.holds(line)));
        }
    }

    #[test]
    fn protected_lines_stand_before_all_others(
        lines in prop::collection::vec(0..24_u8, 0..300), ways in 1..17_u32, most in 0..16_u32,
    ) {
        let most = most.min(ways - 1);
        let hits = Set::new(Named::Protected, ways, most).run(&lines);
        prop_assert_eq!(hits, segmented(&lines, ways as usize, most as usize));
    }

    /// What a policy was told about dropped lines never leads to a way that does not exist or to a line held twice.
    #[test]
    fn every_policy_keeps_its_set_in_order(
        steps in prop::collection::vec((0..24_u8, any::<bool>()), 0..300), which in 0..4_usize, ways in 2..17_u32,
    ) {
        let mut set = Set::new(ALL[which], ways, ways / 2);
        for (line, dropped) in steps {
            if dropped { set.drop_line(line) } else { set.access(line); }
            let mut held: Vec<u8> = set.lines.iter().flatten().copied().collect();
            held.sort_unstable();
            let count = held.len();
            held.dedup();
            prop_assert_eq!(held.len(), count);
            prop_assert!(dropped || set.holds(line));
        }
    }
}
