"""Writes the table of docs/accuracy.md: ``python docs/accuracy_table.py``."""

from __future__ import annotations

import re
from pathlib import Path

from wavesim.validate import Validation, validate

REFERENCE = Path(__file__).parents[1] / "reference/h200"
HOLDOUT = Path(__file__).parents[1] / "reference/h200_holdout"


def table(validation: Validation) -> str:
    """List the errors of the families that are simulated, then those that are not."""
    lines = [
        "| family | measure | rows | mean error | nine of ten under | worst |",
        "|---|---|---|---|---|---|",
    ]
    left_out = []
    for row in validation.families.iter_rows(named=True):
        if not row["rows"]:
            left_out.append(f"`{row['family']}`")
            continue
        errors = (f"{row[name]:.2%}" for name in ("mape", "p90", "worst"))
        cells = [f"`{row['family']}`", f"`{row['measure']}`", str(row["rows"]), *errors]
        lines.append(f"| {' | '.join(cells)} |")
    if left_out:
        lines += ["", f"Not simulated: {', '.join(left_out)}."]
    return "\n".join(lines)


def filled(text: str, validation: Validation, marker: str = "table") -> str:
    """Give the text with the table between its markers."""
    marked = re.compile(rf"(<!-- {marker} -->\n).*?(<!-- end -->)", re.DOTALL)
    return marked.sub(lambda match: f"{match[1]}{table(validation)}\n{match[2]}", text)


if __name__ == "__main__":
    page = Path(__file__).with_name("accuracy.md")
    text = filled(page.read_text(), validate(REFERENCE))
    page.write_text(filled(text, validate(HOLDOUT), "holdout"))
