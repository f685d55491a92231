"""Errors that only the HTTP surface has."""

from typing import Any

from app.domain.errors import InvalidInput, PermanentError, TransientError


class MalformedBody(PermanentError):
    """A body that is not what its content type says."""

    code = "malformed_body"


class BodyTooLarge(InvalidInput):
    """A body over the route's limit, which is in bytes."""

    code = "limit_exceeded"

    def __init__(self, *, limit: int) -> None:
        super().__init__("", f"the body is larger than {limit} bytes", limit=limit)


class UnsupportedBody(PermanentError):
    """A content type that this route does not take."""

    code = "unsupported_media_type"

    def __init__(self, *, expected: str) -> None:
        super().__init__(f"the body's Content-Type must be {expected}")


class MissingRoute(PermanentError):
    """Nothing is served under this address."""

    code = "not_found"


class Forbidden(PermanentError):
    """A request that may not come in, or not do this. `reason` is a word of a closed set, for metrics."""

    code = "forbidden"

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class LateField(InvalidInput):
    """A form field that came when files had been stored without it; `accepted` is what became of those."""

    code = "late_field"

    def __init__(self, name: str, *, accepted: tuple[Any, ...]) -> None:
        super().__init__(f"/{name}", "must come before the first file; the files before it were taken without it")
        self.accepted = accepted


class ClientGone(PermanentError):
    """The caller closed the connection: nobody reads the answer, and it is no error of ours."""

    code = "client_gone"


class NotReady(TransientError):
    """The service is starting."""

    code = "starting"
