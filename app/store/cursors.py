"""Opaque cursors of keyset pagination, and the bounds of `limit`."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TypeVar

import msgspec

from app.domain.errors import InvalidInput

MAX_LIMIT = 200
Key = TypeVar("Key")


def encode_cursor(key: tuple[object, ...]) -> str:
    """The last item's sort key, as text that callers hand back unread."""
    return urlsafe_b64encode(msgspec.json.encode(key)).decode().rstrip("=")


def decode_cursor(cursor: str, kind: type[Key]) -> Key:
    """The key again. Raises InvalidInput for text that is none of our cursors."""
    try:
        return msgspec.json.decode(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), type=kind)
    except (ValueError, msgspec.MsgspecError) as error:
        raise InvalidInput("cursor", "not a cursor of this listing") from error


def checked_limit(limit: int) -> int:
    """Raises InvalidInput outside 1 to 200."""
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"{limit} is not between 1 and {MAX_LIMIT}", limit=MAX_LIMIT)
    return limit
