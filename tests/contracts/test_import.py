"""What `import wavesim` costs: nothing that only some uses need."""

import subprocess
import sys
from typing import Any, get_args

import wavesim
from wavesim import access
from wavesim.devices import parts
from wavesim.spec import Spec

HEAVY = (
    "altair",
    "asyncio",
    "cyclopts",
    "numpy",
    "rich",
    "vl_convert",
    "wavesim.analyze.analysis",
    "wavesim.io",
)


def test_importing_wavesim_loads_neither_plots_nor_readers_nor_the_command_line():
    script = f"import sys, wavesim; print([m for m in {HEAVY!r} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_the_package_can_be_called_by_the_names_of_its_modules():
    # `wavesim.analyze` is a function and a package, and stays the function whatever is loaded.
    script = (
        "import wavesim.analyze, wavesim.devices, wavesim.simulate, wavesim\n"
        "assert callable(wavesim.analyze) and callable(wavesim.devices)\n"
        "assert callable(wavesim.simulate) and callable(wavesim.device)\n"
        "import wavesim.report, wavesim.cli\n"
        "assert callable(wavesim.analyze)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def specs_in(annotation: Any) -> set[type[Spec]]:
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return {annotation}
    return {spec for inner in get_args(annotation) for spec in specs_in(inner)}


def test_all_that_a_spec_takes_can_be_had_from_the_package_itself():
    reached = {getattr(wavesim, name) for name in wavesim.__all__}
    reached = {spec for spec in reached if isinstance(spec, type) and issubclass(spec, Spec)}
    todo = list(reached)
    while todo:
        spec = todo.pop()
        spec.model_rebuild()
        inner = {found for f in spec.model_fields.values() for found in specs_in(f.annotation)}
        todo += inner - reached
        reached |= inner
    # Durations and patterns are made by Duration.constant, Access.stream ...; parts by device().
    made = {spec for spec in reached if issubclass(spec, wavesim.Duration)}
    made |= {spec for spec in reached if spec.__module__ in (access.__name__, parts.__name__)}
    missing = {spec.__name__ for spec in reached - made} - set(wavesim.__all__)
    assert not missing
    assert {"Array", "Loop", "Arithmetic", "Stream"} <= {spec.__name__ for spec in reached}


def test_each_public_name_is_there_and_documented():
    for name in wavesim.__all__:
        assert getattr(wavesim, name).__doc__, name
