"""The first tables"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from app.store.types import JsonValue, UtcDateTime

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "generation",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("embedder", sa.Text(), nullable=False),
        sa.Column("model_key", sa.Text(), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("lexical_version", sa.Integer(), nullable=False),
        sa.Column("average_length", sa.Float(), nullable=False),
        sa.Column("index_name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_generation")),
        sa.UniqueConstraint("index_name", name=op.f("uq_generation_index_name")),
    )
    op.create_index(
        "uq_generation_active",
        "generation",
        ["state"],
        unique=True,
        sqlite_where=sa.text("state = 'active'"),
        postgresql_where=sa.text("state = 'active'"),
    )

    op.create_table(
        "job",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("revision_id", sa.Uuid(), nullable=True),
        sa.Column("dedupe_key", sa.Text(), nullable=False),
        sa.Column("wanted", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("progressed", sa.Boolean(), nullable=False),
        sa.Column("furthest", sa.Integer(), nullable=False),
        sa.Column("run_after", UtcDateTime(), nullable=False),
        sa.Column("lease_until", UtcDateTime(), nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("progress", JsonValue, nullable=True),
        sa.Column("error", JsonValue, nullable=True),
        sa.Column("payload", JsonValue, nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
    )
    op.create_index("ix_job_document_id", "job", ["document_id"], unique=False)
    op.create_index("ix_job_listing", "job", ["workspace_id", "created_at"], unique=False)
    op.create_index(
        "ix_job_live",
        "job",
        ["priority", "created_at"],
        unique=False,
        sqlite_where=sa.text("state IN ('queued', 'running')"),
        postgresql_where=sa.text("state IN ('queued', 'running')"),
    )
    op.create_index(
        "uq_job_live_key",
        "job",
        ["dedupe_key"],
        unique=True,
        sqlite_where=sa.text("state IN ('queued', 'running')"),
        postgresql_where=sa.text("state IN ('queued', 'running')"),
    )
    op.create_index(
        "uq_job_running_document",
        "job",
        ["document_id"],
        unique=True,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )

    op.create_table(
        "settings",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("overrides", JsonValue, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("scope", name=op.f("pk_settings")),
    )
    op.create_table(
        "workspace",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace")),
    )
    op.create_table(
        "collection",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_folded", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("deleted_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"], name=op.f("fk_collection_workspace_id_workspace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_collection")),
    )
    op.create_index(
        "uq_collection_live_name",
        "collection",
        ["workspace_id", "name_folded"],
        unique=True,
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )

    op.create_table(
        "document",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("collection_id", sa.Uuid(), nullable=False),
        sa.Column("source_name", sa.Text(), nullable=False),
        sa.Column("source_name_folded", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("attributes", JsonValue, nullable=False),
        sa.Column("scopes", JsonValue, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("deleted_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collection.id"], name=op.f("fk_document_collection_id_collection")
        ),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"], name=op.f("fk_document_workspace_id_workspace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_document")),
    )
    op.create_index(op.f("ix_document_collection_id"), "document", ["collection_id"], unique=False)
    op.create_index("ix_document_listing", "document", ["workspace_id", "created_at", "id"], unique=False)
    op.create_index(
        "uq_document_live_name",
        "document",
        ["collection_id", "source_name"],
        unique=True,
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )

    op.create_table(
        "revision",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("blob_key", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("chunking", JsonValue, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("current_from", sa.BigInteger(), nullable=True),
        sa.Column("current_until", sa.BigInteger(), nullable=True),
        sa.Column("chunk_count", sa.Integer(), nullable=False),
        sa.Column("error", JsonValue, nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["document_id"], ["document.id"], name=op.f("fk_revision_document_id_document")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_revision")),
        sa.UniqueConstraint("document_id", "number", name=op.f("uq_revision_document_id_number")),
    )
    op.create_index(
        "uq_revision_current",
        "revision",
        ["document_id"],
        unique=True,
        sqlite_where=sa.text("current_from IS NOT NULL AND current_until IS NULL"),
        postgresql_where=sa.text("current_from IS NOT NULL AND current_until IS NULL"),
    )

    op.create_table(
        "chunk",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("revision_id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("chunk_index", sa.Integer(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("section_path", JsonValue, nullable=False),
        sa.Column("section_depths", JsonValue, nullable=False),
        sa.Column("spans", JsonValue, nullable=False),
        sa.Column("heading_spans", JsonValue, nullable=False),
        sa.Column("page", sa.Integer(), nullable=True),
        sa.Column("weight", sa.Integer(), nullable=False),
        sa.Column("strategy", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("edited", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["revision_id"], ["revision.id"], name=op.f("fk_chunk_revision_id_revision")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chunk")),
        sa.UniqueConstraint("revision_id", "chunk_index", name=op.f("uq_chunk_revision_id_chunk_index")),
    )
    op.create_table(
        "revision_generation",
        sa.Column("revision_id", sa.Uuid(), nullable=False),
        sa.Column("generation_id", sa.Uuid(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("verified_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["generation_id"], ["generation.id"], name=op.f("fk_revision_generation_generation_id_generation")
        ),
        sa.ForeignKeyConstraint(
            ["revision_id"], ["revision.id"], name=op.f("fk_revision_generation_revision_id_revision")
        ),
        sa.PrimaryKeyConstraint("revision_id", "generation_id", name=op.f("pk_revision_generation")),
    )


def downgrade() -> None:
    for table in (
        "revision_generation",
        "chunk",
        "revision",
        "document",
        "collection",
        "workspace",
        "settings",
        "job",
        "generation",
    ):
        op.drop_table(table)
