//! The model of the machine, a file for each box of the block diagram:
//!
//! ```text
//!  host calls          ready kernels            CTAs                    slots
//!  ---------> front_end ------------> dispatcher ----> sm (+ work, sync) ---+
//!                 ^                      ^                                  |
//!                 |   complete kernels   |        slots that come back      |
//!                 +----------------------+<---------------------------------+
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
mod outcome;
mod policy;
mod sm;
mod sync;
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
use policy::{hardware::Hardware, ideal::Ideal};

/// Runs a program on a device.
pub(crate) fn run(
    device: &Device,
    program: &Program,
    arrays: &[&[f64]],
    options: &Options,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Records> {
    if let Some(records) = attempt(device, program, arrays, options, interrupted)? {
        return Ok(records);
    }
    let stepped = Options { issue: IssueMode::Exact, ..*options };
    Ok(attempt(device, program, arrays, &stepped, interrupted)?.expect("what is stepped goes to its end"))
}

/// The same, unless its warps turn out to be better stepped.
fn attempt(
    device: &Device,
    program: &Program,
    arrays: &[&[f64]],
    options: &Options,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Option<Records>> {
    let groups = Groups::new(device);
    match options.dispatcher {
        Dispatcher::Hardware => {
            let policy = Hardware::new(device, options);
            Machine::new(device, program, arrays, options, policy, groups, interrupted)?.run(device, interrupted)
        }
        Dispatcher::Ideal => {
            let policy = Ideal::new(groups.count());
            Machine::new(device, program, arrays, options, policy, groups, interrupted)?.run(device, interrupted)
        }
    }
}
