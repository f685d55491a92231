"""Reading line-by-line files so that every error names its file and line."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from app.domain.errors import InvalidInput

T = TypeVar("T")
BOM = b"\xef\xbb\xbf"


def broken(path: Path, message: str, *, line: int | None = None) -> InvalidInput:
    """The error that points at `file:line`."""
    return InvalidInput(str(path) if line is None else f"{path}:{line}", message)


def read_bytes(path: Path) -> bytes:
    """The file without a byte order mark. Raises InvalidInput when it is missing or cannot be read."""
    try:
        return path.read_bytes().removeprefix(BOM)
    except FileNotFoundError as error:
        raise broken(path, "there is no such file") from error
    except OSError as error:
        raise broken(path, f"cannot be read: {error.strerror}") from error


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, numbered from 1. Only LF ends a line: JSON strings may hold U+2028."""
    for number, line in enumerate(read_bytes(path).split(b"\n"), start=1):
        if line.strip():
            yield number, line.rstrip(b"\r")


def read_jsonl(path: Path, kind: type[T]) -> Iterator[tuple[int, T]]:
    """One `kind` a line. Raises InvalidInput for broken JSON and for missing, wrong or empty fields."""
    decoder = msgspec.json.Decoder(kind)
    for number, line in numbered_lines(path):
        try:
            yield number, decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise broken(path, str(error), line=number) from error
