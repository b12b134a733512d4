//! Equal input gives an equal run: again, on another thread, and with less recorded.

use std::thread;

use proptest::prelude::*;
use wavesim::records::{Account, Records};
use wavesim::workload::{Duration, Kernel, Program, Span, Work};
use wavesim::{Detail, Options};

use super::cases::{Case, cases, config};

/// All that both details record.
fn summary(records: &Records) -> String {
    let ledger = Account::ALL.map(|account| records.ledger.total(account));
    let timeline = records.ledger.timeline(37, records.makespan);
    let (kernels, sms) = (&records.kernels, &records.sms);
    format!("{} {} {kernels:?} {sms:?} {ledger:?} {timeline:?}", records.slots, records.makespan)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn recording_ctas_changes_nothing_that_happens(case in cases()) {
        let whole = case.simulate();
        let fewer = case.simulate_with(&Options { detail: Detail::Kernels, ..case.options }).unwrap();
        prop_assert!(fewer.ctas.is_none());
        prop_assert_eq!(whole.digest, fewer.digest);
        prop_assert_eq!(summary(&whole), summary(&fewer));
    }

    #[test]
    fn threads_do_not_disturb_each_other(case in cases()) {
        let alone = case.simulate();
        let together: Vec<Records> = thread::scope(|scope| {
            let started: Vec<_> = (0..3).map(|_| scope.spawn(|| case.simulate())).collect();
            started.into_iter().map(|handle| handle.join().unwrap()).collect()
        });
        for run in together {
            prop_assert_eq!(run.digest, alone.digest);
            prop_assert_eq!(summary(&run), summary(&alone));
        }
    }

    #[test]
    fn a_program_read_from_its_json_runs_the_same(case in cases()) {
        let program: Program = serde_json::from_str(&serde_json::to_string(&case.program).unwrap()).unwrap();
        let device = wavesim::device::Device::from_json(&case.device.to_json()).unwrap();
        prop_assert_eq!(&program, &case.program);
        prop_assert_eq!(&device, &case.device);
        let again = Case { device, program, ..case.clone() };
        prop_assert_eq!(again.simulate().digest, case.simulate().digest);
    }
}

#[test]
fn the_digest_tells_apart_runs_that_differ_in_one_cta() {
    let device = wavesim::device::catalogue::device("h200").unwrap();
    let kernel =
        Kernel { work: Work::Duration(Duration::PerCta { array: 0, unit: Span::Ns(1.0) }), ..Kernel::of(300, 256) };
    let digest = |lengths: Vec<f64>| {
        let program = Program::of(kernel.clone());
        let case = Case { device: device.clone(), program, arrays: vec![lengths], options: Options::default() };
        case.simulate().digest
    };
    let equal = vec![1_000.0; 300];
    let mut other = equal.clone();
    other[299] += 0.001;
    assert_eq!(digest(equal.clone()), digest(equal.clone()));
    assert_ne!(digest(equal), digest(other));
}
