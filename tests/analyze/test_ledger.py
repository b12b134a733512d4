"""The trace's ledger: every nanosecond of the span is in exactly one account."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavesim.analyze.gaps import with_gaps
from wavesim.analyze.ledger import ACCOUNTS, kernel_share, ledger_of


def work(*rows):
    """Rows of (what, start, end, call end or None), in ns."""
    frame = pl.DataFrame(
        [
            {
                "what": what,
                "id": sum(row[0] == "kernel" for row in rows[:number]),
                "start_ns": float(start),
                "end_ns": float(end),
                "launch_end_ns": None if call is None else float(call),
            }
            for number, (what, start, end, call) in enumerate(rows)
        ],
        schema_overrides={"launch_end_ns": pl.Float64},
    )
    return with_gaps(frame.sort("start_ns", maintain_order=True))


def kernels(*waves):
    lost = [None if wave is None else 1.0 - wave / -(-wave // 1) for wave in waves]
    columns = {"id": range(len(waves)), "waves": waves, "tail_share": lost}
    return pl.DataFrame(columns, schema={"id": int, "waves": float, "tail_share": float})


def accounts(*args):
    return {row["account"]: row["time_ns"] for row in ledger_of(*args).iter_rows(named=True)}


def test_one_kernel_of_one_and_a_half_waves_loses_a_quarter_in_its_tail():
    found = accounts(work(("kernel", 0, 100, -1)), kernels(1.5))
    assert found["busy"] == pytest.approx(75.0)
    assert found["tail"] == pytest.approx(25.0)
    assert sum(found.values()) == pytest.approx(100.0)


def test_one_kernel_of_a_tenth_of_a_wave_is_a_small_grid():
    found = accounts(work(("kernel", 0, 100, -1)), kernels(0.1))
    assert found["busy"] == pytest.approx(10.0)
    assert found["small_grid"] == pytest.approx(90.0)


def test_a_kernel_without_a_shape_has_its_own_account():
    assert accounts(work(("kernel", 0, 100, -1)), kernels(None))["kernel"] == pytest.approx(100.0)


def test_idle_time_goes_to_the_account_of_its_cause():
    rows = [("kernel", 0, 100, -1), ("kernel", 110, 200, 50), ("kernel", 400, 500, 370)]
    found = accounts(work(*rows, ("kernel", 507, 600, None)), kernels(1, 1, 1, 1))
    assert found["queue"] == pytest.approx(10.0)
    assert found["host"] == pytest.approx(170.0)
    assert found["latency"] == pytest.approx(30.0)
    assert found["unlinked"] == pytest.approx(7.0)
    assert found["busy"] == pytest.approx(383.0)


def test_a_copy_counts_only_while_no_kernel_runs():
    found = accounts(work(("kernel", 0, 100, -1), ("memcpy", 50, 150, 0)), kernels(1))
    assert found["busy"] == pytest.approx(100.0)
    assert found["copy"] == pytest.approx(50.0)


def test_kernels_that_run_at_once_share_the_time():
    rows = work(("kernel", 0, 100, -1), ("kernel", 50, 150, -1), ("memset", 60, 70, -1))
    assert kernel_share(rows).tolist() == pytest.approx([75.0, 75.0, 0.0])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["kernel", "memcpy"]),
            st.integers(0, 10_000),
            st.integers(0, 500),
            st.one_of(st.none(), st.integers(-100, 10_000)),
        ),
        min_size=1,
        max_size=30,
    ),
    st.lists(st.one_of(st.none(), st.floats(0.01, 50)), min_size=30, max_size=30),
)
def test_the_accounts_always_add_up_to_the_span(rows, waves):
    frame = work(*((what, start, start + length, call) for what, start, length, call in rows))
    ledger = ledger_of(frame, kernels(*waves))
    span = frame["end_ns"].max() - frame["start_ns"].min()
    assert ledger["account"].to_list() == list(ACCOUNTS)
    assert ledger["time_ns"].sum() == pytest.approx(span, abs=1e-6)
    assert (ledger["time_ns"] >= -1e-9).all()
    if span > 0:
        assert ledger["share"].sum() == pytest.approx(1.0)
