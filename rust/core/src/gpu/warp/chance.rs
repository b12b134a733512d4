//! What chance costs those who wait for each other.

/// By how many standard deviations the latest of so many independent arrivals is behind their mean, if each is normal: Harter
/// (1961), between doublings along a straight line.
pub(super) fn latest(arrivals: u32) -> f64 {
    const DOUBLINGS: [f64; 7] = [0.0, 0.5642, 1.0294, 1.4236, 1.7660, 2.0697, 2.3437];
    let doublings = (arrivals.max(1).ilog2() as usize).min(DOUBLINGS.len() - 2);
    let beyond = f64::from(arrivals) / f64::from(1_u32 << doublings) - 1.0;
    DOUBLINGS[doublings] + (DOUBLINGS[doublings + 1] - DOUBLINGS[doublings]) * beyond.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_more_arrivals_is_later() {
        assert_eq!((latest(0), latest(1)), (0.0, 0.0));
        assert!((latest(8) - 1.4236).abs() < 1e-9 && (latest(32) - 2.0697).abs() < 1e-9);
        let all: Vec<f64> = (1..=64).map(latest).collect();
        assert!(all.is_sorted(), "{all:?}");
        assert!((latest(3) - 0.8463).abs() < 0.06, "as exactly known for three");
    }
}
