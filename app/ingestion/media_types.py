"""What kind of file an upload is: by its first bytes, then by its name. A caller's word is only a hint."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

TEXT_BY_SUFFIX: Mapping[str, str] = MappingProxyType(
    {
        ".md": "text/markdown",
        ".markdown": "text/markdown",
        ".mdown": "text/markdown",
        ".htm": "text/html",
        ".html": "text/html",
        ".xhtml": "text/html",
        ".csv": "text/csv",
        ".tsv": "text/tab-separated-values",
        ".json": "application/json",
        ".xml": "application/xml",
    }
)

ZIP_BY_SUFFIX: Mapping[str, str] = MappingProxyType(
    {
        ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        ".odt": "application/vnd.oasis.opendocument.text",
        ".epub": "application/epub+zip",
    }
)

MAGIC = (
    (b"%PDF-", "application/pdf"),
    (b"{\\rtf", "application/rtf"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"\x1f\x8b", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"\x7fELF", "application/x-executable"),
    (b"MZ\x90\x00", "application/x-executable"),
)
WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")
ZIP = b"PK\x03\x04"
BINARY = "application/octet-stream"


def sniff(head: bytes, source_name: str, declared: str | None = None) -> str:
    """The media type of a file that begins with `head` (a few kilobytes are enough).

    Text is named by the file's suffix, else by a declared `text/…`, else it is `text/plain`; `text/markdown` and
    the like are a promise that bytes alone cannot give.
    """
    suffix = PurePosixPath(source_name.replace("\\", "/")).suffix.lower()
    for magic, media_type in MAGIC:
        if head.startswith(magic):
            return media_type
    if head.startswith(ZIP):
        return ZIP_BY_SUFFIX.get(suffix, "application/zip")
    if b"\0" in head and not head.startswith(WIDE_BOMS):
        return BINARY
    return TEXT_BY_SUFFIX.get(suffix) or _declared_text(declared) or "text/plain"


def _declared_text(declared: str | None) -> str | None:
    essence = (declared or "").partition(";")[0].strip().lower()
    return essence if essence.startswith("text/") else None
