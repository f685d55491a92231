"""Who may come in while there is no key: programs of this machine, and nobody through a browser or a proxy."""

import ipaddress
import re
from urllib.parse import urlsplit

from msgspec import Struct

from app.api.asgi import Scope, header, header_values

PROXY_HEADERS = (b"forwarded", b"via")
PROXY_PREFIX = b"x-forwarded-"
HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::[0-9]{1,5})?")

NOBODY, SEARCH, WRITE = "nobody", "search", "write"
SCOPES_BY_RANK = (NOBODY, SEARCH, WRITE)


class Refusal(Struct, frozen=True, kw_only=True):
    """Why a request may not come in. `reason` is a word of a closed set."""

    reason: str
    message: str


class KeylessAccess(Struct, frozen=True, kw_only=True):
    """The rule without keys. `anonymous_search` lets everybody else search (KROSHKA_ALLOW_ANONYMOUS=search)."""

    anonymous_search: bool = False

    def scope_of(self, scope: Scope) -> str | Refusal:
        """`write` for a program of this machine, `search` for others where that is allowed, else the refusal."""
        refusal = refusal_of(scope)
        if refusal is None:
            return WRITE
        return SEARCH if self.anonymous_search else refusal


def may(granted: str, needed: str) -> bool:
    """Every scope holds the weaker ones; one that nobody has without a key (admin, platform) is never granted."""
    return needed in SCOPES_BY_RANK and SCOPES_BY_RANK.index(needed) <= SCOPES_BY_RANK.index(granted)


def refusal_of(scope: Scope) -> Refusal | None:
    """What tells that a request does not come from a program of this machine; None when nothing does."""
    if any(name in PROXY_HEADERS or name.startswith(PROXY_PREFIX) for name, _ in scope["headers"]):
        return Refusal(reason="proxy", message="without an API key no request that came through a proxy is answered")
    if not _is_local_peer(scope) or not _is_local_host(scope):
        return Refusal(reason="host", message="without an API key only localhost is answered")
    if not _is_local_origin(scope):
        return Refusal(reason="origin", message="without an API key no page of another site is answered")
    return None


def _is_local_peer(scope: Scope) -> bool:
    client = scope.get("client")
    try:
        return client is not None and ipaddress.ip_address(client[0]).is_loopback
    except ValueError:
        return False


def _is_local_host(scope: Scope) -> bool:
    hosts = header_values(scope, b"host")
    return len(hosts) == 1 and is_localhost_name(hosts[0])


def is_localhost_name(host: str) -> bool:
    """`localhost`, a name under it, or a loopback address; with or without a port."""
    found = HOST.fullmatch(host.strip())
    if found is None:
        return False
    name = found["name"].strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _is_local_origin(scope: Scope) -> bool:
    """Any page of the web can make a browser post to localhost; it cannot hide where it comes from."""
    origins = header_values(scope, b"origin")
    if origins:
        return len(origins) == 1 and _is_local_address(origins[0])
    came_by_link = header(scope, b"sec-fetch-mode") == "navigate" and scope["method"] in ("GET", "HEAD")
    return header(scope, b"sec-fetch-site") != "cross-site" or came_by_link


def _is_local_address(origin: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and is_localhost_name(parts.netloc)
