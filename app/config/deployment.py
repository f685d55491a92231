"""Deployment settings: addresses, keys, ports. From the environment alone; a wrong one stops the start."""

from collections.abc import Mapping
from pathlib import Path

import platformdirs
from msgspec import Struct

from app.config.knobs import Surroundings, is_http_url
from app.config.secrets import Secret, without_credentials
from app.config.variables import Variables
from app.domain.vectors import EmbeddingModel

EMBEDDERS = ("local", "tei", "hash")
RERANKERS = ("local", "tei", "none")
DATABASE_SCHEMES = ("sqlite", "sqlite+aiosqlite", "postgresql", "postgresql+asyncpg")
BLOB_SCHEMES = ("file", "memory", "s3", "gs", "az", "azure", "abfs", "abfss")
ANONYMOUS = ("search",)
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("auto", "json", "console")


class Deployment(Struct, frozen=True, kw_only=True):
    """All settings of one installation. `qdrant_url` None means the embedded engine.

    `rerank_urls` are those that a settings row may name. Bytes are bytes, times are seconds.
    """

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 8000
    metrics_port: int | None = None
    database_url: str
    blob_url: str
    qdrant_url: str | None = None
    qdrant_api_key: Secret | None = None
    embedder: str = "local"
    reranker: str = "local"
    tei_embed_url: str | None = None
    tei_rerank_url: str | None = None
    tei_api_key: Secret | None = None
    rerank_urls: tuple[str, ...] = ()
    llm_url: str | None = None
    max_upload_bytes: int = 200_000_000
    max_search_timeout_s: float = 30.0
    model_threads: int = 2
    allow_anonymous: str | None = None
    log_level: str = "info"
    log_format: str = "auto"

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Deployment":
        """Raises ConfigurationError, naming the variable and what it may be."""
        read = Variables(environ)
        data_dir = read.path("KROSHKA_DATA", Path(platformdirs.user_data_path("kroshka", appauthor=False)))
        embedder = read.choice("EMBEDDER", EMBEDDERS, "local")
        rerank_url = read.url("TEI_RERANK_URL") or read.url("RAG_RERANK_URL")
        deployment = cls(
            data_dir=data_dir,
            host=read.text("KROSHKA_HOST") or "127.0.0.1",
            port=read.integer("KROSHKA_PORT", 8000, low=0, high=65_535),
            metrics_port=read.optional_integer("KROSHKA_METRICS_PORT", low=0, high=65_535),
            database_url=_database_url(read, data_dir),
            blob_url=read.address("BLOB_URL", BLOB_SCHEMES, (data_dir / "blobs").as_uri()),
            qdrant_url=read.url("QDRANT_URL"),
            qdrant_api_key=read.secret("QDRANT_API_KEY"),
            embedder=embedder,
            reranker=read.choice("RERANKER", RERANKERS, _default_reranker(embedder, rerank_url)),
            tei_embed_url=read.url("TEI_EMBED_URL"),
            tei_rerank_url=rerank_url,
            tei_api_key=read.secret("TEI_API_KEY"),
            rerank_urls=_rerank_urls(rerank_url, read),
            llm_url=read.url("LLM_URL"),
            max_upload_bytes=read.integer("MAX_UPLOAD_BYTES", 200_000_000, low=1, high=1 << 40),
            max_search_timeout_s=read.number("MAX_SEARCH_TIMEOUT", 30.0, low=0.1, high=600.0),
            model_threads=read.integer("KROSHKA_MODEL_THREADS", 2, low=1, high=64),
            allow_anonymous=read.optional_choice("KROSHKA_ALLOW_ANONYMOUS", ANONYMOUS),
            log_level=read.choice("KROSHKA_LOG_LEVEL", LOG_LEVELS, "info"),
            log_format=read.choice("KROSHKA_LOG_FORMAT", LOG_FORMATS, "auto"),
        )
        _check_upstreams(deployment, read)
        return deployment

    def __repr__(self) -> str:
        """Without the credentials that addresses may hold."""
        return f"Deployment({', '.join(f'{n}={_shown(getattr(self, n))}' for n in self.__struct_fields__)})"

    def surroundings(
        self,
        model: EmbeddingModel,
        *,
        chunk_strategies: tuple[str, ...] = ("structure_aware",),
        max_embedding_batch: int = 32,
    ) -> Surroundings:
        """What this deployment and the model say about the knobs' defaults and bounds."""
        return Surroundings(
            min_score=model.min_score,
            rerank_url=self.tei_rerank_url if self.reranker == "tei" else None,
            rerank_urls=self.rerank_urls,
            chunk_strategies=chunk_strategies,
            max_embedding_batch=max_embedding_batch,
            max_search_timeout_ms=int(self.max_search_timeout_s * 1000),
        )


def _database_url(read: Variables, data_dir: Path) -> str:
    """A database URL has no way to write a question mark of a path."""
    if not read.text("DATABASE_URL") and "?" in str(data_dir):
        raise read.refuse("KROSHKA_DATA", "a folder without a question mark in its path")
    return read.address("DATABASE_URL", DATABASE_SCHEMES, f"sqlite+aiosqlite:///{data_dir}/kroshka.db")


def _shown(value: object) -> str:
    return without_credentials(value) if isinstance(value, str) and "://" in value else str(value)


def _default_reranker(embedder: str, rerank_url: str | None) -> str:
    """Late interaction reads token vectors that only the local embedder makes."""
    if embedder == "local":
        return "local"
    return "tei" if embedder == "tei" and rerank_url else "none"


def _rerank_urls(rerank_url: str | None, read: Variables) -> tuple[str, ...]:
    """The allow-list for settings rows: `RAG_RERANK_URLS`, comma-separated, and the deployment's own."""
    listed = [text.strip() for text in read.text("RAG_RERANK_URLS").split(",") if text.strip()]
    for text in listed:
        if not is_http_url(text):
            raise read.refuse("RAG_RERANK_URLS", "http or https addresses, separated by commas")
    own = [url for url in (rerank_url, read.url("RAG_RERANK_URL")) if url is not None]
    return tuple(dict.fromkeys([*own, *listed]))


def _check_upstreams(deployment: Deployment, read: Variables) -> None:
    if deployment.embedder == "tei" and deployment.tei_embed_url is None:
        raise read.refuse("TEI_EMBED_URL", "an http or https address when EMBEDDER is tei")
    if deployment.reranker == "tei" and deployment.tei_rerank_url is None:
        raise read.refuse("TEI_RERANK_URL", "an http or https address when RERANKER is tei")
    if deployment.reranker == "local" and deployment.embedder != "local":
        raise read.refuse("RERANKER", f"tei or none when EMBEDDER is {deployment.embedder}")
