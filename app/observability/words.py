"""The closed sets that metric labels are taken from: anything else is counted as `other`."""

DOORS = frozenset({"http", "tool", "mcp", "context", "compat", "page"})
OUTCOMES = frozenset(
    {
        "hits",
        "no_results",
        "no_query",
        "query_too_short",
        "no_documents",
        "no_workspace",
        "no_model",
        "memory_critical",
        "unavailable",
        "error",
    }
)
STAGES = frozenset({"gate", "config", "embed", "search", "visible", "fuse", "rerank", "render"})
CAUSES = frozenset(
    {
        "timeout",
        "refused",
        "reset",
        "status_4xx",
        "status_5xx",
        "overloaded",
        "bad_answer",
        "circuit_open",
        "disabled",
        "missing",
    }
)
UPSTREAMS = frozenset({"embed", "rerank", "index", "llm", "blob"})
DIALECTS = frozenset(
    {
        "tei",
        "tei-v1",
        "cohere",
        "jina",
        "openai",
        "local",
        "hash",
        "late_interaction",
        "late-interaction",
        "qdrant",
        "edge",
        "file",
        "s3",
    }
)
CACHE_RESULTS = frozenset({"hit", "shared", "miss"})
CONFIG_LAYERS = frozenset({"default", "environment", "platform", "workspace"})
CONFIG_RESULTS = frozenset({"hit", "loaded", "stale", "invalid_knob"})
LISTS = frozenset({"dense", "lexical", "both"})
JOB_KINDS = frozenset({"ingest", "purge", "delete"})
JOB_STATES = frozenset({"queued", "running", "done", "dead", "cancelled"})
JOB_STAGES = frozenset({"parse", "chunk", "embed", "index", "verify", "flip", "purge", "delete"})
INGEST_RESULTS = frozenset({"indexed", "failed", "cancelled", "unchanged"})
FORMATS = frozenset(
    {
        "markdown",
        "text",
        "html",
        "pdf",
        "docx",
        "pptx",
        "xlsx",
        "xls",
        "csv",
        "json",
        "xml",
        "epub",
        "rtf",
        "odt",
        "eml",
    }
)
GENERATION_STATES = frozenset({"active", "building", "standby"})
REFUSALS = frozenset({"host", "origin", "proxy", "scope"})
LIMITS = frozenset({"body", "rate", "quota"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"


def closed(value: str, known: frozenset[str]) -> str:
    """The value when it is known, else `other`: labels never grow with what people send."""
    return value if value in known else OTHER
