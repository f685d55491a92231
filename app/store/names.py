"""Names of collections and documents: checked, normalised, and compared without regard to case."""

import unicodedata

from app.domain.errors import InvalidInput, LimitExceeded

MAX_COLLECTION_NAME = 200
MAX_SOURCE_NAME = 1_000


def checked_name(pointer: str, name: str, *, limit: int) -> str:
    """NFC, without white space at its ends. Raises InvalidInput or LimitExceeded (in characters)."""
    clean = unicodedata.normalize("NFC", name).strip()
    if not clean:
        raise InvalidInput(pointer, "a name is needed")
    if len(clean) > limit:
        raise LimitExceeded(pointer, actual=len(clean), limit=limit, unit="characters")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in clean):
        raise InvalidInput(pointer, "control characters are not allowed in a name")
    return clean


def fold_name(name: str) -> str:
    """The form in which names are compared and searched, in any script: `Straße` and `STRASSE` are one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def like_pattern(part: str) -> str:
    """A LIKE pattern (escape character backslash) for folded names that contain this text literally."""
    escaped = fold_name(part).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
