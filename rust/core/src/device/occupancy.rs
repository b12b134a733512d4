//! Residency: how many CTAs of a kernel an SM holds, what limits it, and whether the kernel launches at all.
//!
//! The rules are those of the CUDA occupancy calculator (for CDNA, of LLVM's AMDGPU back end), in integers.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Device;
use super::limits::{Limits, Vendor};

/// What a CTA of a kernel needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shape {
    /// Threads a CTA.
    pub threads: u32,
    /// Registers a thread (AMD: architectural VGPRs); 0 when they are not known, and then they limit nothing.
    pub registers: u32,
    /// AMD: accumulation registers a thread.
    pub accumulation_registers: u32,
    /// Static and dynamic shared memory a CTA.
    pub shared_bytes: u32,
    /// Named barriers a CTA; 0 when they are not known, and then they limit nothing.
    pub barriers: u32,
    /// CTAs a cluster.
    pub cluster: u32,
    /// Whether a kernel with `cluster` 1 is launched with a cluster size all the same: an SM then holds fewer CTAs. Larger
    /// clusters always are.
    pub cluster_launch: bool,
    /// Whether the kernel allows cluster sizes that not every device takes.
    pub non_portable_cluster: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            threads: 256,
            registers: 32,
            accumulation_registers: 0,
            shared_bytes: 0,
            barriers: 1,
            cluster: 1,
            cluster_launch: false,
            non_portable_cluster: false,
        }
    }
}

/// What holds residency, under the names of the CUDA occupancy calculator. In the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Limiter {
    /// Hardware barriers an SM.
    Barriers,
    /// CTAs an SM.
    Blocks,
    /// Registers.
    Regs,
    /// Shared memory.
    Smem,
    /// Warps an SM.
    Warps,
}

impl fmt::Display for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Barriers => "BARRIERS",
            Self::Blocks => "BLOCKS",
            Self::Regs => "REGS",
            Self::Smem => "SMEM",
            Self::Warps => "WARPS",
        })
    }
}

/// Which limit refuses a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedBy {
    /// Threads a CTA.
    ThreadsPerCta,
    /// Registers a thread.
    RegistersPerThread,
    /// Registers a CTA.
    RegistersPerCta,
    /// Shared memory a CTA, opted in.
    SharedOptinBytes,
    /// Named barriers a CTA.
    BarriersPerCta,
    /// Warps an SM.
    Warps,
    /// CTAs a cluster.
    Cluster,
    /// No group of SMs is large enough for the cluster.
    ClusterCapacity,
}

/// Why a kernel does not launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The limit.
    pub limit: RefusedBy,
    /// What the kernel asks for.
    pub wanted: u64,
    /// What the device allows.
    pub allowed: u64,
    /// The same as a sentence.
    pub text: String,
}

/// How many CTAs an SM holds, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    /// Whether the kernel launches.
    pub launchable: bool,
    /// CTAs an SM; 0 when it does not launch.
    pub ctas_per_sm: u32,
    /// Warps a CTA.
    pub warps_per_cta: u32,
    /// Resident warps an SM.
    pub warps: u32,
    /// Resident warps over the SM's limit.
    pub occupancy: f64,
    /// The limits that the CUDA occupancy calculator names: those that are the least among registers, shared memory, warps
    /// and CTAs, and barriers when they are no greater. So others stand beside barriers that are alone the least. Empty when
    /// the launch is refused for another reason than residency.
    pub limiters: Vec<Limiter>,
    /// The limits that equal the residency.
    pub binding: Vec<Limiter>,
    /// CTAs by registers alone; none when the register count is not known.
    pub by_registers: Option<u32>,
    /// CTAs by shared memory alone; none when a CTA uses none at all.
    pub by_shared: Option<u32>,
    /// CTAs by warps alone.
    pub by_warps: u32,
    /// CTAs by their number alone.
    pub by_ctas: u32,
    /// CTAs by barriers alone; none where barriers do not limit residency.
    pub by_barriers: Option<u32>,
    /// Registers that a CTA takes, with rounding.
    pub registers_per_cta: u32,
    /// Shared memory that a CTA takes, with the system's share and rounding.
    pub shared_per_cta_bytes: u32,
    /// What an idle SM's shared memory is set to: the smallest split of shared memory and L1 that does not cost residency.
    pub carve_out_bytes: u32,
    /// Whether the kernel must opt in to that much shared memory.
    pub needs_optin: bool,
    /// Clusters that the device holds at once (CTAs when there is no cluster).
    pub max_active_clusters: u32,
    /// Why it does not launch.
    pub refusal: Option<Refusal>,
}

impl Occupancy {
    /// The limiters' names joined by `+`.
    pub fn limiter(&self) -> String {
        let names: Vec<String> = self.limiters.iter().map(ToString::to_string).collect();
        names.join("+")
    }
}

/// Residency by each limit alone.
struct Bounds {
    registers: Option<u32>,
    shared: Option<u32>,
    warps: u32,
    ctas: u32,
    barriers: Option<u32>,
}

impl Bounds {
    /// The limits beside barriers, with their names.
    fn named(&self) -> [(Limiter, u32); 4] {
        [
            (Limiter::Blocks, self.ctas),
            (Limiter::Regs, self.registers.unwrap_or(u32::MAX)),
            (Limiter::Smem, self.shared.unwrap_or(u32::MAX)),
            (Limiter::Warps, self.warps),
        ]
    }

    /// The residency, the limiters as the vendor names them, and the limits that equal it.
    fn least(&self) -> (u32, Vec<Limiter>, Vec<Limiter>) {
        let named = self.named();
        let others = named.iter().map(|&(_, n)| n).min().unwrap_or(0);
        let barriers = self.barriers.filter(|&n| n <= others);
        let residency = barriers.unwrap_or(others);
        let equal_to = |n: u32| {
            barriers
                .map(|_| Limiter::Barriers)
                .into_iter()
                .chain(named.iter().filter(move |&&(_, m)| m == n).map(|&(limiter, _)| limiter))
                .collect()
        };
        (residency, equal_to(others), equal_to(residency))
    }
}

/// Registers a thread as they are allocated: on AMD, accumulation registers follow the rounded architectural ones.
fn registers_per_thread(limits: &Limits, shape: &Shape) -> u64 {
    let architectural = u64::from(shape.registers);
    match (limits.accumulation_unit, shape.accumulation_registers) {
        (_, 0) => architectural,
        (unit, more) => architectural.next_multiple_of(u64::from(unit.unwrap_or(1))) + u64::from(more),
    }
}

pub(super) fn occupancy(device: &Device, shape: &Shape) -> Occupancy {
    let limits = &device.limits;
    let warps = limits.warps_of(shape.threads);
    let registers = registers_per_thread(limits, shape);
    let warp_registers = (registers * u64::from(limits.warp_size)).next_multiple_of(u64::from(limits.register_unit));
    // A launch is checked as if each sub-partition had as many warps as the fullest one.
    let even_warps = u64::from(warps).next_multiple_of(u64::from(limits.sub_partitions));
    let cta_registers = warp_registers.saturating_mul(even_warps);
    let shared = (u64::from(shape.shared_bytes) + u64::from(limits.shared_reserved_bytes))
        .next_multiple_of(u64::from(limits.shared_unit_bytes));

    let bounds = Bounds {
        registers: (warp_registers > 0).then(|| {
            if cta_registers > u64::from(limits.registers_per_cta) {
                return 0;
            }
            let partition = u64::from(limits.registers / limits.sub_partitions);
            let warps_an_sm = partition / warp_registers * u64::from(limits.sub_partitions);
            (warps_an_sm / u64::from(warps.max(1))) as u32
        }),
        shared: if shape.shared_bytes > limits.shared_optin_bytes {
            Some(0)
        } else {
            (shared > 0).then(|| (u64::from(limits.shared_bytes) / shared) as u32)
        },
        warps: limits.warps / warps.max(1),
        ctas: if shape.cluster > 1 || shape.cluster_launch {
            limits.ctas.min(limits.ctas_in_clusters)
        } else {
            limits.ctas
        },
        barriers: barrier_bound(device, shape, warps),
    };
    let refusal = refusal(device, shape, warps, registers, cta_registers);
    let (mut ctas_per_sm, mut limiters, mut binding) = bounds.least();
    let mut max_active_clusters = 0;
    let refusal = refusal.or_else(|| {
        if ctas_per_sm == 0 {
            return Some(no_room_refusal(limits, shape, &binding, shared));
        }
        max_active_clusters = device.topology.max_active_clusters(shape.cluster, ctas_per_sm);
        (max_active_clusters == 0).then(|| capacity_refusal(device, shape.cluster))
    });
    if refusal.is_some() {
        // A limit that would hold some CTAs is not why there are none.
        if ctas_per_sm > 0 {
            limiters.clear();
            binding.clear();
        }
        ctas_per_sm = 0;
    }
    let shared_per_cta_bytes = shared.min(u64::from(u32::MAX)) as u32;
    let wanted = u64::from(ctas_per_sm) * u64::from(shared_per_cta_bytes);
    let carve_out = limits.carve_outs_bytes.iter().find(|&&size| u64::from(size) >= wanted);
    Occupancy {
        launchable: refusal.is_none(),
        ctas_per_sm,
        warps_per_cta: warps,
        warps: warps * ctas_per_sm,
        occupancy: f64::from(warps * ctas_per_sm) / f64::from(limits.warps),
        limiters,
        binding,
        by_registers: bounds.registers,
        by_shared: bounds.shared,
        by_warps: bounds.warps,
        by_ctas: bounds.ctas,
        by_barriers: bounds.barriers,
        registers_per_cta: warp_registers.saturating_mul(u64::from(warps)).min(u64::from(u32::MAX)) as u32,
        shared_per_cta_bytes,
        carve_out_bytes: carve_out.copied().unwrap_or(limits.shared_bytes),
        needs_optin: shape.shared_bytes > limits.shared_default_bytes,
        max_active_clusters,
        refusal,
    }
}

fn barrier_bound(device: &Device, shape: &Shape, warps: u32) -> Option<u32> {
    // On CDNA a workgroup of one wave needs no barrier.
    if shape.barriers == 0 || (device.vendor == Vendor::Amd && warps <= 1) {
        return None;
    }
    device.limits.barriers.map(|barriers| barriers / shape.barriers)
}

/// The first limit that the kernel breaks.
fn refusal(device: &Device, shape: &Shape, warps: u32, registers: u64, cta_registers: u64) -> Option<Refusal> {
    let limits = &device.limits;
    let refuse = |limit, wanted: u64, allowed: u64, text: String| Some(Refusal { limit, wanted, allowed, text });
    let over = |limit, wanted: u64, allowed: u32, what: &str| {
        let allowed = u64::from(allowed);
        if wanted <= allowed {
            return None;
        }
        let by = wanted - allowed;
        refuse(limit, wanted, allowed, format!("{wanted} {what}, {by} over the limit of {allowed}"))
    };
    if shape.threads == 0 {
        return refuse(RefusedBy::ThreadsPerCta, 0, 1, "a CTA needs at least one thread".to_owned());
    }
    if shape.cluster == 0 {
        return refuse(RefusedBy::Cluster, 0, 1, "a cluster has at least one CTA".to_owned());
    }
    over(RefusedBy::ThreadsPerCta, u64::from(shape.threads), limits.threads_per_cta, "threads a CTA")
        .or_else(|| {
            let limit = RefusedBy::RegistersPerThread;
            over(limit, registers, limits.registers_per_thread, "registers a thread")
        })
        .or_else(|| {
            let what = format!(
                "registers a CTA ({registers} a thread in {warps} warps, counted in {}s)",
                limits.sub_partitions
            );
            over(RefusedBy::RegistersPerCta, cta_registers, limits.registers_per_cta, &what)
        })
        .or_else(|| {
            let what = "bytes of shared memory a CTA";
            let wanted = u64::from(shape.shared_bytes);
            over(RefusedBy::SharedOptinBytes, wanted, limits.shared_optin_bytes, what)
        })
        .or_else(|| {
            let wanted = u64::from(shape.barriers);
            over(RefusedBy::BarriersPerCta, wanted, limits.barriers_per_cta, "barriers a CTA")
        })
        .or_else(|| over(RefusedBy::Warps, u64::from(warps), limits.warps, "warps a CTA"))
        .or_else(|| cluster_refusal(limits, shape))
}

fn cluster_refusal(limits: &Limits, shape: &Shape) -> Option<Refusal> {
    let allowed = if shape.non_portable_cluster { limits.max_nonportable_cluster } else { limits.max_cluster };
    if shape.cluster <= allowed {
        return None;
    }
    let size = shape.cluster;
    // Beyond what any kernel can ask for, that is the limit that counts.
    let allowed = if size > limits.max_nonportable_cluster { limits.max_nonportable_cluster } else { allowed };
    let text = if limits.max_nonportable_cluster == 1 {
        format!("a cluster of {size} CTAs, on a device without clusters")
    } else if size <= limits.max_nonportable_cluster {
        format!(
            "a cluster of {size} CTAs, {} over the portable limit of {allowed}: sizes up to {} need \
             non_portable_cluster",
            size - allowed,
            limits.max_nonportable_cluster
        )
    } else {
        format!("a cluster of {size} CTAs, {} over the limit of {allowed}", size - allowed)
    };
    let (wanted, allowed) = (u64::from(size), u64::from(allowed));
    Some(Refusal { limit: RefusedBy::Cluster, wanted, allowed, text })
}

/// A CTA that keeps every limit of a launch and still finds no SM that holds it.
fn no_room_refusal(limits: &Limits, shape: &Shape, binding: &[Limiter], shared: u64) -> Refusal {
    let (limit, wanted, allowed, what) = if binding.contains(&Limiter::Barriers) {
        let allowed = limits.barriers.unwrap_or(0);
        (RefusedBy::BarriersPerCta, u64::from(shape.barriers), allowed, "barriers")
    } else {
        let what = "bytes of shared memory, with the system's share,";
        (RefusedBy::SharedOptinBytes, shared, limits.shared_bytes, what)
    };
    let allowed = u64::from(allowed);
    let text = format!("{wanted} {what} a CTA, {} over what an SM has", wanted.saturating_sub(allowed));
    Refusal { limit, wanted, allowed, text }
}

fn capacity_refusal(device: &Device, cluster: u32) -> Refusal {
    let groups = device.topology.gpcs.iter().flat_map(|gpc| &gpc.groups);
    let largest =
        groups.map(|group| group.max_cluster.unwrap_or(u32::MAX).min(group.sms.len() as u32)).max().unwrap_or(0);
    Refusal {
        limit: RefusedBy::ClusterCapacity,
        wanted: u64::from(cluster),
        allowed: u64::from(largest),
        text: format!("a cluster of {cluster} CTAs, and no group of SMs takes more than {largest}"),
    }
}
