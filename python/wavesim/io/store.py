"""Saved runs: a folder of Parquet files with a manifest.

``manifest.json`` says what was simulated (version, device, program, seed, detail, dispatcher, first
SMs), what came of it (makespan, slots, digest) and which files belong to it, with their SHA-256.
Any Parquet reader reads the frames; :func:`load` makes a run of them again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import polars as pl

from wavesim.devices import Device
from wavesim.errors import InvalidInput, UnsupportedFile
from wavesim.frames import (
    CTAS,
    KERNELS,
    L2,
    L2_SLICES,
    L2_WINDOWS,
    LEDGER,
    SMS,
    WARPS,
    WARPS_WINDOWS,
    Stored,
)
from wavesim.io.atomic import atomic_folder
from wavesim.io.programs import decode_program, encode_program
from wavesim.run import Run
from wavesim.scalars import path_from

__all__ = ["load", "save"]

FORMAT = "wavesim run"
FORMAT_VERSION = 2
MANIFEST = "manifest.json"
NUMBERS = "numbers.parquet"
FRAMES = {field.name: field.name.removesuffix("_frame") + "s.parquet" for field in fields(Stored)}
FRAMES |= {
    "l2_frame": "l2.parquet",
    "warp_frame": "warps.parquet",
    "warp_window_frame": "warps_windows.parquet",
    "ledger_frame": "ledger.parquet",
    "timeline_frame": "timeline.parquet",
}
"""Field of ``Stored`` -> file."""

_COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "kernel_frame": KERNELS,
    "cta_frame": CTAS,
    "sm_frame": SMS,
    "l2_frame": L2,
    "l2_slice_frame": L2_SLICES,
    "l2_window_frame": L2_WINDOWS,
    "warp_frame": WARPS,
    "warp_window_frame": WARPS_WINDOWS,
    "ledger_frame": LEDGER,
}
_OPTIONAL = (
    *("cta_frame", "l2_frame", "l2_slice_frame", "l2_window_frame"),
    *("warp_frame", "warp_window_frame"),
)
_NAMES = {MANIFEST, NUMBERS, *FRAMES.values()}


def save(run: Run, folder: str | os.PathLike[str]) -> None:
    """Save a run in a folder, which is made if need be.

    A folder that holds an earlier run is replaced whole, and only when the new one is on the disk;
    one that holds anything else is refused.

    Args:
        run: the run.
        folder: where to.

    Raises:
        InvalidInput: ``folder`` is no path.
        WavesimError: the folder cannot be written; names it.
    """
    stored = run.stored()
    program, numbers = encode_program(run.program)
    with atomic_folder(folder, _is_saved_run) as temporary:
        for field, name in FRAMES.items():
            frame = getattr(stored, field)
            if frame is not None:
                _for_parquet(frame).write_parquet(temporary / name)
        if numbers is not None:
            numbers.write_parquet(temporary / NUMBERS)
        files = {path.name: _fingerprint(path) for path in sorted(temporary.iterdir())}
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "version": run.version,
            "seed": run.seed,
            "detail": run.detail,
            "dispatcher": run.dispatcher,
            "first_sms": run.first_sms,
            "issue": run.issue,
            "makespan_ps": run.makespan_ps,
            "slots": run.slots,
            "digest": run.digest,
            "notes": run.notes,
            "files": files,
            "device": run.device.model_dump(mode="json"),
            "program": program,
        }
        text = json.dumps(manifest, indent=1, ensure_ascii=False)
        (temporary / MANIFEST).write_text(text + "\n", encoding="utf-8")


def load(folder: str | os.PathLike[str]) -> Run:
    """Read a run that was saved with ``run.save(folder)``.

    Args:
        folder: the folder.

    Raises:
        InvalidInput: ``folder`` is no path.
        UnsupportedFile: the folder is no saved run, a file of it is missing or damaged, or it is
            of a later version of wavesim; names the file.
        OSError: a file cannot be read.
    """
    place = path_from("folder", folder)
    manifest = _manifest(place)
    try:
        for name, expected in manifest["files"].items():
            if name not in _NAMES:
                file = place / MANIFEST
                raise UnsupportedFile(
                    f"{file}: damaged: names a file that is no part of a run: {name}", file
                )
            _check(place / name, expected)
        frames = {field: _frame(place, field, manifest["files"]) for field in FRAMES}
        numbers = pl.read_parquet(place / NUMBERS) if NUMBERS in manifest["files"] else None
        return Run(
            Stored(**cast(Any, frames)),
            device=Device.model_validate(manifest["device"]),
            program=decode_program(manifest["program"], numbers),
            seed=manifest["seed"],
            detail=manifest["detail"],
            dispatcher=manifest["dispatcher"],
            first_sms=manifest.get("first_sms", ()),
            issue=manifest.get("issue", "rates"),
            makespan_ps=manifest["makespan_ps"],
            slots=manifest["slots"],
            digest=manifest["digest"],
            version=manifest["version"],
            notes=manifest["notes"],
        )
    except UnsupportedFile:
        raise
    except (InvalidInput, KeyError, TypeError, AttributeError, IndexError) as error:
        file = place / MANIFEST
        what = f"field {error} is missing" if isinstance(error, KeyError) else str(error)
        raise UnsupportedFile(f"{file}: damaged: {what}", file) from error


def _manifest(place: Path) -> dict[str, Any]:
    file = place / MANIFEST
    if not place.is_dir():
        why = "is a file" if place.exists() else "does not exist"
        raise UnsupportedFile(f"{place}: {why}; a saved run is a folder", place)
    if not file.exists():
        raise UnsupportedFile(f"{place}: no saved run: it has no {MANIFEST}", place)
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UnsupportedFile(f"{file}: damaged: no JSON ({error})", file) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UnsupportedFile(f"{file}: not a manifest of a saved run", file)
    if manifest.get("format_version") != FORMAT_VERSION:
        of = f"format {manifest.get('format_version')}, wavesim {manifest.get('version')}"
        why = f"this wavesim reads format {FORMAT_VERSION}; simulate again or use that version"
        raise UnsupportedFile(f"{file}: {of}: {why}", file)
    return manifest


def _check(file: Path, expected: Mapping[str, Any]) -> None:
    if not file.is_file():
        raise UnsupportedFile(f"{file}: missing, though the manifest names it", file)
    if _fingerprint(file) != expected:
        raise UnsupportedFile(f"{file}: damaged: it is not the file that was saved", file)


def _fingerprint(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"bytes": file.stat().st_size, "sha256": digest}


def _for_parquet(frame: pl.DataFrame) -> pl.DataFrame:
    """Whole numbers of 128 bits as decimals, which Parquet has."""
    return frame.with_columns(pl.col(pl.Int128).cast(pl.Decimal(38, 0)))


def _frame(place: Path, field: str, files: Mapping[str, Any]) -> pl.DataFrame | None:
    file = place / FRAMES[field]
    if file.name not in files:
        if field in _OPTIONAL:
            return None
        raise UnsupportedFile(f"{place / MANIFEST}: damaged: names no {file.name}", file)
    frame = pl.read_parquet(file)
    frame = frame.with_columns(pl.col(pl.Decimal).cast(pl.Int128))
    for name in _COLUMNS.get(field, ()):
        if name not in frame.columns:
            raise UnsupportedFile(f"{file}: has no column {name}", file)
    return frame


def _is_saved_run(folder: Path) -> bool:
    """Whether all in the folder was written by :func:`save`."""
    try:
        _manifest(folder)
    except UnsupportedFile:
        return False
    return all(entry.name in _NAMES for entry in folder.iterdir())
