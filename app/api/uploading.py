"""`POST /v1/documents`: a form with fields and files becomes one entry a file."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import IO, Any
from uuid import UUID

import msgspec
from litestar import Request
from msgspec import Struct

from app.api.errors import ClientGone, LateField, MalformedBody
from app.api.multipart_reader import FormReader, Part
from app.api.problems import problem_of
from app.api.services import Uploads
from app.api.views import UploadedDocument
from app.domain.documents import Scopes
from app.domain.errors import InvalidInput, LimitExceeded, PermanentError, UnknownField
from app.domain.ports import Catalog

FILES_PER_REQUEST = 8
"""The whole body may hold this many files of the greatest size (more, when they are smaller)."""

FORM_OVERHEAD_BYTES = 4 * 1024 * 1024
MAX_DESCRIPTION = 2_000
MAX_SCOPE_IDS = 1_000
MEMORY_BYTES = 1024 * 1024
READ_BYTES = 1024 * 1024
LIST_FIELDS = {
    "agentIds": "agent_ids",
    "channelIds": "channel_ids",
    "principalIds": "principal_ids",
    "roleIds": "role_ids",
}
FIELDS = ("collectionId", "description", "attributes", *LIST_FIELDS)


class UploadFields(Struct, kw_only=True):
    """The form's fields, as far as they have come."""

    collection_id: UUID | None = None
    description: str = ""
    attributes: dict[str, Any] = {}
    lists: dict[str, tuple[str, ...]] = {}
    seen: set[str] = set()

    def take(self, name: str, text: str) -> None:
        """Raises UnknownField or InvalidInput."""
        if name in LIST_FIELDS:
            self.lists[name] = _checked_ids(name, (*self.lists.get(name, ()), *_listed(name, text)))
        elif name in self.seen:
            raise InvalidInput(f"/{name}", "is given more than once")
        elif name == "collectionId":
            self.collection_id = _parsed_id(text)
        elif name == "description":
            self.description = _checked_description(text)
        elif name == "attributes":
            self.attributes = _parsed_attributes(text)
        else:
            raise UnknownField(f"/{name}", known=(*FIELDS, "file"))
        self.seen.add(name)

    @property
    def scopes(self) -> Scopes:
        return Scopes(**{LIST_FIELDS[name]: ids for name, ids in self.lists.items()})


class UploadForm:
    """Reads one form. Files stream straight on once the collection is known; those before it wait on disk."""

    def __init__(
        self,
        *,
        uploads: Uploads,
        catalog: Catalog,
        workspace_id: UUID,
        collection_id: UUID | None,
        max_file_bytes: int,
    ) -> None:
        self._uploads, self._catalog, self._workspace_id = uploads, catalog, workspace_id
        self._max_file_bytes = max_file_bytes
        self._fields = UploadFields(collection_id=collection_id, seen={"collectionId"} if collection_id else set())
        self._waiting: list[_WaitingFile] = []
        self._entries: list[UploadedDocument] = []
        self._streamed = False

    async def read(self, request: Request[Any, Any, Any]) -> tuple[UploadedDocument, ...]:
        """One entry a file. A refused file is an entry with its problem; it does not stop the others.

        Raises CollectionNotFound, MalformedBody, UnknownField, InvalidInput, LateField, or a TransientError.
        """
        if self._fields.collection_id is not None:
            await self._check_collection()
        reader = FormReader(request, max_bytes=self._max_file_bytes * FILES_PER_REQUEST + FORM_OVERHEAD_BYTES)
        try:
            async with aclosing(reader.parts()) as parts:
                async for part in parts:
                    await self._take(part)
            await self._send_waiting()
        finally:
            for file in self._waiting:
                await asyncio.to_thread(file.content.close)
        if not self._entries:
            raise InvalidInput("/file", "the form holds no file")
        return tuple(self._entries)

    async def _take(self, part: Part) -> None:
        if part.name == "file":
            await self._take_file(part)
            return
        if part.is_file:
            raise InvalidInput(f"/{part.name}", "files belong into the field `file`")
        text = await part.text()
        if self._streamed:
            raise LateField(part.name, accepted=tuple(self._entries))
        self._fields.take(part.name, text)
        if part.name == "collectionId":
            await self._check_collection()

    async def _take_file(self, part: Part) -> None:
        if not part.filename:
            raise InvalidInput("/file", "needs a file name")
        if self._fields.collection_id is None:
            await self._keep(part, part.filename)
            return
        self._streamed = True
        await self._accept(part, part.filename, part.media_type)

    async def _keep(self, part: Part, filename: str) -> None:
        # Closed in `read`, whatever happens.
        content = tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES, prefix="kroshka-upload-")  # noqa: SIM115
        file = _WaitingFile(source_name=filename, media_type=part.media_type, content=content)
        self._waiting.append(file)
        async for block in part:
            file.size_bytes += len(block)
            if file.size_bytes > self._max_file_bytes:
                file.too_large = True
                return
            await asyncio.to_thread(content.write, block)

    async def _send_waiting(self) -> None:
        if not self._waiting:
            return
        if self._fields.collection_id is None:
            raise InvalidInput("/collectionId", "is required, as a field of the form or a query parameter")
        for file in self._waiting:
            await self._accept(file.blocks(self._max_file_bytes), file.source_name, file.media_type)

    async def _check_collection(self) -> None:
        if self._fields.collection_id is not None:
            await self._catalog.check_collection(self._workspace_id, self._fields.collection_id)

    async def _accept(self, blocks: AsyncIterator[bytes], source_name: str, media_type: str | None) -> None:
        """What is wrong with a file stays with the file; what is wrong with the service or the form ends it all."""
        try:
            entry = await self._stored(blocks, source_name, media_type)
        except (ClientGone, MalformedBody):
            raise
        except PermanentError as error:
            entry = UploadedDocument(source_name=source_name, status="refused", problem=problem_of(error))
        self._entries.append(entry)

    async def _stored(self, blocks: AsyncIterator[bytes], source_name: str, media_type: str | None) -> UploadedDocument:
        if self._fields.collection_id is None:
            raise InvalidInput("/collectionId", "is required")
        accepted = await self._uploads.accept(
            blocks,
            workspace_id=self._workspace_id,
            collection_id=self._fields.collection_id,
            source_name=source_name,
            media_type=media_type,
            description=self._fields.description,
            attributes=self._fields.attributes,
            scopes=self._fields.scopes,
        )
        return UploadedDocument(
            source_name=source_name,
            status=accepted.outcome,
            id=accepted.document_id,
            revision=accepted.revision,
            job_id=accepted.job_id,
        )


class _WaitingFile(Struct, kw_only=True):
    """A file that came before its collection."""

    source_name: str
    media_type: str | None
    content: IO[bytes]
    size_bytes: int = 0
    too_large: bool = False

    async def blocks(self, max_bytes: int) -> AsyncIterator[bytes]:
        if self.too_large:
            raise LimitExceeded("/file", actual=self.size_bytes, limit=max_bytes, unit="bytes")
        await asyncio.to_thread(self.content.seek, 0)
        while block := await asyncio.to_thread(self.content.read, READ_BYTES):
            yield block


def _parsed_id(text: str) -> UUID:
    try:
        return UUID(text.strip())
    except ValueError as error:
        raise InvalidInput("/collectionId", "is not a UUID") from error


def _checked_description(text: str) -> str:
    if len(text) > MAX_DESCRIPTION:
        raise LimitExceeded("/description", actual=len(text), limit=MAX_DESCRIPTION, unit="characters")
    return text


def _parsed_attributes(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInput("/attributes", "is not a JSON object") from error


def _listed(name: str, text: str) -> tuple[str, ...]:
    """A field repeated for each id, or one JSON array of them."""
    if not text.lstrip().startswith("["):
        return (text.strip(),) if text.strip() else ()
    try:
        return msgspec.json.decode(text, type=tuple[str, ...])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInput(f"/{name}", "is not a JSON array of texts") from error


def _checked_ids(name: str, ids: tuple[str, ...]) -> tuple[str, ...]:
    if len(ids) > MAX_SCOPE_IDS:
        raise LimitExceeded(f"/{name}", actual=len(ids), limit=MAX_SCOPE_IDS, unit="ids")
    if any(not entry or len(entry) > 200 for entry in ids):
        raise InvalidInput(f"/{name}", "an id is 1 to 200 characters", limit=200)
    return tuple(dict.fromkeys(ids))
