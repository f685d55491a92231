"""The strategies beside the default."""

import pytest

from app.domain.documents import ChunkingOptions
from app.domain.errors import InvalidInput
from app.ingestion.chunking import STRATEGIES, TooLargeForOneChunk, chunk
from tests.support.chunking import chunks_of, contents, markdown, sentences

MIXED = f"# A\n\n{sentences(30)}\n\n## B\n\n{sentences(4)}\n\n- x\n- y\n"


def test_the_seven_strategies_are_there_by_name() -> None:
    assert list(STRATEGIES) == ["structure_aware", "recursive", "sentence", "paragraph", "fixed", "whole", "rows"]


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="'other' is none of structure_aware"):
        chunk(markdown("x"), ChunkingOptions(strategy="other"), count_tokens=None)


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_every_chunk_names_its_strategy(strategy: str) -> None:
    assert {one.strategy for one in chunks_of(MIXED, strategy=strategy)} == {strategy}


def test_recursive_takes_headings_as_text() -> None:
    found = chunks_of("# A\n\nx\n\n## B\n\ny", strategy="recursive")
    assert [(one.content, one.section_path, one.heading_spans) for one in found] == [("# A\n\nx\n\n## B\n\ny", (), ())]


def test_sentence_never_cuts_a_sentence_and_overlaps_in_whole_ones() -> None:
    found = chunks_of(f"{sentences(30)}\n\n{sentences(30, name='Другое')}", strategy="sentence", overlap=100)
    assert all(one.content.startswith(("Предложение", "Другое")) and one.content.endswith("деле.") for one in found)
    assert any("Предложение 029" in one.content and "Другое 000" in one.content for one in found)
    assert all(one.spans[0][1] - one.spans[0][0] < len(one.content) for one in found[1:])


def test_paragraph_keeps_paragraphs_whole() -> None:
    paragraphs = [sentences(9, name=f"Абзац {number}") for number in range(6)]
    found = contents("\n\n".join(paragraphs), strategy="paragraph")
    assert [part for one in found for part in one.split("\n\n")] == paragraphs


def test_fixed_is_a_window_with_exact_overlap() -> None:
    found = chunks_of("абвгде ё" * 300, strategy="fixed", overlap=100)
    assert [one.weight for one in found[:2]] == [900, 900]
    start, end = found[1].spans[0]
    repeated = found[1].content[: len(found[1].content) - (end - start)]
    assert len(repeated) == 100
    assert found[0].content.endswith(repeated)


def test_whole_is_one_chunk_and_refused_above_the_models_limit() -> None:
    assert len(chunks_of(MIXED, strategy="whole")) == 1
    with pytest.raises(TooLargeForOneChunk, match="has 600 tokens and the embedding model takes 512"):
        chunk(
            markdown(MIXED),
            ChunkingOptions(strategy="whole", max_tokens=512),
            count_tokens=lambda texts: [600 for _ in texts],
        )


def test_rows_keeps_tables_apart_with_their_header() -> None:
    rows = [f"| {number} | {'слово ' * 10}|" for number in range(30)]
    text = "# T\n\nintro\n\n| a | b |\n|---|---|\n" + "\n".join(rows) + "\n\nend"
    found = chunks_of(text, strategy="rows")
    assert (found[0].content, found[-1].content) == ("intro", "end")
    assert len(found) > 4
    assert all(one.content.startswith("| a | b |\n|---|---|\n| ") for one in found[1:-1])
    assert {one.section_path for one in found} == {("T",)}
