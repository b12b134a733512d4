"""The error of a prediction, worked by hand."""

import math

import pytest

from wavesim.validate.metric import MEASURES, Measure, Summary, error_of

SPAN, EVENT = MEASURES["span_ns"], MEASURES["event_us"]
SHARE = Measure("hit_rate", "share")


@pytest.mark.parametrize(
    ("measure", "simulated", "first", "again", "error"),
    [
        # Between the two measurements nothing can be told.
        (SPAN, 1_050.0, 1_000.0, 1_100.0, 0.0),
        # Outside, the tick of the clock is taken off the distance: (1,132 - 1,100 - 32) / 1,050.
        (SPAN, 1_132.0, 1_000.0, 1_100.0, 0.0),
        (SPAN, 1_237.0, 1_000.0, 1_100.0, 0.1),
        (SPAN, 863.0, 1_100.0, 1_000.0, 0.1),
        (EVENT, 10.25, 10.0, 10.0, 0.0),
        (EVENT, 12.3, 10.0, 10.0, 0.2),
        # One measurement is an interval without width.
        (SPAN, 1_132.0, 1_000.0, None, 0.1),
        # Counts have no tick, and shares no division.
        (MEASURES["max_active_clusters"], 33.0, 30.0, 30.0, 0.1),
        (SHARE, 0.4, 0.5, 0.6, 0.1),
    ],
)
def test_the_error_is_the_distance_to_the_interval(measure, simulated, first, again, error):
    assert error_of(measure, simulated, first, again) == pytest.approx(error)


def test_a_count_that_should_be_zero_is_infinitely_wrong():
    assert error_of(MEASURES["sms_used"], 1.0, 0.0, 0.0) == math.inf
    assert error_of(MEASURES["sms_used"], 0.0, 0.0, 0.0) == 0.0


def test_a_summary_has_mean_ninth_decile_and_worst():
    summary = Summary.of([0.0] * 10 + [0.5])
    assert (summary.rows, summary.worst, summary.p90) == (11, 0.5, 0.0)
    assert summary.mape == pytest.approx(0.5 / 11)


def test_no_rows_have_no_errors():
    summary = Summary.of([])
    assert summary.rows == 0
    assert all(math.isnan(value) for value in (summary.mape, summary.p90, summary.worst))
