"""The ingestion pipelines on a real database, with an exact index and embedder, and a way to make any step fail."""

import asyncio
import hashlib
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np
from msgspec import Struct, structs

from app.clients.hash_embedder import DIMENSION, HashEmbedder
from app.config.knobs import RagConfig
from app.config.layers import ResolvedConfig
from app.domain.deadline import Deadline
from app.domain.documents import DEFAULT_WORKSPACE, Accepted, Chunk, ChunkingOptions
from app.domain.index import IndexFilter
from app.domain.jobs import JobKind, Lease
from app.domain.vectors import PassageVectors, SparseVector, TokenMatrix
from app.ingestion.filling import IndexFiller
from app.ingestion.pipeline import IngestionPipeline
from app.ingestion.removal import DeletePipeline, PurgePipeline, Sweeper
from app.ingestion.seams import IngestReport
from app.ingestion.uploads import Uploads
from tests.support.store import World
from tests.support.vector_index import MemoryVectorIndex


class MemoryBlobs:
    """Originals in a dict."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    async def put(self, key: str, chunks: AsyncIterator[bytes]) -> int:
        data = b"".join([part async for part in chunks])
        self.blobs[key] = data
        return len(data)

    async def read(self, key: str) -> bytes:
        return self.blobs[key]

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        yield self.blobs[key]

    async def delete(self, key: str) -> None:
        self.blobs.pop(key, None)


class MemoryTokenVectors:
    """Token matrices in a dict."""

    def __init__(self) -> None:
        self.matrices: dict[UUID, TokenMatrix] = {}

    async def put(self, matrices: Mapping[UUID, TokenMatrix]) -> None:
        self.matrices |= matrices

    async def get(self, chunk_ids: Sequence[UUID]) -> dict[UUID, TokenMatrix]:
        return {one: self.matrices[one] for one in chunk_ids if one in self.matrices}

    async def delete(self, chunk_ids: Sequence[UUID]) -> None:
        for one in chunk_ids:
            self.matrices.pop(one, None)

    async def size_bytes(self) -> int:
        return sum(matrix.nbytes for matrix in self.matrices.values())


class TokenEmbedder(HashEmbedder):
    """The hash embedder with token vectors beside: one row a word. Remembers what it embedded."""

    def __init__(self) -> None:
        self.embedded: list[str] = []

    async def embed_passages(self, texts: Sequence[str], deadline: Deadline) -> PassageVectors:
        self.embedded += texts
        vectors = await super().embed_passages(texts, deadline)
        matrices = tuple(np.ones((len(text.split()), 4), np.int8) for text in texts)
        return PassageVectors(dense=vectors.dense, tokens=matrices)


class Knobs:
    """One configuration for everybody."""

    def __init__(self) -> None:
        self.config = RagConfig(embedding_batch=2)

    def set(self, **values: Any) -> None:
        self.config = structs.replace(self.config, **values)

    async def resolve(self, workspace_id: UUID) -> ResolvedConfig:
        return ResolvedConfig(config=self.config, layers={})


def parse(data: bytes, *, source_name: str, media_type: str) -> str:
    """Text as it is."""
    return data.decode()


def paragraphs(document: str, options: ChunkingOptions, *, count_tokens: object) -> list[Chunk]:
    """One chunk a paragraph."""
    parts = [part.strip() for part in document.split("\n\n") if part.strip()]
    return [Chunk(index=place, text=part, content_start=0, spans=((0, len(part)),)) for place, part in enumerate(parts)]


def words(source_name: str, section_path: Sequence[str], content: str, *, average_length: float) -> SparseVector:
    """Weight 1 for each different word."""
    terms = {int.from_bytes(hashlib.sha256(word.encode()).digest()[:4]) for word in content.lower().split()}
    return SparseVector(tuple(sorted(terms)), (1.0,) * len(terms))


class Crash(Exception):
    """The process is gone: nothing after this runs."""


class Crashing:
    """Passes calls on until the fatal one, counted over all objects that share `counter`.

    `counter.fatal_at` is the number of the call that crashes, `counter.after` whether its effect is still seen.
    """

    def __init__(self, target: object, counter: "CallCounter") -> None:
        self._target, self._counter = target, counter

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        if not inspect.iscoroutinefunction(attribute):
            return attribute

        async def call(*arguments: Any, **keywords: Any) -> Any:
            fatal = self._counter.next_is_fatal(f"{type(self._target).__name__}.{name}")
            if fatal and not self._counter.after:
                raise Crash(name)
            result = await attribute(*arguments, **keywords)
            if fatal:
                raise Crash(name)
            return result

        return call


class CallCounter:
    """Which call is the fatal one."""

    def __init__(self) -> None:
        self.fatal_at: int | None = None
        self.after = False
        self.calls: list[str] = []

    def next_is_fatal(self, name: str) -> bool:
        self.calls.append(name)
        return self.fatal_at is not None and len(self.calls) - 1 == self.fatal_at

    def crash_at(self, number: int | None, *, after: bool = False) -> None:
        self.fatal_at, self.after, self.calls = number, after, []


class Rig(Struct, frozen=True, kw_only=True):
    """Pipelines wired as bootstrap does it."""

    world: World
    index: MemoryVectorIndex
    blobs: MemoryBlobs
    tokens: MemoryTokenVectors
    embedder: TokenEmbedder
    knobs: Knobs
    counter: CallCounter
    uploads: Uploads
    ingestion: IngestionPipeline
    purge: PurgePipeline
    deletion: DeletePipeline
    reports: list[IngestReport]

    async def upload(self, text: str, name: str = "A.md", **fields: Any) -> Accepted:
        """A file of one paragraph a chunk."""

        async def stream() -> AsyncIterator[bytes]:
            for start in range(0, len(text.encode()), 7):
                yield text.encode()[start : start + 7]

        known = {"workspace_id": DEFAULT_WORKSPACE, "collection_id": self.world.collection.id, "source_name": name}
        return await self.uploads.accept(stream(), **(known | fields))

    def handler(self, lease: Lease) -> IngestionPipeline | PurgePipeline | DeletePipeline:
        return {JobKind.INGEST: self.ingestion, JobKind.PURGE: self.purge, JobKind.DELETE: self.deletion}[lease.kind]

    async def work(self, jobs: int | None = None) -> list[JobKind]:
        """Works off due jobs (all, unless told how many); delays are taken as over."""
        worked: list[JobKind] = []
        while jobs is None or len(worked) < jobs:
            await self.world.make_due()
            lease = await self.world.queue.claim(f"w{len(worked)}")
            if lease is None:
                break
            await self.handler(lease).handle(lease)
            worked.append(lease.kind)
        return worked

    async def points(self, document_id: UUID) -> list[UUID]:
        where = IndexFilter(workspace_id=DEFAULT_WORKSPACE, document_ids=(document_id,))
        return await self.index.ids(where, Deadline.after(5))

    async def all_points(self) -> int:
        return len(await self.index.ids(IndexFilter(workspace_id=DEFAULT_WORKSPACE), Deadline.after(5)))

    async def contents(self, document_id: UUID) -> list[str]:
        rows = await self.world.catalog.chunks(DEFAULT_WORKSPACE, document_id)
        return [row.chunk.content for row in rows]

    async def is_indexed_once(self, document_id: UUID) -> bool:
        """Points and token vectors are those of the current revision's rows, no more and no less."""
        rows = await self.world.catalog.chunks(DEFAULT_WORKSPACE, document_id)
        ids = sorted(row.id for row in rows)
        held = await self.tokens.get(await self.world.revisions.document_chunk_ids(document_id))
        return bool(ids) and await self.points(document_id) == ids and sorted(held) == ids


@asynccontextmanager
async def open_rig(world: World, *, decorate_index: Callable[[Any], Any] = lambda index: index) -> AsyncIterator[Rig]:
    """`decorate_index` may wrap the index to make it misbehave."""
    index, blobs, tokens = MemoryVectorIndex(dimension=DIMENSION), MemoryBlobs(), MemoryTokenVectors()
    embedder, knobs, counter, reports = TokenEmbedder(), Knobs(), CallCounter(), list[IngestReport]()

    def crashing(target: object) -> Any:
        return Crashing(target, counter)

    seen_index = crashing(decorate_index(index))
    revisions, queue = crashing(world.revisions), crashing(world.queue)
    filler = IndexFiller(
        revisions=revisions,
        index=seen_index,
        embedder=crashing(embedder),
        token_vectors=crashing(tokens),
        lexical_vector=words,
        upsert_points=3,
    )
    sweeper = Sweeper(queue=queue, index=seen_index, token_vectors=crashing(tokens))
    yield Rig(
        world=world,
        index=index,
        blobs=blobs,
        tokens=tokens,
        embedder=embedder,
        knobs=knobs,
        counter=counter,
        uploads=Uploads(
            catalog=world.catalog, blobs=blobs, configuration=knobs, model=embedder.model, max_bytes=10_000
        ),
        ingestion=IngestionPipeline(
            revisions=revisions,
            queue=queue,
            blobs=crashing(blobs),
            filler=filler,
            parse=parse,
            chunk=paragraphs,
            token_counter=None,
            configuration=knobs,
            purge_after=timedelta(seconds=60),
            observer=reports.append,
        ),
        purge=PurgePipeline(revisions=revisions, queue=queue, blobs=crashing(blobs), sweeper=sweeper),
        deletion=DeletePipeline(revisions=revisions, queue=queue, blobs=crashing(blobs), sweeper=sweeper),
        reports=reports,
    )
    await asyncio.sleep(0)
