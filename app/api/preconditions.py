"""ETag and If-Match (RFC 9110) for things with a version number."""

import re

from app.domain.errors import InvalidInput, PreconditionFailed

TAG = re.compile(r'(?P<weak>W/)?"(?P<version>[^"]*)"')


def etag_of(version: int) -> str:
    return f'"{version}"'


def expected_version(if_match: str | None, current: int) -> int | None:
    """The version that a write must find; None when the caller does not care.

    Raises PreconditionFailed when no tag names the current version, InvalidInput when it is not a list of tags. A
    weak tag never matches; `*` asks for any version that is stored.
    """
    if if_match is None:
        return None
    tags = [text.strip() for text in if_match.split(",")]
    if tags == ["*"]:
        if current == 0:
            raise PreconditionFailed("*", "none")
        return current
    found = [TAG.fullmatch(text) for text in tags]
    if not all(found):
        raise InvalidInput("If-Match", 'must be entity tags such as "3", or *')
    if any(tag is not None and not tag["weak"] and tag["version"] == str(current) for tag in found):
        return current
    raise PreconditionFailed(if_match, etag_of(current))
