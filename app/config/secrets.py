"""Secrets that cannot be printed by accident."""

from typing import final
from urllib.parse import urlsplit, urlunsplit

HIDDEN = "***"


@final
class Secret:
    """Text that shows itself only to who calls `reveal`. Not a struct: it must not be encoded into an answer either."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __repr__(self) -> str:
        return HIDDEN


def without_credentials(address: str) -> str:
    """The address with the user, password and query replaced, for logs."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return HIDDEN
    host = parts.netloc.rpartition("@")[2]
    netloc = f"{HIDDEN}@{host}" if "@" in parts.netloc else host
    return urlunsplit((parts.scheme, netloc, parts.path, HIDDEN if parts.query else "", ""))
