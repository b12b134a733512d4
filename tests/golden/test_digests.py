"""Digests of small programs, so that no change of what happens goes unnoticed.

A digest covers every CTA's kernel, number, place, start and end. After a change that was meant,
look at the makespans that the failing tests print, and write the new values down:

    .venv/bin/python tests/golden/update.py
"""

import json
from pathlib import Path

import pytest

from golden.programs import PROGRAMS

KEPT = json.loads((Path(__file__).parent / "digests.json").read_text())


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_happens_in_a_program_is_what_happened_before(name):
    run = PROGRAMS[name]()
    assert {"makespan_ps": run.makespan_ps, "digest": run.digest} == KEPT[name]


def test_every_kept_digest_has_its_program():
    assert set(KEPT) == set(PROGRAMS)
