"""Writes down the digests of today: `.venv/bin/python tests/golden/update.py`."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden.programs import PROGRAMS

if __name__ == "__main__":
    kept = {}
    for name, simulated in PROGRAMS.items():
        run = simulated()
        kept[name] = {"makespan_ps": run.makespan_ps, "digest": run.digest}
    path = Path(__file__).parent / "digests.json"
    path.write_text(json.dumps(kept, indent=2) + "\n")
    print(f"wrote {len(kept)} digests to {path}")
