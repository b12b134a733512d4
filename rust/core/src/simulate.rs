//! The one function that everything else is about.

use serde::{Deserialize, Serialize};

use crate::device::{Device, Shape};
use crate::error::{Error, Result};
use crate::gpu;
use crate::ids::SmId;
use crate::records::Records;
use crate::workload::{Kernel, Program};

/// How much is recorded. What is not recorded costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Kernels, SMs and the ledger.
    Kernels,
    /// A row a CTA as well.
    #[default]
    Ctas,
    /// What L2 moved by slice and by window of time as well.
    Memory,
}

/// Which dispatcher places the CTAs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dispatcher {
    /// As the device has it: one serial server.
    #[default]
    Hardware,
    /// Free: a slot is given away the moment its CTA ends.
    Ideal,
}

/// How warps that run programs share an SM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IssueMode {
    /// At rates that hold as long as the same CTAs are on the SM.
    #[default]
    Rates,
    /// Cycle by cycle.
    Exact,
}

/// What a run may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Of all random streams.
    pub seed: u64,
    /// How much is recorded.
    pub detail: Detail,
    /// Which dispatcher.
    pub dispatcher: Dispatcher,
    /// How warps that run programs share an SM.
    pub issue: IssueMode,
    /// Where the hardware's dispatcher begins: an SM of the GPC that it visits first, and one of the left-over TPC that is
    /// first among those, in either order. What is not given follows from the seed.
    ///
    /// On the device it is where earlier launches left off. A log shows it, and its placement can then be repeated.
    pub first_sms: [Option<SmId>; 2],
}

impl Options {
    fn validate(&self, device: &Device) -> Result<()> {
        let groups = || device.topology.gpcs.iter().flat_map(|gpc| &gpc.groups);
        let mut seen = [false; 2];
        for (i, sm) in self.first_sms.iter().enumerate().filter_map(|(i, sm)| Some((i, (*sm)?))) {
            let refused = |why: String| Err(Error::invalid(format!("first_sms[{i}]"), sm, why));
            if self.dispatcher == Dispatcher::Ideal {
                return refused("the ideal dispatcher always begins with the first GPC".into());
            }
            let Some(group) = groups().find(|group| group.sms.contains(&sm)) else {
                return refused(format!("SM numbers run from 0 to {}", device.sm_count() - 1));
            };
            let kind = usize::from(group.is_left_over());
            if std::mem::replace(&mut seen[kind], true) {
                return refused(format!("the other one is in {} too", ["a whole GPC", "a left-over TPC"][kind]));
            }
        }
        Ok(())
    }
}

/// What a CTA of a kernel asks of an SM, for [`Device::occupancy`].
pub fn shape_of(kernel: &Kernel) -> Shape {
    Shape {
        threads: kernel.threads(),
        registers: kernel.registers,
        accumulation_registers: 0,
        shared_bytes: kernel.shared_memory,
        barriers: kernel.barriers,
        cluster: kernel.cluster,
        cluster_launch: kernel.cluster_launch || kernel.cluster > 1,
        non_portable_cluster: kernel.non_portable_cluster,
    }
}

/// Simulates a program on a device.
///
/// `arrays` are the lists of numbers that the program's durations refer to. `interrupted` is asked now and then whether the
/// caller wants to stop.
///
/// # Errors
/// [`Error::Invalid`](crate::Error::Invalid) or [`Error::CannotLaunch`](crate::Error::CannotLaunch) for a program or device
/// that can't be, [`Error::Deadlock`](crate::Error::Deadlock) if the run can't go on, and
/// [`Error::Interrupted`](crate::Error::Interrupted).
///
/// ```
/// use wavesim::device::catalogue;
/// use wavesim::workload::{Duration, Kernel, Program, Span, Work};
/// use wavesim::{Options, simulate};
///
/// let kernel = Kernel {
///     work: Work::Duration(Duration::Constant(Span::Ns(2_000.0))),
///     ..Kernel::of(1_056, 256)
/// };
/// let h200 = catalogue::device("h200")?;
/// let run = simulate(&h200, &Program::of(kernel), &[], &Options::default(), &mut || false)?;
/// assert_eq!(run.kernels.ctas, [1_056]);
/// # Ok::<(), wavesim::Error>(())
/// ```
pub fn simulate(
    device: &Device,
    program: &Program,
    arrays: &[&[f64]],
    options: &Options,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Records> {
    let lengths: Vec<usize> = arrays.iter().map(|array| array.len()).collect();
    device.validate().map_err(|e| e.within("device"))?;
    program.validate(&lengths).map_err(|e| e.within("program"))?;
    program.validate_lists(arrays).map_err(|e| e.within("program"))?;
    options.validate(device)?;
    gpu::run(device, program, arrays, options, interrupted)
}

#[cfg(test)]
mod tests {
    use super::{Dispatcher, Options};
    use crate::device::catalogue;
    use crate::ids::SmId;

    #[test]
    fn first_sms_are_one_of_a_whole_gpc_and_one_of_a_left_over_tpc() {
        let device = catalogue::device("h200").expect("the catalogue has it");
        let said = |first_sms: [Option<u16>; 2], dispatcher| {
            let options = Options { first_sms: first_sms.map(|sm| sm.map(SmId)), dispatcher, ..Options::default() };
            options.validate(&device).err().map(|error| error.to_string())
        };
        let hardware = |first, second| said([first, second], Dispatcher::Hardware);
        for (first, second) in [(None, None), (Some(3), None), (None, Some(128)), (Some(128), Some(3))] {
            assert_eq!(hardware(first, second), None);
        }
        let beyond = "first_sms[1]: SM numbers run from 0 to 131 (got 132)";
        assert_eq!(hardware(None, Some(132)).as_deref(), Some(beyond));
        let twice = "first_sms[1]: the other one is in a whole GPC too (got 4)";
        assert_eq!(hardware(Some(2), Some(4)).as_deref(), Some(twice));
        let ideal = "first_sms[0]: the ideal dispatcher always begins with the first GPC (got 2)";
        assert_eq!(said([Some(2), None], Dispatcher::Ideal).as_deref(), Some(ideal));
    }
}
