//! What CTAs do, as far as their time goes: drawing durations, in the order of the ids.

use rand_distr::{Distribution, Exp1, Normal, StandardNormal, Uniform};
use rand_pcg::Pcg64;

use crate::engine::{Time, rng};
use crate::workload::{Duration, Span};

/// Draws the durations of a kernel's CTAs, or of its tasks: each call gives the next one's.
#[derive(Debug)]
pub(crate) struct Sampler<'a> {
    kind: Kind<'a>,
    rng: Pcg64,
}

/// A duration with its spans in picoseconds.
#[derive(Debug)]
enum Kind<'a> {
    Constant(Time),
    Uniform(Uniform<f64>),
    Normal(Normal<f64>),
    LogNormal { mu: f64, sigma: f64 },
    Exponential { mean: f64 },
    Bimodal { low: Time, high: Time, high_share: f64 },
    List { values: std::slice::Iter<'a, f64>, unit: f64 },
}

impl<'a> Sampler<'a> {
    /// `launch` is the number of the kernel launch: each has a random stream of its own.
    pub(crate) fn new(duration: &Duration, arrays: &[&'a [f64]], cycle_ps: f64, seed: u64, launch: u64) -> Self {
        let ps = |span: Span| span.ps(cycle_ps);
        let kind = match *duration {
            Duration::Constant(span) => Kind::Constant(whole(ps(span))),
            Duration::Uniform { low, high } => match Uniform::new_inclusive(ps(low), ps(high)) {
                Ok(uniform) => Kind::Uniform(uniform),
                // Only a span without width in it is refused.
                Err(_) => Kind::Constant(whole(ps(low))),
            },
            Duration::Normal { mean, std } => match Normal::new(ps(mean), ps(std)) {
                Ok(normal) => Kind::Normal(normal),
                Err(_) => Kind::Constant(whole(ps(mean))),
            },
            Duration::LogNormal { mean, cv } => {
                let variance = (cv * cv).ln_1p();
                Kind::LogNormal { mu: ps(mean).ln() - variance / 2.0, sigma: variance.sqrt() }
            }
            Duration::Exponential { mean } => Kind::Exponential { mean: ps(mean) },
            Duration::Bimodal { low, high, high_share } => {
                Kind::Bimodal { low: whole(ps(low)), high: whole(ps(high)), high_share }
            }
            Duration::PerCta { array, unit } => Kind::List { values: arrays[array].iter(), unit: ps(unit) },
        };
        Self { kind, rng: rng::stream(seed, "durations", launch) }
    }

    /// The duration, if all are the same.
    pub(crate) fn constant(&self) -> Option<Time> {
        match self.kind {
            Kind::Constant(time) => Some(time),
            _ => None,
        }
    }

    /// The next duration.
    #[inline]
    pub(crate) fn next(&mut self) -> Time {
        match &mut self.kind {
            Kind::Constant(time) => *time,
            Kind::List { values, unit } => {
                whole(values.next().expect("a list is as long as its kernel has CTAs or tasks") * *unit)
            }
            Kind::Uniform(uniform) => whole(uniform.sample(&mut self.rng)),
            Kind::Normal(normal) => whole(normal.sample(&mut self.rng)),
            Kind::LogNormal { mu, sigma } => {
                let z: f64 = StandardNormal.sample(&mut self.rng);
                whole((*mu + *sigma * z).exp())
            }
            Kind::Exponential { mean } => {
                let x: f64 = Exp1.sample(&mut self.rng);
                whole(*mean * x)
            }
            Kind::Bimodal { low, high, high_share } => {
                use rand_distr::uniform::{UniformFloat, UniformSampler};
                let u = UniformFloat::<f64>::sample_single(0.0, 1.0, &mut self.rng).unwrap_or(0.0);
                if u < *high_share { *high } else { *low }
            }
        }
    }
}

/// Whole picoseconds; a float's cast saturates, and a negative draw is no time at all.
#[inline]
fn whole(ps: f64) -> Time {
    Time((ps.max(0.0) + 0.5) as u64).min(Time::LONGEST)
}
