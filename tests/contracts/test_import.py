"""What `import wavesim` costs: nothing that only some uses need."""

import subprocess
import sys

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
