"""The retrieval knobs: their names, defaults and bounds as data, and the check that every layer goes through."""

import math
import re
from enum import StrEnum
from typing import NoReturn
from urllib.parse import urlsplit

from msgspec import Struct

from app.domain.errors import InvalidInput

SHOWN_VALUE_LENGTH = 60

Value = int | float | str | bool | None
"""What a knob can hold."""


class RagConfig(Struct, frozen=True, kw_only=True, rename="camel"):
    """Every knob's effective value. Times are in milliseconds, chunk sizes in weighted characters.

    `min_score` None means no cosine floor; `max_chunks_per_collection` None means no limit.
    """

    chunk_strategy: str = "structure_aware"
    chunk_size: int = 900
    chunk_overlap: int = 120
    embedding_batch: int = 8
    search_top_k: int = 8
    min_score: float | None = None
    rerank_enabled: bool = True
    rerank_top_k: int = 4
    rerank_url: str | None = None
    rerank_model: str = "bge-reranker-v2-m3"
    metadata_enrichment: bool = True
    query_min_length: int = 3
    query_max_length: int = 1000
    rrf_k: int = 60
    dense_weight: float = 1.0
    lexical_weight: float = 1.0
    rerank_timeout_ms: int = 1500
    search_timeout_ms: int = 5000
    limits_profile: str = "standard"
    max_chunks_per_document: int = 20_000
    max_chunks_per_collection: int | None = None
    channel_scopes_enabled: bool = True
    late_interaction: str = "auto"
    dynamic_documents_vector_selection: bool = True
    dynamic_documents_max_tokens: int = 50_000


class Profile(Struct, frozen=True):
    """The limits that a `limits_profile` stands for."""

    max_chunks_per_document: int
    max_chunks_per_collection: int | None


PROFILES = {"small": Profile(150, 1_000), "standard": Profile(20_000, None)}
"""From the lowest to the highest."""

PROFILE_LIMITS = ("max_chunks_per_document", "max_chunks_per_collection")


class Surroundings(Struct, frozen=True, kw_only=True):
    """What the deployment, its models and its registries decide about the knobs.

    `min_score` is the embedding model's own floor. `rerank_urls` are those that a settings row may name.
    """

    min_score: float | None = None
    rerank_url: str | None = None
    rerank_urls: tuple[str, ...] = ()
    chunk_strategies: tuple[str, ...] = ("structure_aware",)
    max_embedding_batch: int = 32
    max_search_timeout_ms: int = 30_000


class Kind(StrEnum):
    """What sort of value a knob takes."""

    INTEGER = "integer"
    NUMBER = "number"
    SWITCH = "switch"
    CHOICE = "choice"
    TEXT = "text"
    URL = "url"


class Knob(Struct, frozen=True, kw_only=True):
    """One knob: `low` and `high` are inclusive. A `ceiling` can only be lowered by a workspace's row.

    `reindex` says that a change does not reach what is already indexed. `only_false_disables` is the original
    clients' rule for one switch in the environment.
    """

    name: str
    env: str
    kind: Kind
    default: Value
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    nullable: bool = False
    ceiling: bool = False
    reindex: bool = False
    only_false_disables: bool = False

    @property
    def json_name(self) -> str:
        """The camelCase name in settings rows and in the API."""
        head, *rest = self.name.split("_")
        return head + "".join(part.title() for part in rest)

    @property
    def allowed(self) -> str:
        """The bounds in words, for error messages."""
        words = {
            Kind.INTEGER: f"an integer {self._range()}",
            Kind.NUMBER: f"a number {self._range()}",
            Kind.SWITCH: "true or false",
            Kind.CHOICE: f"one of {', '.join(self.choices)}",
            Kind.TEXT: "a text of 1 to 200 characters",
            Kind.URL: "one of the addresses that the deployment allows",
        }[self.kind]
        return f"{words} or null" if self.nullable else words

    @property
    def bound(self) -> str:
        """The bounds in short: `1..200`, or the allowed names."""
        if self.kind in (Kind.INTEGER, Kind.NUMBER):
            return f"{self.low:g}..{self.high:g}"
        return "|".join(self.choices) if self.kind is Kind.CHOICE else self.allowed

    def _range(self) -> str:
        return f"from {self.low:,g} to {self.high:,g}"


def knobs(surroundings: Surroundings) -> dict[str, Knob]:
    """All knobs by snake_case name, in the order of `RagConfig`."""
    around = surroundings
    number, integer, switch, choice = Kind.NUMBER, Kind.INTEGER, Kind.SWITCH, Kind.CHOICE
    max_ms = around.max_search_timeout_ms
    rows = (
        _knob("chunk_strategy", choice, "structure_aware", choices=around.chunk_strategies, reindex=True),
        _knob("chunk_size", integer, 900, low=100, high=8_000, reindex=True),
        _knob("chunk_overlap", integer, 120, low=0, high=4_000, reindex=True),
        _knob("embedding_batch", integer, min(8, around.max_embedding_batch), low=1, high=around.max_embedding_batch),
        _knob("search_top_k", integer, 8, env="RAG_SEARCH_TOPK", low=1, high=200),
        _knob("min_score", number, around.min_score, low=-1, high=1, nullable=True),
        _knob("rerank_enabled", switch, True),
        _knob("rerank_top_k", integer, 4, env="RAG_RERANK_TOPK", low=1, high=200),
        _knob("rerank_url", Kind.URL, around.rerank_url, choices=around.rerank_urls, nullable=True),
        _knob("rerank_model", Kind.TEXT, "bge-reranker-v2-m3"),
        _knob("metadata_enrichment", switch, True, reindex=True),
        _knob("query_min_length", integer, 3, low=0, high=1_000),
        _knob("query_max_length", integer, 1_000, low=1, high=10_000, ceiling=True),
        _knob("rrf_k", integer, 60, low=1, high=1_000),
        _knob("dense_weight", number, 1.0, low=0, high=100),
        _knob("lexical_weight", number, 1.0, low=0, high=100),
        _knob("rerank_timeout_ms", integer, min(1_500, max_ms), low=1, high=max_ms, ceiling=True),
        _knob("search_timeout_ms", integer, min(5_000, max_ms), low=1, high=max_ms, ceiling=True),
        _knob("limits_profile", choice, "standard", choices=tuple(PROFILES), ceiling=True),
        _knob("max_chunks_per_document", integer, 20_000, low=1, high=10_000_000, ceiling=True),
        _knob("max_chunks_per_collection", integer, None, low=1, high=1_000_000_000, nullable=True, ceiling=True),
        _knob("channel_scopes_enabled", switch, True),
        _knob("late_interaction", choice, "auto", choices=("auto", "on", "off")),
        _knob(
            "dynamic_documents_vector_selection",
            switch,
            True,
            env="IS_DYNAMIC_DOCUMENT_VECTOR_SELECTION_ENABLED",
            only_false_disables=True,
        ),
        _knob(
            "dynamic_documents_max_tokens",
            integer,
            50_000,
            env="DYNAMIC_DOCUMENT_VECTOR_SELECTION_MAX_TOKEN_COUNT",
            low=1,
            high=100_000_000,
        ),
    )
    return {knob.name: knob for knob in rows}


def _knob(
    name: str,
    kind: Kind,
    default: Value,
    *,
    env: str | None = None,
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
    nullable: bool = False,
    ceiling: bool = False,
    reindex: bool = False,
    only_false_disables: bool = False,
) -> Knob:
    return Knob(
        name=name,
        env=env or f"RAG_{name.upper()}",
        kind=kind,
        default=default,
        low=low,
        high=high,
        choices=choices,
        nullable=nullable,
        ceiling=ceiling,
        reindex=reindex,
        only_false_disables=only_false_disables,
    )


def check_value(knob: Knob, value: object) -> Value:
    """The value as the knob takes it. Raises InvalidInput with the knob, the value and the bound."""
    if value is None and knob.nullable:
        return None
    if knob.kind is Kind.SWITCH and isinstance(value, bool):
        return value
    if knob.kind is Kind.INTEGER and isinstance(value, int) and not isinstance(value, bool):
        return _within(knob, value)
    if knob.kind is Kind.NUMBER and isinstance(value, int | float) and not isinstance(value, bool):
        return _within(knob, value)
    if knob.kind in (Kind.CHOICE, Kind.TEXT, Kind.URL) and isinstance(value, str):
        return _check_text(knob, value)
    return _refuse(knob, value)


def _within(knob: Knob, value: int | float) -> int | float:
    if not knob.low <= value <= knob.high:  # also refuses NaN
        _refuse(knob, value)
    return float(value) if knob.kind is Kind.NUMBER else value


def _check_text(knob: Knob, value: str) -> str:
    printable = 0 < len(value.strip()) <= 200 and value.isprintable()
    good = printable if knob.kind is Kind.TEXT else value in knob.choices
    return value if good else _refuse(knob, value)


def parse_environment(knob: Knob, text: str) -> Value:
    """A knob's value from an environment variable. Raises InvalidInput with the variable's bound."""
    text = text.strip()
    if knob.only_false_disables:
        return text != "false"
    if knob.kind is Kind.URL:
        return text if is_http_url(text) else _refuse(knob, text)  # the environment is the allow-list's own source
    if knob.nullable and text.lower() in ("null", "none"):
        return None
    return check_value(knob, _from_text(knob, text))


def is_http_url(text: str) -> bool:
    """An absolute http or https address with a host."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


SWITCHES = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def _from_text(knob: Knob, text: str) -> object:
    if knob.kind is Kind.SWITCH:
        return SWITCHES.get(text.lower(), text)
    if knob.kind is Kind.INTEGER:
        return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else text
    if knob.kind is Kind.NUMBER:
        return float(text) if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?", text) else text
    return text


def _refuse(knob: Knob, value: object) -> NoReturn:
    """An address is not repeated: it may hold credentials."""
    shown = "the address" if knob.kind is Kind.URL else _shown(value)
    raise InvalidInput(f"/{knob.json_name}", f"{shown} is not allowed: {knob.allowed}", limit=knob.bound)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_VALUE_LENGTH else f"{text[:SHOWN_VALUE_LENGTH]}…"
