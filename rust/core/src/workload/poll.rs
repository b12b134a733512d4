//! Spin-waits: warps that read the clock over and over until it is late enough.
//!
//! While a warp waits so, it takes issue slots from the others of its scheduler. How often it reads the clock, how late it
//! notices, and who gets on meanwhile follow from that.

use serde::{Deserialize, Serialize};

use super::warps::Segment;
use super::work::{LONGEST, Span};
use crate::error::{Error, Result};

/// Segments that are run through until so much time has passed. The first instruction of each turn reads the clock, and a
/// branch behind the last one goes back if that was too early.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Poll {
    /// How much time has to pass, in cycles.
    pub cycles: Cycles,
    /// From when on.
    #[serde(default)]
    pub since: Since,
    /// What a turn is made of, beside its branch.
    pub body: Vec<Segment>,
}

/// How long a spin-wait lasts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cycles {
    /// The same for all CTAs.
    Constant(f64),
    /// Which of the program's number lists has each CTA's.
    PerCta(usize),
}

/// From when on a spin-wait counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Since {
    /// From its own first reading of the clock.
    #[default]
    Here,
    /// From the first instruction that the warp issued.
    Start,
}

impl Poll {
    /// Checks all but what the segments of its body say, for a kernel of so many CTAs.
    pub(super) fn validate(&self, path: &str, ctas: u64, arrays: &[usize]) -> Result<()> {
        let at = |field: &str| format!("{path}.{field}");
        match self.cycles {
            Cycles::Constant(cycles) => Span::Cycles(cycles).validate(&at("cycles.constant"))?,
            Cycles::PerCta(list) => match arrays.get(list) {
                None => return Err(Error::invalid(at("cycles.per_cta"), list, "no such list of numbers")),
                Some(&len) if len as u64 != ctas => {
                    let why = format!("one time a CTA is needed, {ctas} in all");
                    return Err(Error::invalid(at("cycles.per_cta"), format!("a list of {len} values"), why));
                }
                Some(_) => {}
            },
        }
        if self.body.is_empty() {
            return Err(Error::invalid(at("body"), "[]", "a spin-wait has at least one segment"));
        }
        match self.body.iter().position(|segment| !may_be_polled(segment)) {
            None => Ok(()),
            Some(number) => {
                let why = "how often a spin-wait is run through is not known before: it has only arithmetic, tensor-core \
                           work, shared memory and branches";
                Err(Error::invalid(format!("{}[{number}]", at("body")), name(&self.body[number]), why))
            }
        }
    }

    fn validate_lists(&self, path: &str, arrays: &[&[f64]]) -> Result<()> {
        let Cycles::PerCta(list) = self.cycles else { return Ok(()) };
        match arrays[list].iter().position(|cycles| !(0.0..=LONGEST).contains(cycles)) {
            None => Ok(()),
            Some(at) => {
                let field = format!("{path}.cycles.per_cta[{at}]");
                Err(Error::invalid(field, arrays[list][at], "a duration is a number from 0 to 4.32e15 (50 days)"))
            }
        }
    }
}

/// Checks the times that lists say for the spin-waits among some segments.
pub(super) fn validate_lists(segments: &[Segment], path: &str, arrays: &[&[f64]]) -> Result<()> {
    segments.iter().enumerate().try_for_each(|(i, segment)| match segment {
        Segment::Poll(poll) => poll.validate_lists(&format!("{path}[{i}].poll"), arrays),
        Segment::Loop { body, .. } => validate_lists(body, &format!("{path}[{i}].loop.body"), arrays),
        _ => Ok(()),
    })
}

/// Whether there is a spin-wait among some segments.
pub(crate) fn polls(segments: &[Segment]) -> bool {
    segments.iter().any(|segment| match segment {
        Segment::Poll(_) => true,
        Segment::Loop { body, .. } => polls(body),
        _ => false,
    })
}

/// The numbers of the lists that spin-waits among some segments name, each once.
pub(crate) fn lists(segments: &[Segment], into: &mut Vec<usize>) {
    for segment in segments {
        match *segment {
            Segment::Poll(Poll { cycles: Cycles::PerCta(list), .. }) if !into.contains(&list) => into.push(list),
            Segment::Loop { ref body, .. } => lists(body, into),
            _ => {}
        }
    }
}

/// What a warp can do over and over while it waits: nothing that others wait for, or that is counted.
fn may_be_polled(segment: &Segment) -> bool {
    matches!(segment, Segment::Arithmetic { .. } | Segment::Tensor { .. } | Segment::Shared { .. } | Segment::Branch)
}

fn name(segment: &Segment) -> &'static str {
    match segment {
        Segment::Load { .. } => "a load",
        Segment::Store { .. } => "a store",
        Segment::Wait => "a wait",
        Segment::Barrier => "a barrier",
        Segment::Loop { .. } => "a loop",
        Segment::Poll(_) => "a spin-wait",
        _ => "another segment",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Pipe, Warps};

    fn said(cycles: Cycles, body: Vec<Segment>, lists: &[&[f64]]) -> String {
        let poll = Segment::Poll(Poll { cycles, since: Since::Here, body });
        let looped = Segment::Loop { count: 2, body: vec![Segment::Barrier, poll], unrolled: false };
        let (order, startup, finish) = (None, Span::default(), Span::default());
        let work = Warps { programs: vec![vec![looped]], accesses: vec![], order, startup, finish };
        let lengths: Vec<usize> = lists.iter().map(|list| list.len()).collect();
        let checked = work.validate(3, &lengths).and_then(|()| work.validate_lists(lists));
        checked.err().map(|error| error.to_string()).unwrap_or_default()
    }

    fn reading() -> Segment {
        Segment::Arithmetic { instructions: 1, latency_cycles: Some(6), chains: 1, pipe: Pipe::Other }
    }

    #[test]
    fn faults_name_the_field_and_its_value() {
        assert_eq!(said(Cycles::Constant(500.0), vec![reading()], &[]), "");
        assert_eq!(said(Cycles::PerCta(0), vec![reading()], &[&[0.0, 10.0, 1e6]]), "");
        let at = "programs[0][0].loop.body[1].poll";
        let want = format!("{at}.cycles.constant: a duration is a number from 0 to 4.32e15 (50 days) (got NaN)");
        assert_eq!(said(Cycles::Constant(f64::NAN), vec![reading()], &[]), want);
        let want = format!("{at}.cycles.per_cta: no such list of numbers (got 1)");
        assert_eq!(said(Cycles::PerCta(1), vec![reading()], &[&[1.0; 3]]), want);
        let want = format!("{at}.cycles.per_cta: one time a CTA is needed, 3 in all (got a list of 2 values)");
        assert_eq!(said(Cycles::PerCta(0), vec![reading()], &[&[1.0; 2]]), want);
        let want = format!("{at}.body: a spin-wait has at least one segment (got [])");
        assert_eq!(said(Cycles::Constant(5.0), vec![], &[]), want);
        let said_of_wait = said(Cycles::Constant(5.0), vec![reading(), Segment::Barrier], &[]);
        assert!(said_of_wait.starts_with(&format!("{at}.body[1]: how often")), "{said_of_wait}");
        assert!(said_of_wait.ends_with("(got a barrier)"), "{said_of_wait}");
        let want = "warps.programs[0][0].loop.body[1].poll.cycles.per_cta[2]: a duration is a number from 0 to 4.32e15 \
                    (50 days) (got -1)";
        assert_eq!(said(Cycles::PerCta(0), vec![reading()], &[&[0.0, 1.0, -1.0]]), want);
    }
}
