"""Scenario files: what they say is simulated, and every fault is named by its path in the file."""

from pathlib import Path

import polars as pl
import pytest

import wavesim
from wavesim.errors import CannotLaunch, InvalidInput, UnsupportedFile
from wavesim.workload import Copy, Graph, Launch, Record, Wait

KERNEL = """
device = "h200"
[kernels.k]
grid = 100
work = { kind = "constant", ns = 1_000 }
"""


def read(tmp_path: Path, text: str) -> "wavesim.Scenario":
    file = tmp_path / "s.toml"
    file.write_text(text, encoding="utf-8")
    return wavesim.read_scenario(file)


def fault(tmp_path: Path, text: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, text).simulate()
    return caught.value


IN = "kernels.k.work."
OFFSETS = IN + "pattern.offsets[0]"
ONE = '{ kind = "constant", ns = 1 }'
CIRCLE = [1, 0, *[-1] * 98]
HALF = [0.5, *[0] * 99]
POLL = '{ kind = "warp_programs", programs = [{ kind = "poll", '


def test_one_kernel_needs_no_program(tmp_path: Path) -> None:
    found = read(tmp_path, KERNEL)
    kernel = wavesim.Kernel(grid=100, work=wavesim.Duration.constant(ns=1_000), name="k")
    assert found.program == wavesim.Program([kernel])
    assert (found.seed, found.detail, found.dispatcher) == (0, "ctas", "hardware")
    assert found.simulate().digest == wavesim.simulate("h200", kernel).digest


def test_options_are_taken_and_can_be_replaced(tmp_path: Path) -> None:
    options = 'seed = 5\ndetail = "kernels"\ndispatcher = "ideal"\n'
    found = read(tmp_path, options + KERNEL)
    run = found.simulate()
    assert (run.seed, run.detail, run.dispatcher) == (5, "kernels", "ideal")
    run = found.simulate(seed=6, detail="ctas")
    assert (run.seed, run.detail, run.dispatcher) == (6, "ctas", "ideal")


def test_a_device_can_be_scaled_and_edited(tmp_path: Path) -> None:
    text = KERNEL.replace('device = "h200"', "").lstrip() + (
        '[device]\nname = "h200"\nsms = 264\nedit = { clock.sm_mhz = 1500, l2.halves = 1 }\n'
    )
    device = read(tmp_path, text).device
    assert device.sms == 264
    assert (device.clock.sm_mhz, device.l2.halves) == (1500, 1)


def test_a_program_is_read_in_order(tmp_path: Path) -> None:
    text = (
        KERNEL
        + """
    [streams.3]
    priority = -2
    [[program]]
    launch = "k"
    repeat = 2
    [[program]]
    record = "e"
    [[program]]
    wait = "e"
    stream = 3
    [[program]]
    copy_ns = 700
    stream = 3
    [[program]]
    graph = [{ launch = "k", stream = 1 }, { launch = "k", stream = 1, dependent = true }]
    stream = 3
    at_ns = 5e4
    """
    )
    program = read(tmp_path, text).program
    k = program.items[0].kernel  # type: ignore[union-attr]
    assert program.items == (
        Launch(k),
        Launch(k),
        Record("e"),
        Wait("e", stream=3),
        Copy(700, stream=3),
        Graph([Launch(k, 1), Launch(k, 1, dependent=True)], stream=3, at_ns=5e4),
    )
    assert program.streams[3].priority == -2


@pytest.mark.parametrize(
    "work",
    [
        '{ kind = "uniform", low_ns = 1, high_ns = 2 }',
        '{ kind = "normal", mean_cycles = 9_000, std_cycles = 10 }',
        '{ kind = "lognormal", mean_ns = 10, cv = 0.5 }',
        '{ kind = "exponential", mean_ns = 10 }',
        '{ kind = "bimodal", low_ns = 1, high_ns = 9, high_share = 0.1 }',
        '{ kind = "persistent", tasks = 500, duration = { kind = "constant", ns = 4 } }',
        '{ kind = "measured", span_ns = 20_000, on = "a100-sxm4-80" }',
        '{ kind = "warp_programs", programs = [{ kind = "poll", cycles = 500, since = "start" }] }',
    ],
)
def test_each_kind_of_work_can_be_written(tmp_path: Path, work: str) -> None:
    text = KERNEL.replace('{ kind = "constant", ns = 1_000 }', work)
    kind = work.split('"')[1]
    run = read(tmp_path, text).simulate()
    assert next(run.program.launches()).kernel.work.kind == kind  # type: ignore[union-attr]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_times_of_each_cta_can_lie_in_a_file_beside_it(tmp_path: Path, suffix: str) -> None:
    frame = pl.DataFrame({"cycles": [100.0 * i for i in range(100)]})
    getattr(frame, f"write_{suffix}")(tmp_path / f"times.{suffix}")
    work = f'{{ kind = "per_cta", file = "times.{suffix}", column = "cycles", unit = "cycles" }}'
    found = read(tmp_path, KERNEL.replace('{ kind = "constant", ns = 1_000 }', work))
    expected = wavesim.Duration.per_cta(cycles=frame["cycles"])
    assert next(found.program.launches()).kernel.work == expected


def test_parts_of_a_chain_can_have_their_times_in_a_file(tmp_path: Path) -> None:
    times = pl.DataFrame({"ns": [100.0 * i for i in range(100)]})
    times.write_csv(tmp_path / "times.csv")
    from_file = '{ kind = "per_cta", file = "times.csv", column = "ns" }'
    after = '{ kind = "constant", ns = 5 }'
    work = f'{{ kind = "chain", needs = 1, before = {from_file}, after = {after} }}'
    found = read(tmp_path, KERNEL.replace('{ kind = "constant", ns = 1_000 }', work))
    expected = wavesim.Chain(
        before=wavesim.Duration.per_cta(ns=times["ns"]),
        after=wavesim.Duration.constant(ns=5),
        needs=1,
    )
    assert next(found.program.launches()).kernel.work == expected


@pytest.mark.parametrize(
    ("wrong", "field", "why"),
    [
        ('devise = "h200"', "devise", "did you mean device?"),
        ("seed = 1.5", "seed", "must be a whole number (got 1.5)"),
        ("seed = true", "seed", "must be a whole number (got True)"),
        ('detail = "warps"', "detail", "must be ctas, kernels or memory (got 'warps')"),
        ("program = 3", "program", "must be a list (got 3)"),
        ("program = [3]", "program[0]", "must be a table (got 3)"),
        (
            "program = [{ launch = 'x' }]",
            "program[0].launch",
            "no such kernel: must be k (got 'x')",
        ),
        ("program = [{ stream = 1 }]", "program[0]", "needs exactly one of launch"),
        ("program = [{ launch = 'k', wait = 'e' }]", "program[0]", "(got launch and wait)"),
        ("program = [{ launch = 'k', steam = 1 }]", "program[0].steam", "did you mean stream?"),
        (
            "program = [{ launch = 'k', zz = 1 }]",
            "program[0].zz",
            "no such field: must be launch, stream, at_ns, dependent, trigger or repeat",
        ),
        (
            "program = [{ copy_ns = 5, zz = 1 }]",
            "program[0].zz",
            "must be copy_ns, stream or at_ns",
        ),
        (
            "program = [{ record = 'e', event = 'f' }]",
            "program[0].event",
            "must be record or stream",
        ),
        ("program = [{ graph = [], items = [] }]", "program[0].items", "must be graph, stream or"),
        ("program = [{ launch = 'k', repeat = 0 }]", "program[0].repeat", "(got 0)"),
        ("program = [{ launch = 'k', stream = -1 }]", "program[0].stream", "(got -1)"),
        (
            "program = [{ launch = 'k', repeat = 9 }, { wait = 'e' }]",
            "program[1].wait",
            "no record of this event",
        ),
        (
            "program = [{ launch = 'k' }, { graph = [{ launch = 'k' }, { wait = 'e' }] }]",
            "program[1].graph[1].wait",
            "no record of this event",
        ),
        ("program = [{ copy_ns = -1 }]", "program[0].copy_ns", "greater than or equal to 0"),
        ("program = [{ graph = [] }]", "program[0].graph", "at least one node"),
        ("[streams.99999999999]", "streams.99999999999", "must be less than"),
        ("program = [{ graph = [{ graph = [] }] }]", "program[0].graph[0].graph", "holds no graph"),
        ("[streams]\nfirst = {}", "streams.first", "a stream's name is its number"),
        ("[kernels.k2]\ngrid = 1", "kernels.k2.work", "is needed"),
        ("[kernels.k2]\ngrid = 1\nwork = []", "kernels.k2.work", "persistent, grid_sync"),
        ("[kernels.k2]\ngrid = 1\nwrk = {}", "kernels.k2.wrk", "did you mean work?"),
        ("program = [{ lanch = 'k' }]", "program[0].lanch", "did you mean launch?"),
        ("program = []", "program", "at least one item"),
        ("device = 3", "device", "must be a name, or a table with a name (got 3)"),
        ("device = { name = 'h2oo' }", "device.name", "did you mean"),
        ("device = { name = 'h200', edit = { l2.way = 8 } }", "device.edit.l2.way", "mean l2.ways"),
        ("device = { name = 'h200', edit = { l2.ways = 0 } }", "device.edit.l2.ways", "(got 0)"),
        (
            "device = { name = 'h200', edit = { l2.bytes = 9000 } }",
            "device.edit",
            ", l2.ways: 9000",
        ),
        ("[kernels.k2]\nwork = { kind = 'constant', ns = 1 }", "kernels.k2.grid", "is needed"),
    ],
)
def test_a_fault_is_named_by_its_path(tmp_path: Path, wrong: str, field: str, why: str) -> None:
    kernel = KERNEL.replace('device = "h200"', "") if wrong.startswith("device") else KERNEL
    error = fault(tmp_path, kernel + wrong if wrong.startswith("[") else wrong + kernel)
    assert error.field == field
    assert str(error).startswith(f"{field}: ")
    assert why in str(error)


@pytest.mark.parametrize(
    ("work", "field"),
    [
        ('{ kind = "constant", ns = -1 }', "kernels.k.work.ns"),
        ('{ kind = "constant" }', "kernels.k.work.ns"),
        ('{ kind = "constant", s = 1 }', "kernels.k.work.s"),
        ('{ knd = "constant", ns = 1 }', "kernels.k.work.knd"),
        ('{ kind = "persistent", task = 9 }', "kernels.k.work.task"),
        ('{ kind = "per_cta", fil = "t.csv", column = "ns" }', "kernels.k.work.fil"),
        ('{ kind = "per_cta", file = "t.csv", column = "name" }', "kernels.k.work.column"),
        ('{ kind = "per_cta", file = "t.csv", column = "late" }', "kernels.k.work.column[0]"),
        ('{ kind = "tiles", m = 64, n = 64, k = 64 }', "kernels.k.grid"),
        ('{ kind = "function", ns = "lambda i: i" }', "kernels.k.work.kind"),
        ('{ kind = "per_cta", ns = [1.0] }', "kernels.k.work"),
        ('{ kind = "per_cta", ns = [1.0, -2.0] }', "kernels.k.work.ns[1]"),
        ('{ kind = "konstant", ns = 1 }', "kernels.k.work.kind"),
        ("{ ns = 1 }", "kernels.k.work.kind"),
        ('{ kind = "measured", span_ns = 1, on = "h2000" }', "kernels.k.work.on"),
        # What the engine says of a program, and of a run.
        (
            '{ kind = "streaming", elements = 9, inputs = [{ bytes = 5e3 }] }',
            IN + "inputs[0].bytes",
        ),
        ('{ kind = "warp_programs", programs = [{ kind = "await" }] }', IN + "programs[0]"),
        (f"{POLL}cycles = [1, 2] }}] }}", IN + "programs[0][0].cycles"),
        (f"{POLL}cycles = -1 }}] }}", IN + "programs[0][0].cycles"),
        (f'{POLL}cycles = 9, since = "now" }}] }}', IN + "programs[0][0].since"),
        (f'{{ kind = "chain", before = {ONE}, after = {ONE}, needs = {CIRCLE} }}', IN + "needs"),
        (f'{{ kind = "access", pattern = {{ kind = "listed", offsets = {HALF} }} }}', OFFSETS),
        ('{ kind = "per_cta", file = "x.parquet", column = "ns" }', "kernels.k.work.file"),
        ('{ kind = "per_cta", column = "ns" }', "kernels.k.work.file"),
        ('{ kind = "per_cta", file = "t.csv", ns = [1.0] }', "kernels.k.work.ns"),
        ('{ kind = "per_cta", file = "x.txt", column = "ns" }', "kernels.k.work.file"),
        ('{ kind = "per_cta", file = "t.csv", column = "us" }', "kernels.k.work.column"),
        ('{ kind = "per_cta", file = "t.csv", column = "ns", unit = "s" }', "kernels.k.work.unit"),
    ],
)
@pytest.mark.parametrize("launched", [True, False])
def test_a_fault_of_work_is_named_by_its_path(
    tmp_path: Path, work: str, field: str, launched: bool
) -> None:
    (tmp_path / "t.csv").write_text("ns,name,late\n1,one,-1\n")
    text = KERNEL.replace('{ kind = "constant", ns = 1_000 }', work)
    if launched:
        text = 'program = [{ record = "e" }, { graph = [{ launch = "k" }] }]' + text
    error = fault(tmp_path, text)
    assert error.field == field
    assert str(error).startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("values", "fault_of"),
    [
        ("1\n\n3", "column[1]: a duration is a number from 0 to 4.32e+15 (got null)"),
        ("1\nNA\n3", "column[1]: must be a number (got 'NA')"),
        ("1\n2\nnan", "column[2]: must be a number (got 'nan')"),
        ("1\n2\ninf", "column[2]: a duration is a number from 0 to 4.32e+15 (got inf)"),
        ("", "column: must be a column of numbers; it holds String (got 'ns')"),
    ],
)
def test_a_value_of_a_file_that_is_no_number_is_told_with_its_row(
    tmp_path: Path, values: str, fault_of: str
) -> None:
    (tmp_path / "t.csv").write_text(f"ns\n{values}\n")
    work = '{ kind = "per_cta", file = "t.csv", column = "ns" }'
    text = KERNEL.replace("100", "3").replace('{ kind = "constant", ns = 1_000 }', work)
    assert str(fault(tmp_path, text)) == f"kernels.k.work.{fault_of}"


def test_a_file_of_times_is_named_by_itself_and_is_no_pattern(tmp_path: Path) -> None:
    (tmp_path / "[t].csv").write_text("ns\n1\n2\n3\n")
    (tmp_path / "t.csv").mkdir()
    text = KERNEL.replace("100", "3").replace(
        '{ kind = "constant", ns = 1_000 }', '{ kind = "per_cta", file = "[t].csv", column = "ns" }'
    )
    assert read(tmp_path, text).simulate().ctas.height == 3
    assert "t.csv: it is a folder" in str(fault(tmp_path, text.replace("[t]", "t")))


@pytest.mark.parametrize(
    ("work", "field"),
    [
        ('"gemm"', "kernels.k.work"),
        ("{ ns = 1 }", "kernels.k.work.kind"),
        ('{ kind = "gemm" }', "kernels.k.work.kind"),
        ("{ kind = 3 }", "kernels.k.work.kind"),
    ],
)
def test_where_the_kind_is_not_told_the_kinds_are(tmp_path: Path, work: str, field: str) -> None:
    error = fault(tmp_path, KERNEL.replace('{ kind = "constant", ns = 1_000 }', work))
    assert error.field == field
    assert "constant, uniform," in str(error)
    assert "streaming, warp_programs or measured" in str(error)


def test_the_kinds_offered_are_those_that_a_file_can_have(tmp_path: Path) -> None:
    error = fault(tmp_path, KERNEL.replace("constant", "konstant"))
    assert "per_cta, persistent" in str(error)
    assert "; did you mean constant? (got 'konstant')" in str(error)
    task = KERNEL.replace("constant", "persistent").replace(
        "ns =", 'duration = { kind = "x" }, tasks ='
    )
    for told in (error, fault(tmp_path, task)):
        assert "function" not in str(told)


def test_a_file_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    work = '{ kind = "per_cta", file = "x.parquet", column = "ns" }'
    error = fault(tmp_path, KERNEL.replace('{ kind = "constant", ns = 1_000 }', work))
    assert str(error).count("x.parquet") == 1


def test_what_only_the_device_refuses_is_named_by_the_path_of_its_kernel(tmp_path: Path) -> None:
    second = "\n[kernels.j]\ngrid = 1\nregisters = 300\nwork = { kind = 'constant', ns = 1 }"
    program = 'program = [{ launch = "k", repeat = 3 }, { launch = "j" }]\n'
    scenario = read(tmp_path, program + KERNEL + second)
    with pytest.raises(CannotLaunch, match=r"^kernels\.j\.registers: kernel `j`") as caught:
        scenario.simulate()
    assert caught.value.field == "kernels.j.registers"


def test_faults_of_how_a_scenario_is_simulated_are_not_the_programs(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^seed: must be from 0") as caught:
        read(tmp_path, KERNEL).simulate(seed=-1)
    assert caught.value.field == "seed"


def test_several_kernels_without_a_program_are_refused(tmp_path: Path) -> None:
    more = "[kernels.k2]\ngrid = 1\nwork = { kind = 'constant', ns = 1 }"
    error = fault(tmp_path, KERNEL + more)
    assert error.field == "program"
    assert "(k, k2)" in str(error)


@pytest.mark.parametrize("text", ["", "device = 'h200'"])
def test_an_empty_file_says_what_is_missing(tmp_path: Path, text: str) -> None:
    assert "is needed" in str(fault(tmp_path, text))


def test_a_device_that_is_not_known_is_named(tmp_path: Path) -> None:
    assert fault(tmp_path, KERNEL.replace("h200", "h201")).field == "device"
    text = KERNEL.replace('device = "h200"', "") + '[device]\nname = "h200"\nsms = -4\n'
    assert fault(tmp_path, text).field == "device.sms"
    assert fault(tmp_path, text.replace("-4", '"8"')).field == "device.sms"
    text = text.replace("sms = -4", "edit = { clock.sm_ghz = 2 }")
    assert str(fault(tmp_path, text)).startswith("device.edit.clock.sm_ghz")


def test_what_is_no_toml_is_said_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFile, match=r"s\.toml: not valid TOML: .*line 2"):
        read(tmp_path, "a = 1\nb = \n")
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnsupportedFile, match="no text in UTF-8"):
        wavesim.read_scenario(tmp_path / "b.toml")
