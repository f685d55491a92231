"""A metadata database for tests, with the first workspace, collection and generation in it."""

import importlib.util
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from msgspec import Struct
from sqlalchemy import column, func, select, table, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.documents import (
    DEFAULT_WORKSPACE,
    Accepted,
    Chunk,
    ChunkingOptions,
    Collection,
    Generation,
    NewDocument,
)
from app.domain.jobs import Lease
from app.store.catalog import SqlCatalog
from app.store.database import Database
from app.store.engine import parse_url, writer_engine
from app.store.generations import SqlGenerations
from app.store.jobs import SqlJobQueue
from app.store.revisions import SqlRevisionStore
from app.store.search_catalog import SqlSearchCatalog

POSTGRES_VARIABLE = "KROSHKA_TEST_POSTGRES_URL"
DATABASES = ("sqlite", "postgresql")


def database_url(kind: str, folder: Path) -> str:
    """A file in `folder`, or the server that KROSHKA_TEST_POSTGRES_URL names; without it the test is skipped."""
    if kind == "sqlite":
        return f"sqlite:///{folder}/kroshka.db"
    url = os.environ.get(POSTGRES_VARIABLE)
    if url is None:
        pytest.skip(f"{POSTGRES_VARIABLE} is not set")
    if importlib.util.find_spec("asyncpg") is None:
        pytest.skip("asyncpg is not installed")
    return url


class World(Struct, frozen=True, kw_only=True):
    """The adapters of one database."""

    database: Database
    catalog: SqlCatalog
    queue: SqlJobQueue
    revisions: SqlRevisionStore
    search: SqlSearchCatalog
    collection: Collection
    generation: Generation

    def upload(
        self, name: str = "A.md", sha: str = "a", *, collection_id: UUID | None = None, **fields: Any
    ) -> NewDocument:
        """An upload whose bytes are told apart by `sha`."""
        known: dict[str, Any] = {
            "workspace_id": DEFAULT_WORKSPACE,
            "collection_id": collection_id or self.collection.id,
            "revision_id": uuid4(),
            "source_name": name,
            "media_type": "text/markdown",
            "sha256": sha,
            "size_bytes": 100,
            "chunking": ChunkingOptions(),
        }
        return NewDocument(**(known | fields))

    async def accept(self, name: str = "A.md", sha: str = "a", **fields: Any) -> Accepted:
        """`upload`, accepted."""
        return await self.catalog.accept(self.upload(name, sha, **fields))

    async def claim(self, worker: str = "w1") -> Lease:
        """The next job, which must be there."""
        lease = await self.queue.claim(worker)
        assert lease is not None, "no job is due"
        return lease

    async def index(self, lease: Lease, texts: tuple[str, ...] = ("one", "two")) -> str:
        """What the pipeline does to the database for a claimed ingest: rows, verification, flip."""
        revision = await self.revisions.revision(lease.revision_id or uuid4())
        assert revision is not None
        await self.revisions.replace_chunks(lease, revision, chunks(*texts))
        await self.revisions.record_verified(lease, revision.id, self.generation.id, len(texts))
        return await self.revisions.flip(lease, revision, purge_after=timedelta())

    async def indexed(self, name: str = "A.md", sha: str = "a", texts: tuple[str, ...] = ("one", "two")) -> Accepted:
        """A document that searches see."""
        accepted = await self.accept(name, sha)
        assert await self.index(await self.claim(), texts) == "flipped"
        return accepted

    async def execute(self, sql: str, **parameters: object) -> None:
        """SQL behind the adapters' backs."""

        async def run(connection: AsyncConnection) -> None:
            await connection.execute(text(sql), parameters)

        await self.database.write(run)

    async def let_leases_expire(self) -> None:
        """As if the workers had been silent for a long time."""
        await self.execute("UPDATE job SET lease_until = '2001-01-01 00:00:00.000000' WHERE state = 'running'")

    async def make_due(self) -> None:
        """As if the delay of every waiting job were over."""
        await self.execute("UPDATE job SET run_after = '2001-01-01 00:00:00.000000' WHERE state = 'queued'")

    async def count(self, name: str) -> int:
        """Rows of a table."""
        rows = await self.database.fetch(select(func.count(column("id"))).select_from(table(name, column("id"))))
        return int(rows[0][0])


def chunks(*texts: str) -> list[Chunk]:
    """Chunks with these contents under one section, each 10 characters of the source apart."""
    label = "[Section: S]\n\n"
    return [
        Chunk(
            index=place,
            text=label + content,
            content_start=len(label),
            section_path=("Title", "S"),
            section_depths=(1, 3),
            spans=((10 * place, 10 * place + len(content)),),
            weight=len(label) + len(content),
        )
        for place, content in enumerate(texts)
    ]


@asynccontextmanager
async def open_world(url: str, *, lease_s: float = 30.0, write_timeout_s: float = 10.0) -> AsyncIterator[World]:
    """A fresh database (a server's tables are dropped first)."""
    if url.startswith("postgresql"):
        await _empty_server(url)
    async with reopened_world(url, lease_s=lease_s, write_timeout_s=write_timeout_s) as world:
        yield world


@asynccontextmanager
async def reopened_world(url: str, *, lease_s: float = 30.0, write_timeout_s: float = 10.0) -> AsyncIterator[World]:
    """The database as it is, as another process would open it."""
    database = await Database.open(url)
    try:
        catalog = SqlCatalog(database=database)
        await catalog.ensure_workspace(DEFAULT_WORKSPACE, "default")
        generation = await SqlGenerations(database=database).ensure_generation(
            embedder="hash", model_key="local-hash-ngram@v1/256", dimension=256, lexical_version=1, average_length=60.0
        )
        collection = await catalog.find_collection(DEFAULT_WORKSPACE, "Docs")
        yield World(
            database=database,
            catalog=catalog,
            queue=SqlJobQueue(database=database, lease_s=lease_s, write_timeout_s=write_timeout_s),
            revisions=SqlRevisionStore(database=database, lease_s=lease_s),
            search=SqlSearchCatalog(database=database),
            collection=collection or await catalog.create_collection(DEFAULT_WORKSPACE, "Docs"),
            generation=generation,
        )
    finally:
        await database.aclose()


async def _empty_server(url: str) -> None:
    engine = writer_engine(parse_url(url))
    async with engine.begin() as connection:
        await connection.execute(text("DROP SCHEMA public CASCADE"))
        await connection.execute(text("CREATE SCHEMA public"))
    await engine.dispose()
