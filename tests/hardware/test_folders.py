"""Any folder of tables of the documented shape is taken, and what is wrong with another is said."""

import json
from pathlib import Path

import polars as pl
import pytest

from wavesim.errors import InvalidInput, UnsupportedFile, WavesimError
from wavesim.io.formats import write_frame
from wavesim.validate import ROWS, validate

FEW = ["spin", "spoiler", "cluster", "two_kernels", "launch_graph_pdl", "persistent_atomic"]

UNSEEN = [
    {"experiment": "spin", "grid": 1_000, "block": 96, "smem": 20_000, "cycles": 3_333.0},
    {"experiment": "spin_regs", "grid": 300, "block": 256, "regs": 200, "cycles": 7_000.0},
    {"experiment": "spin_grid", "grid": 5_000, "block": 64, "cycles": 1_000.0},
    {"experiment": "empty", "grid": 77, "block": 480, "launches": 7.0},
    {"experiment": "cluster", "grid": 96, "block": 256, "cluster": 8, "cycles": 5_000.0},
    {"experiment": "spoiler", "grid": 9_000, "block": 64, "held_sms": 50.0, "cycles": 500.0},
    {"experiment": "streams", "grid": 20, "block": 128, "streams": 6.0, "cycles": 30_000.0},
    {"experiment": "launch_stream", "grid": 30, "block": 64, "kernels": 50.0, "cycles": 100.0},
    {"experiment": "launch_graph", "grid": 30, "block": 64, "kernels": 50.0, "cycles": 100.0},
    {
        "experiment": "launch_graph_pdl",
        "grid": 300,
        "block": 64,
        "kernels": 50.0,
        "cycles": 100.0,
        "trigger": 1.0,
    },
    {"experiment": "persistent_static", "grid": 396, "block": 64, "tasks": 5e3, "cycles": 50.0},
    {"experiment": "persistent_atomic", "grid": 100, "block": 512, "tasks": 5e3, "cycles": 50.0},
    {
        "experiment": "persistent_static_dist",
        "grid": 100,
        "block": 64,
        "tasks": 500.0,
        "dist": "uniform",
        "mean": 900.0,
    },
    {"experiment": "gridsync", "grid": 200, "block": 64, "rounds": 9.0, "cycles": 700.0},
    {
        "experiment": "two_kernels",
        "grid": 200,
        "block": 64,
        "cycles": 700.0,
        "second_grid": 50.0,
        "second_cycles": 900.0,
        "high_priority": 1.0,
    },
    {
        "experiment": "mixed_residency",
        "grid": 200,
        "block": 64,
        "cycles": 700.0,
        "second_grid": 50.0,
        "second_block": 512.0,
        "second_smem": 70_000.0,
        "second_cycles": 900.0,
        "second_first": 1.0,
    },
]


def rows_of(records: list[dict[str, object]]) -> pl.DataFrame:
    numbered = [{"run": number, "smem": 0, **record} for number, record in enumerate(records)]
    return pl.DataFrame(numbered, infer_schema_length=None)


def some_of(runs: pl.DataFrame, each: int = 3) -> pl.DataFrame:
    of_each = [runs.filter(pl.col("experiment") == name).sample(each, seed=1) for name in FEW]
    return pl.concat(of_each)


def test_a_subset_of_rows_is_predicted_as_in_the_whole(folder_of, runs, reference):
    some = some_of(runs)
    alone = validate(folder_of(some)).rows
    whole = validate(reference, ["spin"]).rows
    both = alone.join(whole, on=["run", "measure"], suffix="_whole")
    assert both.height == 3
    assert both["simulated"].to_list() == both["simulated_whole"].to_list()


def test_no_prediction_depends_on_what_was_measured(folder_of, runs):
    some = some_of(runs)
    measured = ["span_ns", "event_us", "host_us", "max_active_clusters", "sms_used"]
    measured += [f"{name}_again" for name in measured if f"{name}_again" in some.columns]
    before = validate(folder_of(some)).rows["simulated"].to_list()
    scrambled = some.with_columns(pl.lit(123.0).alias(name) for name in measured)
    assert validate(folder_of(scrambled)).rows["simulated"].to_list() == before
    nothing = some.with_columns(pl.lit(None, pl.Float64).alias(name) for name in measured)
    assert validate(folder_of(nothing)).rows["simulated"].to_list() == before


def test_block_durations_are_inputs_and_block_times_are_not(folder_of, runs, reference):
    row = runs.filter(experiment="spin_dist").head(1)
    blocks = pl.read_parquet(reference / "blocks.parquet").filter(run=row["run"][0])
    before = validate(folder_of(row, blocks)).rows["simulated"][0]
    times = ["start_ns", "end_ns", "start_clock", "end_clock", "smid", "tag"]
    scrambled = blocks.with_columns(pl.lit(7).alias(name) for name in times).reverse()
    assert validate(folder_of(row, scrambled)).rows["simulated"][0] == before
    longer = blocks.with_columns(pl.col("cycles") * 2)
    assert validate(folder_of(row, longer)).rows["simulated"][0] > 1.8 * before


@pytest.mark.parametrize("record", UNSEEN, ids=lambda record: record["experiment"])
def test_parameters_never_measured_are_simulated(folder_of, record):
    result = validate(folder_of(rows_of([{**record, "span_ns": 1e4, "event_us": 10.0}])))
    assert result.skipped.height == 0
    assert result.rows.height >= 1
    assert (result.rows["simulated"] > 0).all()


def test_longer_waits_take_longer(folder_of):
    records = [
        {**record, "cycles": cycles}
        for record in UNSEEN
        if record.get("cycles")
        for cycles in (2_000.0, 20_000.0)
    ]
    rows = validate(folder_of(rows_of(records))).rows
    rows = rows.filter(pl.col("measure").is_in(["span_ns", "event_us"]))
    spans = rows.group_by("family", "measure", maintain_order=True).agg("simulated")["simulated"]
    assert all(longer > shorter for shorter, longer in spans)


def test_a_row_without_a_needed_column_is_left_out_with_the_reason(folder_of):
    rows = rows_of([{"experiment": "spin", "grid": 10, "block": 32, "span_ns": 900.0}])
    result = validate(folder_of(rows))
    assert result.rows.is_empty()
    assert result.skipped["why"].to_list() == ["cycles is not given"]
    assert result.families.row(0, named=True) == {
        "family": "spin",
        "measure": "span_ns",
        "rows": 0,
        "mape": None,
        "p90": None,
        "worst": None,
        "skipped": 1,
    }


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"grid": -5}, "grid must be 0 or more"),
        ({"grid": 0}, "grid"),
        ({"block": 2_000}, "block"),
        ({"cycles": float("nan")}, "cycles must be 0 or more"),
        ({"smem": 400_000}, "the model refuses it"),
    ],
)
def test_a_row_that_cannot_be_is_left_out_with_the_reason(folder_of, change, why):
    row = {"experiment": "spin", "grid": 10, "block": 32, "cycles": 900.0, "span_ns": 900.0}
    result = validate(folder_of(rows_of([{**row, **change}, row])))
    assert result.rows["run"].to_list() == [1]
    assert why in result.skipped["why"][0]


def test_spin_dist_with_half_of_its_blocks_is_left_out(folder_of, runs, reference):
    row = runs.filter(experiment="spin_dist").head(1)
    blocks = pl.read_parquet(reference / "blocks.parquet").filter(run=row["run"][0])
    half = validate(folder_of(row, blocks.head(100)))
    assert "has 100 blocks of a grid of" in half.skipped["why"][0]


def test_an_unknown_experiment_is_left_out(folder_of):
    result = validate(folder_of(rows_of([{"experiment": "juggling", "grid": 3, "block": 32}])))
    assert "no workload is known" in result.skipped["why"][0]


def test_one_measurement_is_enough(folder_of):
    row = {"experiment": "spin", "grid": 10, "block": 32, "cycles": 900.0, "span_ns": 550.0}
    assert validate(folder_of(rows_of([row]))).rows["error"][0] is not None


def test_the_table_has_each_row_with_its_inputs(folder_of, runs, tmp_path):
    path = tmp_path / "out.parquet"
    result = validate(folder_of(some_of(runs)), table=path)
    table = pl.read_parquet(path)
    assert table.equals(result.rows)
    for name, read in (("t.csv", pl.read_csv), ("t.json", pl.read_json), ("T.CSV", pl.read_csv)):
        write_frame(result.rows, tmp_path / name)
        assert read(tmp_path / name, schema=ROWS).equals(result.rows), name
    assert dict(table.schema) == ROWS
    inputs = json.loads(table.filter(family="spin")["parameters"][0])
    assert {"grid", "block", "cycles"} <= inputs.keys()
    assert not {"span_ns", "event_us", "span_ns_again"} & inputs.keys()


def test_the_records_can_be_written_as_json(folder_of, runs):
    records = validate(folder_of(some_of(runs))).records()
    keys = {"family", "measure", "rows", "mape", "p90", "worst", "skipped"}
    assert all(record.keys() == keys for record in json.loads(json.dumps(records)))


def test_progress_counts_to_the_end(folder_of, runs):
    seen = []
    validate(folder_of(some_of(runs)), progress=lambda done, rows: seen.append((done, rows)))
    assert seen == [(number, 18) for number in range(1, 19)]


def test_families_can_be_chosen(folder_of, runs):
    folder = folder_of(some_of(runs))
    assert validate(folder, ["spin"]).families["family"].to_list() == ["spin"]
    with pytest.raises(InvalidInput, match="no family 'spinn'; did you mean spin"):
        validate(folder, ["spinn"])


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UnsupportedFile, match="nowhere: must be a folder"):
        validate(tmp_path / "nowhere")


def test_a_folder_without_tables_says_which_it_needs(tmp_path):
    with pytest.raises(UnsupportedFile, match=r"none of the tables runs\.parquet"):
        validate(tmp_path)


def test_a_file_that_is_no_table_is_named(tmp_path):
    (tmp_path / "runs.parquet").write_text("not a table")
    with pytest.raises(UnsupportedFile, match=r"runs\.parquet: is no Parquet table"):
        validate(tmp_path)


@pytest.mark.parametrize("missing", ["run", "experiment", "grid", "block"])
def test_a_table_without_a_column_that_all_need_says_which(folder_of, missing):
    row = rows_of([{"experiment": "spin", "grid": 3, "block": 32, "cycles": 5.0}])
    with pytest.raises(UnsupportedFile, match=f"has no column {missing}"):
        validate(folder_of(row.drop(missing)))


def test_columns_of_the_wrong_kind_are_refused(folder_of):
    row = rows_of([{"experiment": "spin", "grid": 3, "block": 32, "cycles": 5.0}])
    with pytest.raises(UnsupportedFile, match="experiment must be a column of names"):
        validate(folder_of(row.with_columns(experiment=pl.lit(4))))
    with pytest.raises(UnsupportedFile, match="run must be a column of whole numbers"):
        validate(folder_of(row.with_columns(run=pl.lit("first"))))


def test_a_table_that_cannot_be_written_is_refused_before_anything_is_simulated(
    folder_of, runs, tmp_path, monkeypatch
):
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("wavesim.validate._predict_all", never)
    for name in ("no/such/folder/t.parquet", "t.xlsx"):
        with pytest.raises(WavesimError, match=rf"cannot write .*{name}: "):
            validate(folder_of(some_of(runs, 1)), table=tmp_path / name)


@pytest.mark.parametrize("experiment", ["persistent_static", "persistent_atomic"])
def test_blocks_beyond_what_the_device_holds_come_later(tmp_path: Path, experiment: str) -> None:
    full = {"block": 1024, "regs": 18, "cycles": 2000.0, "tasks": 20_000.0}
    rows = [
        {"run": run, "experiment": experiment, "grid": grid, **full, "span_ns": 1.0}
        for run, grid in enumerate([264, 528, 2640])
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "runs.parquet")
    found = validate(tmp_path, [experiment])
    assert found.skipped.is_empty()
    spans = found.rows.sort("run")["simulated"].to_list()
    # 20,000 tasks on 264 slots take 76 turns, whoever takes them; each block has its start besides.
    turns = 76 * 2000 / 1.98
    assert all(turns < span < 2 * turns for span in spans), spans
