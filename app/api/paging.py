"""The parameters that lists share."""

from typing import Annotated

from litestar.params import QueryParameter

from app.domain.errors import InvalidInput

MAX_LIMIT = 200

Limit = Annotated[int, QueryParameter(ge=1, le=MAX_LIMIT, description="How many items, 1 to 200.")]
Cursor = Annotated[str | None, QueryParameter(max_length=500, description="`nextCursor` of the page before.")]


def offset_of(cursor: str | None) -> int:
    """The place that a cursor of a list without an order of its own stands for. Raises InvalidInput."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 9):
        raise InvalidInput("cursor", "is not one that this list gave")
    return int(cursor)
