"""Originals in a folder or in object storage (S3, Google Cloud Storage, Azure), by URL."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import from_url

from app.domain.errors import DocumentUnreadable, KroshkaError, StoreUnavailable

READ_BYTES = 1 << 20


class ObjectBlobStore:
    """The BlobStore port. `url`: `file:///folder` (created when missing), `s3://bucket/prefix`, `gs://…`, `az://…`.

    Objects appear under their key only when they are whole.
    """

    def __init__(self, *, url: str) -> None:
        self._store: Any = from_url(url, mkdir=True) if urlsplit(url).scheme == "file" else from_url(url)

    async def put(self, key: str, chunks: AsyncIterator[bytes]) -> int:
        """Raises StoreUnavailable, or whatever `chunks` raises; then nothing is left."""
        counted = _Counted(chunks)
        with _translated(key):
            await obstore.put_async(self._store, _path(key), counted.chunks())
        return counted.size_bytes

    async def read(self, key: str) -> bytes:
        """The whole original. Raises DocumentUnreadable when it is gone, StoreUnavailable."""
        with _translated(key):
            found = await obstore.get_async(self._store, _path(key))
            return bytes(await found.bytes_async())

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """The original in pieces of about a megabyte. Raises as `read` does."""
        with _translated(key):
            found = await obstore.get_async(self._store, _path(key))
            async for part in found.stream(min_chunk_size=READ_BYTES):
                yield bytes(part)

    async def delete(self, key: str) -> None:
        with _translated(key), contextlib.suppress(FileNotFoundError, NotFoundError):
            await obstore.delete_async(self._store, _path(key))


class _Counted:
    """Counts a stream's bytes on their way."""

    def __init__(self, source: AsyncIterator[bytes]) -> None:
        self._source, self.size_bytes = source, 0

    async def chunks(self) -> AsyncIterator[bytes]:
        async for part in self._source:
            self.size_bytes += len(part)
            yield part


@contextlib.contextmanager
def _translated(key: str) -> Iterator[None]:
    try:
        yield
    except KroshkaError:
        raise
    except (FileNotFoundError, NotFoundError) as error:
        raise DocumentUnreadable(f"the original {key} is not in the blob store any more") from error
    except (BaseError, OSError) as error:
        # The library's messages go on with a dump of its own structures.
        reason = str(error).partition("\n")[0]
        raise StoreUnavailable(f"the blob store: {reason}", cause="refused") from error


def _path(key: str) -> str:
    """Two characters of the key as a folder: no folder grows without bounds."""
    return f"{key[:2]}/{key}"
