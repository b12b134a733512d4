//! The model of the machine, a file for each box of the block diagram:
//!
//! ```text
//!  host calls          ready kernels            CTAs                            slots
//!  ---------> front_end ------------> dispatcher ----> tpc ----> sm (+ work, sync) ---+
//!                 ^                      ^              |                             |
//!                 |   complete kernels   |   messages   |     CTAs that have ended    |
//!                 +----------------------+<-------------+<----------------------------+
//! ```
//!
//! `machine` is the loop around them: it takes what happens next and lets the box it concerns act.

mod admission;
mod barrier;
mod dispatcher;
mod events;
mod front_end;
mod groups;
mod kernel;
mod machine;
mod memory;
mod messages;
mod outcome;
mod policy;
mod sm;
mod sync;
mod tpc;
mod warp;
mod word;
mod work;

use crate::device::Device;
use crate::error::Result;
use crate::records::Records;
use crate::simulate::{Dispatcher, IssueMode, Options};
use crate::workload::Program;

use groups::Groups;
use machine::Machine;
use policy::{Dispatch, hardware::Hardware, ideal::Ideal};

/// Runs a program on a device.
pub(crate) fn run(
    device: &Device,
    program: &Program,
    arrays: &[&[f64]],
    options: &Options,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Records> {
    match options.dispatcher {
        Dispatcher::Hardware => {
            run_under(|_| Hardware::new(device, options), device, program, arrays, options, interrupted)
        }
        Dispatcher::Ideal => {
            run_under(|groups| Ideal::new(groups.count()), device, program, arrays, options, interrupted)
        }
    }
}

/// The same under a policy. Where warps turn out to be better stepped, the run begins anew.
fn run_under<P: Dispatch>(
    policy: impl Fn(&Groups) -> P,
    device: &Device,
    program: &Program,
    arrays: &[&[f64]],
    options: &Options,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Records> {
    let machine = |options: &Options, interrupted: &mut dyn FnMut() -> bool| {
        let groups = Groups::new(device);
        Machine::new(device, program, arrays, options, policy(&groups), groups, interrupted)
    };
    if options.issue == IssueMode::Rates
        && let Some(records) = machine(options, interrupted)?.run_unless_stepped(device, interrupted)?
    {
        return Ok(records);
    }
    let stepped = Options { issue: IssueMode::Exact, ..*options };
    machine(&stepped, interrupted)?.run(device, interrupted)
}
