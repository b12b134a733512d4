"""``python -m wavesim`` is the command ``wavesim``."""

from __future__ import annotations

from wavesim.cli import main

if __name__ == "__main__":
    main()
