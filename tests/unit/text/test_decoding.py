"""Bytes in unknown encodings."""

import pytest

from app.text.decoding import UndecodableError, decode

RUSSIAN = "Проверка баланса абонента выполняется оператором. Если баланс отрицательный, сообщите об этом абоненту."
WESTERN = "Le café est très agréable, où êtes-vous? Das Gerät läuft über Nacht; señor, el niño está aquí."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("text", [RUSSIAN, WESTERN])
def test_unicode_with_and_without_a_mark(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize("encoding", ["cp1251", "koi8-r", "cp866", "iso8859-5", "mac-cyrillic"])
@pytest.mark.parametrize("length", [12, 40, 200])
@pytest.mark.parametrize("start", [0, 17, 33, 58])
def test_cyrillic_code_pages(encoding: str, length: int, start: int) -> None:
    text = (RUSSIAN * 4)[start : start + length]
    assert decode(text.encode(encoding)) == text


def test_capitals_and_russian_punctuation_in_windows_1251() -> None:
    text = "ВНИМАНИЕ! «Регламент № 5» — утверждён"
    assert decode(text.encode("cp1251")) == text


@pytest.mark.parametrize("text", [WESTERN, "Überprüfung der Geräte"])
def test_western_windows_1252(text: str) -> None:
    assert decode(text.encode("cp1252")) == text


def test_a_stray_control_character_is_no_reason_to_refuse() -> None:
    assert decode(b"page one\x0cpage two\x1b[0m" + b" text" * 100) == "page one\x0cpage two\x1b[0m" + " text" * 100
    assert decode("конец\x02".encode() + b" text" * 100) == "конец\x02" + " text" * 100


@pytest.mark.parametrize("data", [bytes(range(256)), b"\0" * 10, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0\0\0\1\0\x08"])
def test_binary_data_are_refused(data: bytes) -> None:
    with pytest.raises(UndecodableError, match="control characters"):
        decode(data)


def test_a_mark_that_lies_is_refused_with_the_place() -> None:
    with pytest.raises(UndecodableError, match=r"mark of UTF-8 but byte \d+"):
        decode(b"\xef\xbb\xbf" + "ж".encode("cp1251"))
