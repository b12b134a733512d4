"""Where the time of a trace went: every nanosecond of its span in exactly one account."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

# In the order in which they are shown.
ACCOUNTS = {
    "busy": "kernels, slots at work if all CTAs of a kernel take equally long",
    "tail": "kernels of more than one wave: slots without a CTA in the last one",
    "small_grid": "kernels of less than one wave: slots that never get a CTA",
    "kernel": "kernels whose launch shape the trace does not tell",
    "copy": "copies and sets while no kernel runs",
    "host": "idle: the host had not made the launch call yet",
    "latency": "idle: the call came late, and this is what a launch takes after it",
    "queue": "idle: the launch was queued already (launch latency, other streams, graph edges)",
    "unlinked": "idle in front of work whose launch call is not in the trace",
}
_Array = npt.NDArray[np.float64]


def ledger_of(work: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """Share out the span from the first start to the last end: account, time_ns, share, meaning.

    ``work``: the frame of ``with_gaps``; ``kernels``: that of ``with_residency``. Kernels that run
    at the same time share it evenly. What a kernel's waves say is arithmetic, not measurement: its
    time is split by wave_efficiency.
    """
    shares = kernel_share(work)
    is_kernel = (work["what"] == "kernel").to_numpy()
    waves = (
        work.filter(pl.col("what") == "kernel")
        .select("id")
        .join(kernels.select("id", "waves", "tail_share"), on="id", maintain_order="left")
    )
    time = shares[is_kernel]
    lost = waves["tail_share"].fill_null(0.0).to_numpy() * time
    above = (waves["waves"].fill_null(0.0) > 1.0).to_numpy()
    known = waves["waves"].is_not_null().to_numpy()
    found = dict.fromkeys(ACCOUNTS, 0.0)
    found["busy"] = float((time - lost)[known].sum())
    found["tail"] = float(lost[known & above].sum())
    found["small_grid"] = float(lost[known & ~above].sum())
    found["kernel"] = float(time[~known].sum())
    gaps = work.select("gap_cause", "launch_gap_ns", "gap_host_ns", "gap_latency_ns").fill_null(0.0)
    for cause, column, account in (
        ("host", "gap_host_ns", "host"),
        ("host", "gap_latency_ns", "latency"),
        ("device", "launch_gap_ns", "queue"),
        ("unknown", "launch_gap_ns", "unlinked"),
    ):
        found[account] += float(gaps.filter(pl.col("gap_cause") == cause)[column].sum())
    start, end = _span(work)
    span = end - start
    # What is left is the time in which only copies ran; rounding must not make it negative.
    found["copy"] = max(span - sum(found.values()), 0.0)
    return pl.DataFrame(
        {
            "account": list(ACCOUNTS),
            "time_ns": [found[account] for account in ACCOUNTS],
            "share": [found[account] / span if span > 0 else 0.0 for account in ACCOUNTS],
            "meaning": list(ACCOUNTS.values()),
        }
    )


def kernel_share(work: pl.DataFrame) -> _Array:
    """Give each row's part of the time in which kernels ran, in ns; 0 for copies.

    At any moment the k kernels that run get 1/k of it each, so that the sum is the time in which
    at least one ran.
    """
    is_kernel = (work["what"] == "kernel").to_numpy()
    start = work["start_ns"].to_numpy().astype(np.float64)
    end = work["end_ns"].to_numpy().astype(np.float64)
    edges = np.concatenate([start[is_kernel], end[is_kernel]])
    change = np.concatenate([np.ones(is_kernel.sum()), -np.ones(is_kernel.sum())])
    order = np.argsort(edges, kind="stable")
    edges, running = edges[order], np.cumsum(change[order])
    if not len(edges):
        return np.zeros(len(start))
    steps = np.diff(edges, append=edges[-1])
    each = np.divide(steps, running, out=np.zeros_like(steps), where=running > 0.5)
    so_far = np.concatenate([[0.0], np.cumsum(each)])
    first = so_far[np.searchsorted(edges, start)]
    last = so_far[np.searchsorted(edges, end)]
    return np.where(is_kernel, last - first, 0.0)


def _span(work: pl.DataFrame) -> tuple[float, float]:
    return float(work["start_ns"].to_numpy().min()), float(work["end_ns"].to_numpy().max())
