//! Laws: what holds for every run, whatever the device, the program and the seed. Each module is about one box of the
//! machine; `cases` makes the random inputs, and `view` reads records the way the laws talk of them.
//!
//! Cases are the same in every run of the tests; `PROPTEST_CASES=2000 PROPTEST_RNG_SEED=7 cargo test --test laws` tries others.

mod cases;
mod clusters;
mod dispatch;
mod ends;
mod extremes;
mod front_end;
mod ledger;
mod repeats;
mod residents;
mod view;
mod work;
