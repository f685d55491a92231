"""The check finds what it is for."""

from collections.abc import Callable

import msgspec
import pytest

from app.domain.documents import Chunk, ChunkingOptions
from app.ingestion.chunking import chunk
from app.ingestion.chunking.lint import lint
from tests.support.chunking import markdown, sentences

TABLE = "| a | b |\n|---|---|\n" + "\n".join(f"| ряд {number} | {'слово ' * 12}|" for number in range(30))
CODE = "```py\n" + "\n".join(f"line = {number} # комментарий" for number in range(90)) + "\n```"
DOCUMENT = markdown(f"# A\n\n{sentences(30)}\n\n## T\n\n{TABLE}\n\n## C\n\n{CODE}\n")
OPTIONS = ChunkingOptions()
Break = Callable[[list[Chunk]], list[Chunk]]


def made() -> list[Chunk]:
    return chunk(DOCUMENT, OPTIONS, count_tokens=None)


def replaced(chunks: list[Chunk], place: int, **changes: object) -> list[Chunk]:
    return [*chunks[:place], msgspec.structs.replace(chunks[place], **changes), *chunks[place + 1 :]]


def with_content(chunks: list[Chunk], place: int, change: Callable[[str], str]) -> list[Chunk]:
    one = chunks[place]
    return replaced(chunks, place, text=one.text[: one.content_start] + change(one.content))


def first_with(chunks: list[Chunk], title: str, *, later: int = 1) -> int:
    return [one.index for one in chunks if one.section_path[-1] == title][later]


def test_nothing_is_found_in_good_chunks() -> None:
    assert lint(DOCUMENT, made(), OPTIONS) == []


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda chunks: chunks[:-1], "text at the end is in no chunk"),
        (lambda chunks: chunks[1:], "text before it is in no chunk"),
        (lambda chunks: [*chunks[:2], chunks[1], *chunks[2:]], "not after"),
        (lambda chunks: replaced(chunks, 0, heading_spans=()), "text before it is in no chunk"),
        (lambda chunks: replaced(chunks, 0, weight=1), "says it weighs 1"),
        (lambda chunks: with_content(chunks, 0, lambda text: text + "x" * 900), "at most 1400 are allowed"),
        (lambda chunks: with_content(chunks, 0, lambda text: text + "\n"), "white space at its edges"),
        (lambda chunks: with_content(chunks, 0, lambda text: text.replace("об", "o")), "content does not show"),
        (lambda chunks: replaced(chunks, 0, spans=((5, 1300),)), "crosses the heading 'T'"),
        (lambda chunks: replaced(chunks, 0, section_path=("B",)), "stands under ('A',)"),
        (
            lambda chunks: with_content(chunks, first_with(chunks, "T"), lambda text: text.split("\n", 2)[2]),
            "without its header",
        ),
        (
            lambda chunks: with_content(chunks, first_with(chunks, "C"), lambda text: text.split("\n", 1)[1]),
            "without its opening fence",
        ),
        (
            lambda chunks: with_content(chunks, first_with(chunks, "C"), lambda text: text.removesuffix("\n```")),
            "without a closing fence",
        ),
    ],
)
def test_each_broken_promise_is_found(break_it: Break, message: str) -> None:
    findings = lint(DOCUMENT, break_it(made()), OPTIONS)
    assert any(message in finding.message for finding in findings), findings
