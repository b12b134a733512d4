//! The ledger: every picosecond of every slot, once.

use proptest::prelude::*;
use wavesim::records::{Account, Records};

use super::cases::{cases, config};
use super::view::rows;

fn totals(records: &Records) -> Vec<i128> {
    Account::ALL.iter().map(|&account| records.ledger.total(account)).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_accounts_add_up_to_slots_times_makespan_exactly_and_none_is_negative(case in cases()) {
        let records = case.simulate();
        let totals = totals(&records);
        prop_assert!(totals.iter().all(|&total| total >= 0), "{totals:?}");
        let slot_time = i128::from(records.slots) * i128::from(records.makespan.0);
        prop_assert_eq!(totals.iter().sum::<i128>(), slot_time);
    }

    #[test]
    fn busy_time_is_the_time_of_the_ctas(case in cases()) {
        let records = case.simulate();
        let ran: i128 = rows(&records).iter().map(|row| i128::from(row.end - row.start)).sum();
        prop_assert_eq!(records.ledger.total(Account::Busy), ran);
        let of_kernels: u128 = records.kernels.busy_ps.iter().sum();
        prop_assert_eq!(of_kernels, ran as u128);
    }

    #[test]
    fn the_timeline_of_any_number_of_bins_is_the_ledger_over_time(case in cases(), bins in 1..300_usize) {
        let records = case.simulate();
        let timeline = records.ledger.timeline(bins, records.makespan);
        prop_assert_eq!(timeline.len(), bins);
        if records.makespan.0 == 0 {
            return Ok(());
        }
        let slot_time = records.slots as f64 * records.makespan.0 as f64;
        for (i, &total) in totals(&records).iter().enumerate() {
            let mean = timeline.iter().map(|shares| shares[i]).sum::<f64>() / bins as f64;
            prop_assert!((mean - total as f64 / slot_time).abs() < 1e-6, "{}: {mean}", Account::ALL[i].name());
        }
        for shares in timeline {
            prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(shares.iter().all(|share| (-1e-9..=1.0 + 1e-9).contains(share)), "{shares:?}");
        }
    }

    #[test]
    fn the_run_ends_with_its_last_cta_or_copy(case in cases()) {
        let records = case.simulate();
        let last = rows(&records).iter().map(|row| row.end).max().unwrap_or(0);
        let copies = case.program.items.iter().any(|item| format!("{item:?}").contains("Copy"));
        prop_assert!(records.makespan.0 == last || (copies && records.makespan.0 > last));
    }
}
