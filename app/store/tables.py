"""The tables of the metadata database (SQLAlchemy Core), one definition for SQLite and PostgreSQL."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

from app.store.types import JsonValue, UtcDateTime

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _partial_index(name: str, *columns: Column[object], where: str, unique: bool = False) -> Index:
    # Literal conditions: SQLite uses a partial index only when the query repeats its condition literally.
    condition = text(where)
    return Index(name, *columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


workspace = Table(
    "workspace",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    # Grows by one in every transaction that flips or deletes; its row lock makes commit order epoch order.
    Column("epoch", BigInteger, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

collection = Table(
    "collection",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("workspace_id", Uuid, ForeignKey("workspace.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("name_folded", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("deleted_at", UtcDateTime),
)
_partial_index(
    "uq_collection_live_name",
    collection.c.workspace_id,
    collection.c.name_folded,
    where="deleted_at IS NULL",
    unique=True,
)

document = Table(
    "document",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("workspace_id", Uuid, ForeignKey("workspace.id"), nullable=False),
    Column("collection_id", Uuid, ForeignKey("collection.id"), nullable=False, index=True),
    Column("source_name", Text, nullable=False),
    Column("source_name_folded", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("attributes", JsonValue, nullable=False),
    Column("scopes", JsonValue, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("deleted_at", UtcDateTime),
)
_partial_index(
    "uq_document_live_name",
    document.c.collection_id,
    document.c.source_name,
    where="deleted_at IS NULL",
    unique=True,
)
Index("ix_document_listing", document.c.workspace_id, document.c.created_at, document.c.id)

revision = Table(
    "revision",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("document_id", Uuid, ForeignKey("document.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("blob_key", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("media_type", Text, nullable=False),
    # Frozen at accept: a second run gives the same chunks.
    Column("chunking", JsonValue, nullable=False),
    Column("state", Text, nullable=False),
    # Epochs: the revision is what searches see while current_from <= epoch < current_until.
    Column("current_from", BigInteger),
    Column("current_until", BigInteger),
    Column("chunk_count", Integer, nullable=False),
    Column("error", JsonValue),
    Column("created_at", UtcDateTime, nullable=False),
    UniqueConstraint("document_id", "number"),
)
CURRENT = "current_from IS NOT NULL AND current_until IS NULL"
_partial_index("uq_revision_current", revision.c.document_id, where=CURRENT, unique=True)

chunk = Table(
    "chunk",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("revision_id", Uuid, ForeignKey("revision.id"), nullable=False),
    Column("document_id", Uuid, nullable=False),
    Column("chunk_index", Integer, nullable=False),
    # What is embedded is label + content; an edit changes the content only.
    Column("label", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("section_path", JsonValue, nullable=False),
    Column("section_depths", JsonValue, nullable=False),
    Column("spans", JsonValue, nullable=False),
    Column("heading_spans", JsonValue, nullable=False),
    Column("page", Integer),
    Column("weight", Integer, nullable=False),
    Column("strategy", Text, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("edited", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
    UniqueConstraint("revision_id", "chunk_index"),
)

generation = Table(
    "generation",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("embedder", Text, nullable=False),
    Column("model_key", Text, nullable=False),
    Column("dimension", Integer, nullable=False),
    Column("lexical_version", Integer, nullable=False),
    Column("average_length", Float, nullable=False),
    Column("index_name", Text, nullable=False, unique=True),
    Column("state", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)
_partial_index("uq_generation_active", generation.c.state, where="state = 'active'", unique=True)

revision_generation = Table(
    "revision_generation",
    metadata,
    Column("revision_id", Uuid, ForeignKey("revision.id"), primary_key=True),
    Column("generation_id", Uuid, ForeignKey("generation.id"), primary_key=True),
    Column("points", Integer, nullable=False),
    Column("verified_at", UtcDateTime, nullable=False),
)

# A job outlives its document by a little (it deletes it), so it has no foreign keys.
job = Table(
    "job",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("workspace_id", Uuid, nullable=False),
    Column("document_id", Uuid, nullable=False),
    Column("revision_id", Uuid),
    Column("dedupe_key", Text, nullable=False),
    Column("wanted", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    Column("priority", Integer, nullable=False),
    # `attempts` counts claims and fences writers; `failures` counts failed ones in a row without progress.
    Column("attempts", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("progressed", Boolean, nullable=False),
    Column("furthest", Integer, nullable=False),
    Column("run_after", UtcDateTime, nullable=False),
    Column("lease_until", UtcDateTime),
    Column("worker", Text),
    Column("progress", JsonValue),
    Column("error", JsonValue),
    Column("payload", JsonValue, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Index("ix_job_document_id", "document_id"),
)
LIVE = "state IN ('queued', 'running')"
RUNNING = "state = 'running'"
_partial_index("uq_job_running_document", job.c.document_id, where=RUNNING, unique=True)
_partial_index("uq_job_live_key", job.c.dedupe_key, where=LIVE, unique=True)
_partial_index("ix_job_live", job.c.priority, job.c.created_at, where=LIVE)
Index("ix_job_listing", job.c.workspace_id, job.c.created_at)

settings = Table(
    "settings",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("overrides", JsonValue, nullable=False),
    Column("version", Integer, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)
