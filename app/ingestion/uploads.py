"""Accepting an upload: stream to the blob store while hashing and counting, then document, revision and job."""

import contextlib
import hashlib
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

from app.config.knobs import RagConfig
from app.domain.documents import Accepted, ChunkingOptions, NewDocument, Scopes
from app.domain.errors import InvalidInput, LimitExceeded, PermanentError, TransientError
from app.domain.ports import BlobStore, Catalog
from app.domain.vectors import EmbeddingModel
from app.ingestion.media_types import sniff
from app.ingestion.seams import Configuration

HEAD_BYTES = 4_096


class _Measured:
    """Passes a stream on, and knows afterwards its hash, size and beginning. Raises LimitExceeded on the way."""

    def __init__(self, stream: AsyncIterator[bytes], *, max_bytes: int) -> None:
        self._stream, self._max_bytes = stream, max_bytes
        self._hash = hashlib.sha256()
        self.size_bytes, self.head = 0, b""

    async def chunks(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self.size_bytes += len(part)
            if self.size_bytes > self._max_bytes:
                raise LimitExceeded("/file", actual=self.size_bytes, limit=self._max_bytes, unit="bytes")
            self._hash.update(part)
            self.head += part[: max(0, HEAD_BYTES - len(self.head))]
            yield part
        if not self.size_bytes:
            raise InvalidInput("/file", "the file is empty")

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


class Uploads:
    """The way in for every door. The chunking knobs and the model's input limit are frozen on the revision here."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        blobs: BlobStore,
        configuration: Configuration,
        model: EmbeddingModel,
        max_bytes: int,
    ) -> None:
        self._catalog, self._blobs, self._configuration = catalog, blobs, configuration
        self._model, self._max_bytes = model, max_bytes

    async def accept(
        self,
        stream: AsyncIterator[bytes],
        *,
        workspace_id: UUID,
        collection_id: UUID,
        source_name: str,
        media_type: str | None = None,
        description: str = "",
        attributes: dict[str, Any] | None = None,
        scopes: Scopes | None = None,
    ) -> Accepted:
        """Stores and queues the file; `unchanged` when the newest good revision has these bytes already.

        Raises CollectionNotFound (before a byte is read), LimitExceeded, InvalidInput, TooManyChunks, or
        StoreUnavailable. Whatever is refused leaves nothing in the blob store.
        """
        await self._catalog.check_collection(workspace_id, collection_id)
        knobs = (await self._configuration.resolve(workspace_id)).config
        revision_id, measured = uuid4(), _Measured(stream, max_bytes=self._max_bytes)
        await self._blobs.put(str(revision_id), measured.chunks())
        new = NewDocument(
            workspace_id=workspace_id,
            collection_id=collection_id,
            revision_id=revision_id,
            source_name=source_name,
            media_type=sniff(measured.head, source_name, media_type),
            sha256=measured.sha256,
            size_bytes=measured.size_bytes,
            chunking=self._chunking(knobs),
            description=description,
            attributes=attributes or {},
            scopes=scopes or Scopes(),
        )
        return await self._register(new, knobs)

    def _chunking(self, knobs: RagConfig) -> ChunkingOptions:
        return ChunkingOptions(
            strategy=knobs.chunk_strategy,
            size=knobs.chunk_size,
            overlap=knobs.chunk_overlap,
            metadata_enrichment=knobs.metadata_enrichment,
            max_tokens=self._model.max_input_tokens,
        )

    async def _register(self, new: NewDocument, knobs: RagConfig) -> Accepted:
        # Only an answer that is certain removes the blob: after a lost connection or a cancelled wait the document
        # may exist. Blobs without a row are swept.
        blob_key = str(new.revision_id)
        try:
            accepted = await self._catalog.accept(new, max_collection_chunks=knobs.max_chunks_per_collection)
        except PermanentError:
            await self._discard(blob_key)
            raise
        if accepted.revision_id != new.revision_id:
            await self._discard(blob_key)
        return accepted

    async def _discard(self, blob_key: str) -> None:
        with contextlib.suppress(TransientError):  # then it is swept with the others
            await self._blobs.delete(blob_key)
