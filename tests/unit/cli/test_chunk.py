"""`kroshka chunk`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from app.cli import cli
from app.clients.local_model.counting import PassageCounter
from app.clients.local_model.embedder import LocalE5Embedder
from tests.support.aio import run

DOCUMENT = (
    "# Регламент\n\n## 1. Сроки\n\nОтвет дают за 3 дня.\n\n## 2. Цены\n\n| Услуга | Цена |\n|---|---|\n"
    + "".join(f"| Услуга {n} | {n * 10} |\n" for n in range(80))
)


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "Регламент.md"
    path.write_text(DOCUMENT, encoding="utf-8")
    return path


def chunk(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["chunk", *map(str, arguments)], standalone_mode=False)


def test_json_is_one_chunk_a_line_with_its_breadcrumb_and_place(document: Path) -> None:
    lines = [json.loads(line) for line in chunk(document, "--json").stdout.splitlines()]
    assert [line["chunkIndex"] for line in lines] == list(range(len(lines)))
    assert lines[0]["sectionPath"] == ["Регламент", "1. Сроки"]
    start, end = lines[0]["span"]
    assert DOCUMENT[start:end].strip() == "Ответ дают за 3 дня."
    assert all(line["text"].count("| Услуга | Цена |") == 1 for line in lines[1:])
    assert {"text", "contentStart", "page", "weight", "tokens", "strategy"} <= set(lines[0])


def test_smaller_chunks_are_more_chunks(document: Path) -> None:
    assert len(chunk(document, "--json", "--size", "200").stdout.splitlines()) > len(
        chunk(document, "--json").stdout.splitlines()
    )


def test_the_readable_view_shows_the_breadcrumb(document: Path) -> None:
    assert "Регламент.md › Регламент › 1. Сроки" in chunk(document).stdout


def test_lint_finds_nothing_in_a_good_cut(document: Path) -> None:
    result = chunk(document, "--lint")
    assert result.return_value == 0
    assert "nothing found" in result.stdout


@pytest.mark.model
def test_tokens_are_counted_as_the_embedder_counts_them(tmp_path: Path) -> None:
    texts = ["", "Ответ дают за 3 дня.", "retrieval-augmented generation", "検索エンジン 检索", "x" * 5_000]

    async def by_the_embedder() -> list[int]:
        embedder = await LocalE5Embedder.load(cache_dir=tmp_path)
        counts = embedder.count_tokens(texts)
        await embedder.aclose()
        return counts

    assert PassageCounter.load().count_tokens(texts) == run(by_the_embedder())
