"""What must hold for every document, recomputed from the spans and the source alone."""

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.documents import Chunk, ChunkingOptions
from app.domain.errors import NoTextFound
from app.ingestion.chunking import STRATEGIES, chunk
from app.ingestion.chunking.lint import lint
from app.ingestion.parsers import ParsedDocument, parse
from app.text.weights import weight
from tests.support.markdown import documents, lines

few = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
options = st.builds(
    ChunkingOptions,
    strategy=st.just("structure_aware"),
    size=st.sampled_from([100, 130, 300, 900]),
    overlap=st.sampled_from([0, 40, 120]),
    metadata_enrichment=st.booleans(),
)
anything = documents | lines


def parsed(text: str, media_type: str = "text/markdown") -> ParsedDocument:
    try:
        return parse(text.encode(), source_name="a", media_type=media_type)
    except NoTextFound:
        return ParsedDocument(text="", blocks=())


def visible(text: str) -> str:
    return "".join(text.split())


def covered(source: str, chunks: list[Chunk]) -> str:
    ranges = [one for chunk in chunks for one in (*chunk.heading_spans, *chunk.spans)]
    return "".join(source[start:end] for start, end in ranges)


@given(anything, options)
@few
def test_no_visible_character_is_lost_doubled_or_moved(text: str, given_options: ChunkingOptions) -> None:
    document = parsed(text)
    chunks = chunk(document, given_options, count_tokens=None)
    assert visible(covered(document.text, chunks)) == visible(text.replace("\0", ""))


@given(anything, options)
@few
def test_no_chunk_is_above_the_hard_maximum(text: str, given_options: ChunkingOptions) -> None:
    chunks = chunk(parsed(text), given_options, count_tokens=None)
    assert all(weight(one.text) == one.weight <= given_options.hard_maximum for one in chunks)


@given(anything, options)
@few
def test_no_promise_of_structure_is_broken(text: str, given_options: ChunkingOptions) -> None:
    document = parsed(text)
    assert lint(document, chunk(document, given_options, count_tokens=None), given_options) == []


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "structure_aware"])
@given(text=anything, size=st.sampled_from([100, 300]), overlap=st.sampled_from([0, 60]))
@settings(few, max_examples=15)
def test_every_strategy_keeps_its_promises(strategy: str, text: str, size: int, overlap: int) -> None:
    document = parsed(text)
    given_options = ChunkingOptions(strategy=strategy, size=size, overlap=overlap)
    assert lint(document, chunk(document, given_options, count_tokens=None), given_options) == []


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=600) | anything, options)
@few
def test_plain_text_keeps_the_promises_too(text: str, given_options: ChunkingOptions) -> None:
    document = parsed(text, "text/plain")
    assert lint(document, chunk(document, given_options, count_tokens=None), given_options) == []


@given(anything, options)
@few
def test_the_same_input_gives_the_same_chunks(text: str, given_options: ChunkingOptions) -> None:
    first, second = (chunk(parsed(text), given_options, count_tokens=None) for _ in range(2))
    assert first == second


def letters(texts: Sequence[str]) -> list[int]:
    """A tokenizer that is much dearer than weighted characters: two tokens a code point, and four more."""
    return [2 * len(text) + 4 for text in texts]


@given(anything, options)
@settings(few, max_examples=15)
def test_no_chunk_is_above_the_models_input_limit(text: str, given_options: ChunkingOptions) -> None:
    document = parsed(text)
    limited = ChunkingOptions(
        size=given_options.size,
        overlap=given_options.overlap,
        metadata_enrichment=given_options.metadata_enrichment,
        max_tokens=500,
    )
    chunks = chunk(document, limited, count_tokens=letters)
    assert all(count <= 500 for count in letters([one.text for one in chunks]))
    assert visible(covered(document.text, chunks)) == visible(document.text)
