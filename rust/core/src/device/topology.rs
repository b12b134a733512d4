//! The GPCs and their SMs, in the order in which the dispatcher visits them.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ids::{Id, SmId};

/// The list of GPCs (AMD: XCDs). Chips of one model differ in it: fused-off pairs of SMs lie elsewhere on each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// In the order of dispatch; the order is cyclic.
    pub gpcs: Vec<Gpc>,
}

/// One GPC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpc {
    /// What the dispatcher visits one after the other. Most GPCs are one group.
    pub groups: Vec<Group>,
    /// The part of L2 that is near to these SMs.
    #[serde(default)]
    pub half: u8,
    /// Whether the dispatcher's messages take longer to and from here.
    #[serde(default)]
    pub far: bool,
}

/// SMs that are dispatched to in one burst. A cluster lies inside one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The SMs in the order of dispatch.
    pub sms: Vec<SmId>,
    /// The largest cluster that the hardware places here, where that is less than the number of SMs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cluster: Option<u32>,
}

impl Gpc {
    /// A GPC of one group.
    pub fn of(sms: impl IntoIterator<Item = SmId>, half: u8) -> Self {
        Self { groups: vec![Group { sms: sms.into_iter().collect(), max_cluster: None }], half, far: false }
    }

    /// Its SMs, in the order of dispatch.
    pub fn sms(&self) -> impl Iterator<Item = SmId> + '_ {
        self.groups.iter().flat_map(|group| group.sms.iter().copied())
    }

    /// The number of its SMs.
    pub fn sm_count(&self) -> usize {
        self.groups.iter().map(|group| group.sms.len()).sum()
    }
}

impl Group {
    /// Whether these SMs are left over from incomplete GPCs and not one of the whole.
    pub fn is_left_over(&self) -> bool {
        self.max_cluster.is_some()
    }

    /// Whether a cluster of `size` CTAs can lie here: each of its CTAs has an SM of its own.
    pub fn takes_cluster(&self, size: u32) -> bool {
        size as usize <= self.sms.len() && self.max_cluster.is_none_or(|max| size <= max)
    }
}

impl Topology {
    /// GPCs of these sizes, with the SM numbers dealt in pairs over them, as NVIDIA's are.
    ///
    /// The first half of the GPCs is near to the first part of L2, and so on.
    pub fn dealt(sizes: &[usize], halves: u8) -> Self {
        let mut sms: Vec<Vec<SmId>> = vec![Vec::new(); sizes.len()];
        let mut next = 0;
        while sms.iter().zip(sizes).any(|(gpc, &size)| gpc.len() < size) {
            for (gpc, &size) in sms.iter_mut().zip(sizes) {
                for _ in 0..2.min(size - gpc.len()) {
                    gpc.push(SmId::from_index(next));
                    next += 1;
                }
            }
        }
        let parts = Self::parts_near_to(sizes.len(), halves);
        Self { gpcs: sms.into_iter().zip(parts).map(|(sms, half)| Gpc::of(sms, half)).collect() }
    }

    /// To which part of L2 each of so many GPCs is near, if nothing is known of it: the parts take equal shares of them, in order.
    pub fn parts_near_to(gpcs: usize, halves: u8) -> impl Iterator<Item = u8> {
        (0..gpcs).map(move |i| (i * usize::from(halves) / gpcs) as u8)
    }

    /// The number of SMs.
    pub fn sm_count(&self) -> usize {
        self.gpcs.iter().map(Gpc::sm_count).sum()
    }

    /// How many clusters of `cluster` CTAs are active at once, when an SM holds `ctas_per_sm` of these CTAs.
    ///
    /// Each group of SMs holds as many as its slots allow, and none if the cluster is larger than the group.
    pub fn max_active_clusters(&self, cluster: u32, ctas_per_sm: u32) -> u32 {
        self.gpcs
            .iter()
            .flat_map(|gpc| &gpc.groups)
            .filter(|group| group.takes_cluster(cluster))
            .map(|group| group.sms.len() as u32 * ctas_per_sm / cluster.max(1))
            .sum()
    }

    pub(super) fn validate(&self) -> Result<()> {
        let count = self.sm_count();
        if count == 0 {
            return Err(Error::invalid("gpcs", "no SM", "a device needs at least one SM"));
        }
        if count > usize::from(u16::MAX) {
            return Err(Error::invalid("gpcs", count, "a device has at most 65,535 SMs"));
        }
        let mut seen = vec![false; count];
        for (i, gpc) in self.gpcs.iter().enumerate() {
            for (j, group) in gpc.groups.iter().enumerate() {
                let field = format!("gpcs[{i}].groups[{j}]");
                if group.sms.is_empty() {
                    return Err(Error::invalid(format!("{field}.sms"), "[]", "a group needs SMs"));
                }
                if group.max_cluster == Some(0) {
                    let field = format!("{field}.max_cluster");
                    return Err(Error::invalid(field, 0, "a group takes clusters of at least 1"));
                }
                for (k, sm) in group.sms.iter().enumerate() {
                    let field = format!("{field}.sms[{k}]");
                    match seen.get_mut(sm.index()) {
                        None => {
                            let why = format!("SM numbers run from 0 to {}", count - 1);
                            return Err(Error::invalid(field, *sm, why));
                        }
                        Some(true) => return Err(Error::invalid(field, *sm, "this SM is listed twice")),
                        Some(slot) => *slot = true,
                    }
                }
            }
            if gpc.groups.is_empty() {
                return Err(Error::invalid(format!("gpcs[{i}].groups"), "[]", "a GPC needs a group"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sm_numbers_are_dealt_in_pairs_and_uneven_gpcs_take_the_last_ones() {
        let topology = Topology::dealt(&[4, 2, 6], 1);
        let sms: Vec<Vec<u16>> = topology.gpcs.iter().map(|gpc| gpc.sms().map(|sm| sm.0).collect()).collect();
        assert_eq!(sms, [vec![0, 1, 6, 7], vec![2, 3], vec![4, 5, 8, 9, 10, 11]]);
        topology.validate().unwrap();
    }

    #[test]
    fn a_cluster_never_spans_two_groups() {
        let topology = Topology::dealt(&[6, 6], 1);
        assert_eq!(topology.max_active_clusters(4, 1), 2);
        assert_eq!(topology.max_active_clusters(4, 2), 6);
        assert_eq!(topology.max_active_clusters(8, 2), 0);
    }

    #[test]
    fn an_sm_listed_twice_is_named() {
        let topology = Topology { gpcs: vec![Gpc::of([SmId(0), SmId(0)], 0)] };
        let error = topology.validate().unwrap_err().to_string();
        assert_eq!(error, "gpcs[0].groups[0].sms[1]: this SM is listed twice (got 0)");
    }
}
