"""The requests that rerankers understand, in the order in which they are tried, and what a server refuses them with."""

from collections.abc import Sequence

import msgspec

from app.clients.http import Refusal, json_object

_OTHER_ROUTE = frozenset({404, 405})
_SCHEMA = frozenset({400, 422})
_SCHEMA_WORDS = ("missing field", "unknown field", "deserialize", "field required", "documents", "texts", "return_")


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """`field` holds the texts. `name` is the label in answers and metrics."""

    name: str
    path: str
    field: str


TEI = Dialect(name="tei", path="/rerank", field="texts")
TEI_V1 = Dialect(name="tei-v1", path="/v1/rerank", field="documents")
JINA = Dialect(name="jina", path="/rerank", field="documents")
COHERE = Dialect(name="cohere", path="/v2/rerank", field="documents")

DIALECTS = (TEI, TEI_V1, JINA, COHERE)
"""TEI and llama.cpp; vLLM, LocalAI, Jina, Cohere v1 and others; Infinity; Cohere v2."""


def request_body(dialect: Dialect, query: str, texts: Sequence[str], model: str | None) -> bytes:
    """All texts are asked for: a `top_n` below their number would leave scores out, and 0 means different things.

    Never `texts` and `documents` in one body: llama.cpp would answer in another form, at twice the size.
    """
    fields: dict[str, object] = {"query": query, dialect.field: texts}
    if model is not None:
        fields["model"] = model
    if dialect is TEI:
        fields |= {"raw_scores": False, "truncate": True}
    else:
        fields["top_n"] = len(texts)
    if dialect in (TEI_V1, JINA):
        fields["return_documents"] = False
    return msgspec.json.encode(fields)


def is_dialect_signal(refusal: Refusal) -> bool:
    """Whether the server speaks, but not so: no such route, or fields that it does not know.

    A 422 with TEI's own error type is about the texts. Keys, sizes, overload and time-outs are never about the dialect.
    """
    if refusal.status in _OTHER_ROUTE:
        return True
    if refusal.status not in _SCHEMA or refusal.kind:
        return False
    fields = json_object(refusal.body.encode("utf-8", "replace"))
    if isinstance(fields.get("detail"), list):  # FastAPI
        return True
    return any(words in refusal.body.lower() for words in _SCHEMA_WORDS)
