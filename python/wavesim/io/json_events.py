"""Chrome-trace JSON, one event at a time.

A profile can be gigabytes of JSON, and ``json.load`` holds it several times over: the bytes, the
text, and a dict for every event. Here the text is decompressed and decoded piece by piece, and
each event lives only until the next one: the memory needed is a few pieces, whatever the size of
the file. The events themselves are decoded by the standard library's C scanner.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import IO, cast

from wavesim.errors import UnsupportedFile

PIECE_BYTES = 1 << 20
LONGEST_VALUE = 1 << 28
_GZIP_MAGIC = b"\x1f\x8b"
# What may stand at the end of a text that was cut: nothing, or the start of a token.
_UNFINISHED = re.compile(r"\s*(-?[A-Za-z]{0,8}|\\?u?[0-9a-fA-F]{0,3}|-)$")
_SPACE = re.compile(r"[ \t\r\n]*")
# The longest token that can end a piece and still look wrong instead of unfinished ("-Infinity").
_TOKEN = 16


class Truncated(Exception):
    """The text ended inside the document."""


class JsonEvents:
    """The events of one file, in file order.

    Iterating yields ``(index, event)`` for each element of ``traceEvents`` (or of the array, if
    the file is a bare array of events). ``header`` fills up with those other top-level keys that
    were asked for; all others are skipped, so that metadata never reaches the caller.

    Numbers with a fraction arrive as ``Decimal``: time stamps are microseconds since 1970 with
    three decimals, which a float would round to 0.25 us.

    Raises UnsupportedFile if the text is not JSON, with the position, and Truncated if it ends
    too early (then everything before the cut has already been yielded).
    """

    def __init__(self, path: Path, wanted: frozenset[str]) -> None:
        self.path = path
        self.header: dict[str, object] = {}
        self.keys: list[str] = []
        self.has_events = False
        self.repaired_text = False
        self._wanted = wanted
        self._exact = json.JSONDecoder(parse_float=cast("type[float]", Decimal), strict=False)
        self._rounded = json.JSONDecoder(strict=False)
        self._text = ""
        self._pos = 0
        self._gone = 0  # characters dropped from the front so far
        self._ended = False
        self._cut: str | None = None

    def __iter__(self) -> Iterator[tuple[int, object]]:
        with open_bytes(self.path) as source:
            self._source = source
            self._decode = codecs.getincrementaldecoder("utf-8-sig")(errors="replace").decode
            first = self._peek()
            if first == "[":
                self.has_events = True
                yield from self._array()
            elif first == "{":
                yield from self._object()
            else:
                raise self._wrong("neither a JSON object nor an array")
            if self._peek(at_end_ok=True):
                raise self._wrong("text after the end of the JSON document")

    def _object(self) -> Iterator[tuple[int, object]]:
        self._pos += 1
        if self._peek() == "}":
            self._pos += 1
            return
        while True:
            key = self._value("a key")
            if not isinstance(key, str):
                raise self._wrong("a key that is not a string")
            if self._peek() != ":":
                raise self._wrong(f"no ':' after key {key!r}")
            self._pos += 1
            self.keys.append(key)
            if key == "traceEvents" and self._peek() == "[":
                self.has_events = True
                yield from self._array()
            else:
                value = self._value(key)
                if key in self._wanted:
                    self.header[key] = value
            mark = self._peek()
            self._pos += 1
            if mark == "}":
                return
            if mark != ",":
                raise self._wrong(f"no ',' or '}}' after the value of {key!r}")

    def _array(self) -> Iterator[tuple[int, object]]:
        self._pos += 1
        index = 0
        if self._peek() == "]":
            self._pos += 1
            return
        while True:
            yield index, self._value(f"traceEvents[{index}]")
            index += 1
            mark = self._peek()
            self._pos += 1
            if mark == "]":
                return
            if mark != ",":
                raise self._wrong(f"no ',' or ']' after traceEvents[{index - 1}]")
            if self._peek() == "]":  # some writers leave a comma behind the last event
                self._pos += 1
                return

    def _value(self, where: str) -> object:
        self._peek()
        size = PIECE_BYTES
        while True:
            try:
                value, end = self._scan()
            except ValueError as error:
                at = getattr(error, "pos", self._pos)
                open_string = "Unterminated string" in str(error)
                in_reach = open_string or at >= len(self._text) - _TOKEN
                offset = at - self._pos  # reading on moves the text
                if not (in_reach and self._more(size)):
                    at = self._pos + offset
                    if open_string or _UNFINISHED.match(self._text, at):
                        raise self._truncated(where) from None
                    reason = getattr(error, "msg", str(error))
                    raise self._wrong(f"{where}: {reason}", at) from None
            except RecursionError:
                raise self._wrong(f"{where}: nested too deeply") from None
            else:
                # A number at the very end of the piece may go on in the next one.
                length = end - self._pos
                if end < len(self._text) or not self._more(size):
                    self._pos += length
                    return value
            if len(self._text) - self._pos > LONGEST_VALUE:
                raise self._wrong(f"{where}: one value of more than {LONGEST_VALUE >> 20} MiB")
            size *= 2  # a value longer than a piece is tried again log times, not linearly often

    def _scan(self) -> tuple[object, int]:
        try:
            return self._exact.raw_decode(self._text, self._pos)
        except InvalidOperation:  # an exponent that Decimal refuses: inf as a float
            return self._rounded.raw_decode(self._text, self._pos)

    def _peek(self, at_end_ok: bool = False) -> str:
        """Move to the next character that is not white space, and return it."""
        if self._pos < len(self._text) and (here := self._text[self._pos]) > " ":
            return here
        while True:
            match = _SPACE.match(self._text, self._pos)
            assert match is not None  # the pattern accepts the empty string
            self._pos = match.end()
            if self._pos < len(self._text):
                return self._text[self._pos]
            if not self._more(PIECE_BYTES):
                if at_end_ok and self._cut is None:
                    return ""
                raise self._truncated("the document")

    def _more(self, size: int) -> bool:
        """Append about ``size`` bytes of text and drop what was consumed; False at the end."""
        if self._ended:
            return False
        try:
            data = self._source.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self._cut = f"the gzip stream is damaged or incomplete ({error})"
            data = b""
        self._ended = not data
        text = self._decode(data, self._ended)
        self.repaired_text = self.repaired_text or "\ufffd" in text
        self._gone += self._pos
        self._text = self._text[self._pos :] + text
        self._pos = 0
        return bool(text) or not self._ended

    def _truncated(self, where: str) -> Truncated:
        return Truncated(self._cut or f"the file ends inside {where}")

    def _wrong(self, what: str, at: int | None = None) -> UnsupportedFile:
        position = self._gone + (self._pos if at is None else at)
        return UnsupportedFile(
            f"{self.path.name}: not a JSON trace: {what} (character {position:,})", self.path
        )


def open_bytes(path: Path) -> IO[bytes]:
    """Open the file's bytes, decompressed if they are gzip by magic number, not by name."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP_MAGIC
    return cast("IO[bytes]", gzip.open(path, "rb")) if packed else path.open("rb")
