"""The command ``wavesim``.

Results go to standard output, progress and errors to standard error. The exit code is 0, 2 for
anything that the user can put right (one line says what), 130 after Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import CycloptsError

from wavesim.cli.commands import app
from wavesim.errors import WavesimError

__all__ = ["app", "main"]

BAD_INPUT = 2
INTERRUPTED = 130
_WORDS = {
    "device='h200'": "--device h200",
    "wavesim.devices()": "wavesim devices",
    "keep_partial=True": "--keep-partial",
}
"""What the library's messages advise in Python -> the same on the command line."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Args:
        arguments: the words behind ``wavesim``; by default those of the process.
    """
    sys.exit(_run(sys.argv[1:] if arguments is None else list(arguments)))


def _run(arguments: list[str]) -> int:
    try:
        app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        return _complain(f"{error} (see wavesim --help)")
    except WavesimError as error:
        return _complain(str(error))
    except (BrokenPipeError, SystemExit) as error:
        # rich makes an exit with status 1 of the first
        if isinstance(error, SystemExit) and error.code != 1:
            raise
        # The reader, such as head, has what it wants. Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return _complain(f"{named}{error.strerror or error}")
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _complain(message: str) -> int:
    line = " ".join(message.split())
    for python, words in _WORDS.items():
        line = line.replace(python, words)
    print(f"wavesim: {line}", file=sys.stderr)
    return BAD_INPUT
