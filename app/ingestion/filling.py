"""Chunk rows into the index: embed ∥ lexical weights → token vectors → upsert, then prove that all are there."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TypeVar
from uuid import UUID

import numpy as np
from msgspec import Struct

from app.config.knobs import RagConfig
from app.domain.deadline import Deadline
from app.domain.documents import ChunkRow, Generation, Revision
from app.domain.errors import ModelMismatch, VerificationFailed
from app.domain.index import IndexFilter, IndexPoint, PointPayload
from app.domain.ports import Embedder, RevisionStore, TokenVectorStore, VectorIndex
from app.domain.vectors import PassageVectors, SparseVector, TokenMatrix
from app.ingestion.seams import LexicalVector
from app.ingestion.tenure import Tenure, to_the_end
from app.ingestion.timing import StageTimes

T = TypeVar("T")

MAX_REWRITES = 5
VERIFICATIONS = 2


AUTO_LATE_INTERACTION_CHUNKS = 50_000
"""Up to here `lateInteraction: auto` stores token vectors: about 4 GB of them."""


class _Filling(Struct, frozen=True):
    """One revision being written into one generation."""

    tenure: Tenure
    revision: Revision
    generation: Generation
    embedding_batch: int
    keeps_tokens: bool
    times: StageTimes


class IndexFiller:
    """Writes one revision's points. Points that are there already are not made again: a second run goes on."""

    def __init__(
        self,
        *,
        revisions: RevisionStore,
        index: VectorIndex,
        embedder: Embedder,
        token_vectors: TokenVectorStore | None,
        lexical_vector: LexicalVector,
        embed_timeout_s: float = 120.0,
        write_timeout_s: float = 10.0,
        upsert_points: int = 32,
    ) -> None:
        self._revisions, self._index, self._embedder = revisions, index, embedder
        self._token_vectors, self._lexical_vector = token_vectors, lexical_vector
        self._embed_timeout_s, self._write_timeout_s = embed_timeout_s, write_timeout_s
        self._upsert_points = upsert_points

    async def fill(
        self,
        tenure: Tenure,
        revision: Revision,
        rows: Sequence[ChunkRow],
        generation: Generation,
        *,
        knobs: RagConfig,
        times: StageTimes,
    ) -> int:
        """Returns the number of points, which is that of the rows.

        Raises VerificationFailed when the index does not hold them after writing twice, ModelMismatch when the
        generation is another model's, or what embedder and index raise.
        """
        if generation.model_key != self._embedder.model.key:
            raise ModelMismatch(
                f"the index is {generation.model_key}, this process embeds with {self._embedder.model.key}"
            )
        present = await self._ids(revision)
        task = _Filling(tenure, revision, generation, knobs.embedding_batch, await self._keeps_tokens(knobs), times)
        for _ in range(VERIFICATIONS):
            await self._write_all(task, rows, [row for row in rows if row.id not in present])
            with times.stage("verify"):
                present = await self._verified_ids(tenure, revision, rows)
            if len(present) == len(rows):
                return len(rows)
        raise VerificationFailed(expected=len(rows), actual=len(present))

    async def clear(self, tenure: Tenure, revision: Revision) -> None:
        """Removes points of an attempt that had other rows."""
        stale = await self._ids(revision)
        if stale:
            await tenure.before_index_write()
            await to_the_end(self._index.delete(sorted(stale), self._deadline()))

    async def _keeps_tokens(self, knobs: RagConfig) -> bool:
        """Whether token vectors are stored: `auto` stops when they would fill the disk."""
        if self._token_vectors is None or knobs.late_interaction == "off":
            return False
        if knobs.late_interaction == "on":
            return True
        return (await self._index.status(self._deadline())).points < AUTO_LATE_INTERACTION_CHUNKS

    async def _write_all(self, task: "_Filling", rows: Sequence[ChunkRow], missing: Sequence[ChunkRow]) -> None:
        done = len(rows) - len(missing)
        for group in slices(missing, max(self._upsert_points, task.embedding_batch)):
            points, tokens = list[IndexPoint](), dict[UUID, TokenMatrix]()
            for batch in slices(group, task.embedding_batch):
                with task.times.stage("embed"):
                    made = await self._points(task, batch)
                points += made[0]
                tokens |= made[1]
                await task.tenure.report("embed", done + len(points), len(rows))
            with task.times.stage("index"):
                await self._write(task, group, points, tokens)
            done += len(group)

    async def _points(
        self, task: "_Filling", rows: Sequence[ChunkRow]
    ) -> tuple[list[IndexPoint], dict[UUID, TokenMatrix]]:
        texts, revision, generation = [row.chunk.text for row in rows], task.revision, task.generation
        deadline = Deadline.after(self._embed_timeout_s)
        vectors, lexical = await asyncio.gather(
            self._embedder.embed_passages(texts, deadline),
            asyncio.to_thread(self._lexical_vectors, revision.source_name, rows, generation),
        )
        points = [
            IndexPoint(
                chunk_id=row.id,
                dense=np.ascontiguousarray(vectors.dense[place], dtype=np.float32),
                lexical=lexical[place],
                payload=payload_of(row, revision, generation),
            )
            for place, row in enumerate(rows)
        ]
        return points, _token_matrices(rows, vectors) if task.keeps_tokens else {}

    def _lexical_vectors(self, name: str, rows: Sequence[ChunkRow], generation: Generation) -> list[SparseVector]:
        length = generation.average_length
        return [
            self._lexical_vector(name, row.chunk.section_path, row.chunk.content, average_length=length) for row in rows
        ]

    async def _write(
        self,
        task: "_Filling",
        rows: Sequence[ChunkRow],
        points: Sequence[IndexPoint],
        tokens: dict[UUID, TokenMatrix],
    ) -> None:
        """Writes, then reads the rows' versions again: an edit that came between is written once more."""
        for _ in range(MAX_REWRITES):
            await task.tenure.before_index_write()
            # Token vectors first: whoever finds the point finds them too.
            if self._token_vectors is not None and tokens:
                await to_the_end(self._token_vectors.put(tokens))
            await to_the_end(self._index.upsert(points, self._deadline()))
            rows = await self._changed(task.revision, rows)
            if not rows:
                return
            points, tokens = await self._points(task, rows)

    async def _changed(self, revision: Revision, rows: Sequence[ChunkRow]) -> list[ChunkRow]:
        versions = await self._revisions.chunk_versions([row.id for row in rows])
        changed = {row.id for row in rows if versions.get(row.id, row.version) != row.version}
        if not changed:
            return []
        return [row for row in await self._revisions.chunk_rows(revision.id) if row.id in changed]

    async def _verified_ids(self, tenure: Tenure, revision: Revision, rows: Sequence[ChunkRow]) -> set[UUID]:
        """Ids that the index holds durably and that have a row; points without one are deleted."""
        await self._index.flush(self._deadline())
        found, wanted = await self._ids(revision), {row.id for row in rows}
        if found - wanted:
            await tenure.before_index_write()
            await to_the_end(self._index.delete(sorted(found - wanted), self._deadline()))
            found = await self._ids(revision)
        return found & wanted

    async def _ids(self, revision: Revision) -> set[UUID]:
        return set(await self._index.ids(revision_filter(revision), self._deadline()))

    def _deadline(self) -> Deadline:
        return Deadline.after(self._write_timeout_s)


def revision_filter(revision: Revision) -> IndexFilter:
    """This revision's points."""
    return IndexFilter(workspace_id=revision.workspace_id, revision_ids=(revision.id,))


def payload_of(row: ChunkRow, revision: Revision, generation: Generation) -> PointPayload:
    """The point's payload, built from the row as it is now."""
    chunk = row.chunk
    return PointPayload(
        document_id=row.document_id,
        collection_id=revision.collection_id,
        workspace_id=revision.workspace_id,
        revision_id=revision.id,
        revision=revision.number,
        source_name=revision.source_name,
        chunk_index=chunk.index,
        text=chunk.text,
        content_start=chunk.content_start,
        section_path=chunk.section_path,
        chunk_strategy=chunk.strategy,
        page=chunk.page,
        content_hash=row.content_hash,
        lexical_version=generation.lexical_version,
    )


def slices(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Consecutive slices of at most `size`."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _token_matrices(rows: Sequence[ChunkRow], vectors: PassageVectors) -> dict[UUID, TokenMatrix]:
    if vectors.tokens is None:
        return {}
    return {row.id: matrix for row, matrix in zip(rows, vectors.tokens, strict=True)}
