"""What client and owner say to each other: length-prefixed msgpack frames of these structs.

Vectors travel as raw little-endian float32 and uint32 (a msgpack list is twice the size); ids as 16 bytes. Nothing is
ever pickled: a frame can only become one of these structs.
"""

import struct
from typing import Any

import msgspec
from msgspec import Struct

MAX_FRAME_BYTES = 64 << 20
_LENGTH = struct.Struct("<I")


class FrameTooLarge(Exception):
    """A frame over MAX_FRAME_BYTES: refused before it is read."""


class WireFilter(Struct, array_like=True, frozen=True):
    """Ids as text, as the payload holds them; empty lists do not restrict."""

    workspace: str
    collections: list[str] = []
    documents: list[str] = []
    revisions: list[str] = []


class WirePoint(Struct, array_like=True, frozen=True):
    """`payload` is JSON-like and holds no bytes (the engine would take them for lists of integers)."""

    id: bytes
    dense: bytes
    indices: bytes
    values: bytes
    payload: dict[str, Any]


class Search(Struct, array_like=True, frozen=True, tag="search"):
    """Empty bytes skip a list."""

    where: WireFilter
    limit: int
    dense: bytes = b""
    indices: bytes = b""
    values: bytes = b""


class Upsert(Struct, array_like=True, frozen=True, tag="upsert"):
    """Written in pieces, searches between them."""

    points: list[WirePoint]


class Delete(Struct, array_like=True, frozen=True, tag="delete"):
    """By id."""

    ids: list[bytes]


class DeleteWhere(Struct, array_like=True, frozen=True, tag="delete_where"):
    """By filter."""

    where: WireFilter


class Ids(Struct, array_like=True, frozen=True, tag="ids"):
    """All ids that match."""

    where: WireFilter


class Flush(Struct, array_like=True, frozen=True, tag="flush"):
    """To the disk."""


class Hello(Struct, array_like=True, frozen=True, tag="hello"):
    """Asks for the figures of the owner and its shard."""


Operation = Search | Upsert | Delete | DeleteWhere | Ids | Flush | Hello
READS = (Search, Ids, Hello)


class Request(Struct, array_like=True, frozen=True):
    """`deadline` is in seconds of the monotonic clock, which processes of one host share."""

    number: int
    deadline: float
    operation: Operation


class WireHit(Struct, array_like=True, frozen=True):
    """A point with its score; `matched` counts the query's terms that it holds (lexical list only)."""

    id: bytes
    score: float
    matched: int = 0


class Figures(Struct, array_like=True, frozen=True):
    """The owner's own."""

    pid: int
    dimension: int
    points: int
    engine: str


class Reply(Struct, array_like=True, frozen=True):
    """`error` is `deadline`, or `rejected: …` with the engine's words."""

    number: int
    error: str | None = None
    dense: list[WireHit] = []
    lexical: list[WireHit] = []
    lexical_cosines: list[WireHit] = []
    ids: list[bytes] = []
    figures: Figures | None = None


def encode(message: Request | Reply) -> bytes:
    """One frame: four bytes of length, then msgpack."""
    body = msgspec.msgpack.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise FrameTooLarge(f"a frame of {len(body)} bytes, at most {MAX_FRAME_BYTES} are allowed")
    return _LENGTH.pack(len(body)) + body


def frame_length(head: bytes) -> int:
    """Length of the body that follows these four bytes."""
    length: int = _LENGTH.unpack(head)[0]
    if length > MAX_FRAME_BYTES:
        raise FrameTooLarge(f"a frame of {length} bytes, at most {MAX_FRAME_BYTES} are allowed")
    return length


HEAD_BYTES = _LENGTH.size
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode
