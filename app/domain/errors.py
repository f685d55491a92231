"""Every error of the service, in one tree.

    KroshkaError
    ├── PermanentError            trying again cannot help
    │   ├── InvalidInput          the caller's data: names the field and the limit
    │   │   ├── UnknownField
    │   │   └── LimitExceeded
    │   ├── NotFound              CollectionNotFound, DocumentNotFound, JobNotFound, WorkspaceNotFound
    │   ├── Conflict              NameTaken, PreconditionFailed
    │   ├── DocumentError         stored on the document: code and a sentence for a person
    │   └── ConfigurationError    the deployment's own settings
    └── TransientError            may pass: retried by jobs, answered with Retry-After
        ├── Unavailable           EmbedderUnavailable, RerankerUnavailable, IndexUnavailable, StoreUnavailable
        ├── DeadlineExceeded
        └── LeaseLost             another worker holds the job now

HTTP statuses are given to these classes in one place, app/api/problems.py.
"""

from uuid import UUID


class KroshkaError(Exception):
    """Base of all errors that the service raises on purpose."""

    code = "error"


class PermanentError(KroshkaError):
    """Trying again cannot help."""

    code = "permanent"


class TransientError(KroshkaError):
    """May pass by itself. `retry_after_s` is a hint for the caller, in seconds."""

    code = "transient"
    retry_after_s: float = 1.0


class InvalidInput(PermanentError):
    """`pointer` is a JSON pointer (or a parameter's name); `limit` the bound that was broken, if there is one."""

    code = "invalid_input"

    def __init__(self, pointer: str, message: str, *, limit: float | int | str | None = None) -> None:
        super().__init__(f"{pointer}: {message}")
        self.pointer, self.message, self.limit = pointer, message, limit


class UnknownField(InvalidInput):
    """A name that nobody knows: refused rather than ignored."""

    code = "unknown_field"

    def __init__(self, pointer: str, *, known: tuple[str, ...] = ()) -> None:
        hint = f"; known: {', '.join(known)}" if known else ""
        super().__init__(pointer, f"unknown field{hint}")


class LimitExceeded(InvalidInput):
    """A number over its limit, with both numbers in the message."""

    code = "limit_exceeded"

    def __init__(self, pointer: str, *, actual: int, limit: int, unit: str) -> None:
        super().__init__(pointer, f"{actual} {unit}, at most {limit} are allowed", limit=limit)
        self.actual, self.unit = actual, unit


class NotFound(PermanentError):
    """`kind` and `key` of what is not there (or may not be seen)."""

    code = "not_found"
    kind = "object"

    def __init__(self, key: UUID | str) -> None:
        super().__init__(f"{self.kind} {key} was not found")
        self.key = key


class WorkspaceNotFound(NotFound):
    """No such workspace."""

    kind = "workspace"


class CollectionNotFound(NotFound):
    """No such collection in this workspace."""

    kind = "collection"


class DocumentNotFound(NotFound):
    """No such document in this workspace."""

    kind = "document"


class JobNotFound(NotFound):
    """No such job in this workspace."""

    kind = "job"


class Conflict(PermanentError):
    """The state of the object does not allow this now."""

    code = "conflict"


class NameTaken(Conflict):
    """A name that must be unique in its workspace is in use."""

    code = "name_taken"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"a {kind} named {name!r} exists already")
        self.kind, self.name = kind, name


class PreconditionFailed(Conflict):
    """`If-Match` names another version than the one that is stored."""

    code = "precondition_failed"

    def __init__(self, expected: str, actual: str) -> None:
        super().__init__(f"the stored version is {actual}, not {expected}: read it again")
        self.expected, self.actual = expected, actual


class DocumentError(PermanentError):
    """A document that cannot be indexed. The message is one sentence for a person and is stored on the document."""

    code = "document_error"


class DocumentUnreadable(DocumentError):
    """Broken, or not of the format it claims to be."""

    code = "document_unreadable"


class UnsupportedFormat(DocumentError):
    """No parser for this kind of file."""

    code = "unsupported_format"

    def __init__(self, media_type: str, *, supported: tuple[str, ...]) -> None:
        super().__init__(f"files of type {media_type} cannot be read; supported: {', '.join(supported)}")
        self.media_type, self.supported = media_type, supported


class NoTextFound(DocumentError):
    """The file holds no text."""

    code = "no_text_found"


class TooManyChunks(DocumentError):
    """Over `max_chunks_per_document` or `max_chunks_per_collection`; both numbers are in the message."""

    code = "too_many_chunks"

    def __init__(self, *, actual: int, limit: int, scope: str) -> None:
        super().__init__(f"{actual} chunks, at most {limit} are allowed per {scope}")
        self.actual, self.limit, self.scope = actual, limit, scope


class VerificationFailed(DocumentError):
    """The index does not hold what was written, even after writing again."""

    code = "verification_failed"

    def __init__(self, *, expected: int, actual: int) -> None:
        super().__init__(f"the index holds {actual} of the document's {expected} chunks after two attempts")
        self.expected, self.actual = expected, actual


class ConfigurationError(PermanentError):
    """A deployment setting that cannot work. Names the setting."""

    code = "configuration_error"


class ModelUnavailable(ConfigurationError):
    """Model weights are missing or are not the expected bytes. The service stops: nothing takes the model's place."""

    code = "model_unavailable"


class ModelMismatch(ConfigurationError):
    """The index was built with another model or dimension."""

    code = "model_mismatch"


class Unavailable(TransientError):
    """A helper does not answer. `cause` is one of the closed set in spec/metrics (timeout, refused, reset, …)."""

    code = "unavailable"

    def __init__(self, message: str, *, cause: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.cause, self.retry_after_s = cause, retry_after_s


class EmbedderUnavailable(Unavailable):
    """The embedder did not give vectors."""

    code = "embedder_unavailable"


class RerankerUnavailable(Unavailable):
    """The reranker did not give scores."""

    code = "reranker_unavailable"


class IndexUnavailable(Unavailable):
    """The vector index cannot be reached."""

    code = "index_unavailable"


class StoreUnavailable(Unavailable):
    """The metadata database or the blob store cannot be reached."""

    code = "store_unavailable"


class UpstreamRefused(PermanentError):
    """An upstream refused the request in a way that will not change (4xx, wrong kind of model)."""

    code = "upstream_refused"

    def __init__(self, message: str, *, cause: str) -> None:
        super().__init__(message)
        self.cause = cause


class DeadlineExceeded(TransientError):
    """The time that the caller gave is over."""

    code = "deadline_exceeded"


class LeaseLost(TransientError):
    """Another worker took the job over; this one must stop without writing anything more."""

    code = "lease_lost"


class JobCancelled(PermanentError):
    """Somebody asked for the job to stop; seen at the next batch."""

    code = "job_cancelled"
