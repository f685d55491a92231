"""One door for every format."""

import pytest

from app.domain.errors import DocumentUnreadable, NoTextFound, UnsupportedFormat
from app.ingestion.media_types import sniff
from app.ingestion.parsers import parse, supported_media_types, supported_suffixes


@pytest.mark.parametrize("data", [b"", b" \n\t\r\n", "\ufeff".encode(), b"\0"])
@pytest.mark.parametrize("media_type", ["text/markdown", "text/plain"])
def test_a_file_without_text_is_refused(data: bytes, media_type: str) -> None:
    with pytest.raises((NoTextFound, DocumentUnreadable)):
        parse(data, source_name="a", media_type=media_type)


def test_an_unknown_format_names_what_is_supported() -> None:
    with pytest.raises(UnsupportedFormat, match=r"application/x-foo .*text/markdown"):
        parse(b"x", source_name="a.foo", media_type="application/x-foo")


def test_binary_data_are_unreadable_and_the_file_is_named() -> None:
    with pytest.raises(DocumentUnreadable, match=r"a\.md cannot be read as text"):
        parse(bytes(range(256)), source_name="a.md", media_type="text/markdown")


def test_parameters_and_case_of_the_media_type_do_not_matter() -> None:
    document = parse(b"# A\n\nb", source_name="a.md", media_type="Text/Markdown; charset=utf-8")
    assert [block.title for block in document.blocks] == ["A", ""]


def test_every_suffix_is_sniffed_as_a_supported_type() -> None:
    for suffix in supported_suffixes():
        assert sniff(b"text", f"a{suffix}") in supported_media_types()


def test_a_windows_1251_file_is_read_as_russian() -> None:
    document = parse("# Заголовок\r\n\r\nТекст".encode("cp1251"), source_name="a.md", media_type="text/markdown")
    assert document.text == "# Заголовок\n\nТекст"
