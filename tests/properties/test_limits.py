"""No SM ever holds more than it has, whatever runs beside what."""

import polars as pl
from hypothesis import assume, given
from hypothesis import strategies as st

import wavesim
from properties.mixes import mixes
from properties.strategies import cases
from wavesim.validate.placement import occupancy_of

RESOURCES = ("ctas", "warps", "threads", "registers", "shared_bytes", "barriers")

SLACK_NS = 0.005
"""A few picoseconds: each of the timings on a CTA's way is rounded to whole ones."""


def holdings(run: wavesim.Run) -> pl.DataFrame:
    """What the CTAs of each launch hold: while they run, and while only their last warp does."""
    rows = []
    for number, launch in enumerate(run.program.launches()):
        kernel = launch.kernel
        fit = occupancy_of(kernel, run.device)
        assert run.kernels["residency"][number] == fit.ctas_per_sm
        last_warp_ns = 0.0
        if kernel.cluster == 1 and not kernel.cluster_launch:
            last_warp_ns = 1e3 * kernel.last_warp_cycles / run.device.clock.sm_mhz
        rows.append(
            {
                "kernel": number,
                "last_warp_ns": last_warp_ns,
                "residency": fit.ctas_per_sm,
                "ctas": 1,
                "warps": fit.warps_per_cta,
                "threads": fit.warps_per_cta * run.device.limits.warp_size,
                "registers": fit.registers_per_cta,
                "shared_bytes": fit.shared_per_cta_bytes,
                # A workgroup of one wave needs none, on AMD.
                "barriers": kernel.barriers if fit.by_barriers is not None else 0,
            }
        )
    whole = {name: pl.Int64 for name in ("residency", *RESOURCES)}
    return pl.DataFrame(rows).cast({"kernel": pl.UInt32, "last_warp_ns": pl.Float64, **whole})


def most_held(changes: pl.DataFrame, by: list[str], resources: list[str]) -> pl.DataFrame:
    """The most of each resource that is held at once, from what is taken and given back when.

    What is given back at a moment makes room for what is taken at it.
    """
    sums = [pl.col(name).cum_sum().over(by) for name in resources]
    held = changes.sort("at_ns", "taken", maintain_order=True).select(*by, *sums)
    return held.group_by(by).max()


def check_limits(run: wavesim.Run) -> None:
    """See that what is resident fits, from the first instruction to the slot's coming back.

    A slot is given to the next CTA when the dispatcher has heard of the end, and that one then has
    a way to go. So from one CTA's end to the next one's start, what it held belongs to nobody for
    that long.
    """
    limits, dispatch = run.device.limits, run.device.dispatch
    way_ns = 0.0
    if run.dispatcher == "hardware":
        cycles = dispatch.send_cycles + dispatch.return_cycles + dispatch.refill_cycles
        way_ns = max(0.0, 1e3 * cycles / run.device.clock.sm_mhz - SLACK_NS)
    ctas = run.ctas.filter(pl.col("end_ns") > pl.col("start_ns"))
    ctas = ctas.join(holdings(run), on="kernel").with_columns(
        last_ns=pl.max_horizontal("start_ns", pl.col("end_ns") - pl.col("last_warp_ns")),
    )
    by_warp = {
        "warps": pl.lit(1, pl.Int64),
        "threads": pl.lit(limits.warp_size, pl.Int64),
        "registers": pl.col("registers") // pl.col("warps"),
    }
    kept = [by_warp.get(name, pl.col(name)).alias(name) for name in RESOURCES]
    early = [(by_warp.get(name, pl.col(name)) - pl.col(name)).alias(name) for name in RESOURCES]

    def changes(at: pl.Expr, taken: bool, what: list[pl.Expr]) -> pl.DataFrame:
        moment = [at.alias("at_ns"), pl.lit(taken).alias("taken")]
        return ctas.select("sm", "kernel", *moment, *what)

    held = pl.concat(
        [
            changes(pl.col("start_ns"), True, [pl.col(name) for name in RESOURCES]),
            changes(pl.col("last_ns") + way_ns, False, early),
            changes(pl.col("end_ns") + way_ns, False, [-what for what in kept]),
        ]
    )
    most = most_held(held, ["sm"], list(RESOURCES))
    for name in RESOURCES:
        limit = getattr(limits, name)
        assert limit is None or (most[name] <= limit).all(), (name, most[name].max(), limit)
    of_kernels = most_held(held, ["sm", "kernel"], ["ctas"]).join(holdings(run), on="kernel")
    full = of_kernels.filter(pl.col("last_warp_ns") == 0)
    assert (full["ctas"] <= full["residency"]).all()


@given(cases())
def test_no_sm_ever_holds_more_than_its_limits(case):
    device, program, seed, dispatcher = case
    check_limits(wavesim.simulate(device, program, seed=seed, dispatcher=dispatcher))


@given(mixes(), st.sampled_from(["hardware", "hardware", "ideal"]), st.integers(0, 2**64 - 1))
def test_no_sm_does_with_all_kinds_of_work_beside_each_other(mix, dispatcher, seed):
    device, program = mix
    try:
        run = wavesim.simulate(device, program, seed=seed, dispatcher=dispatcher)
    except wavesim.errors.Deadlock:
        assume(False)  # grids that wait for each other
    check_limits(run)
