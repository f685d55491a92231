"""Breadcrumbs and whose headings are whose."""

from app.domain.documents import ChunkingOptions
from app.ingestion.chunking import chunk
from tests.support.chunking import chunks_of, contents, markdown


def paths(text: str) -> list[tuple[tuple[str, ...], tuple[int, ...]]]:
    return [(one.section_path, one.section_depths) for one in chunks_of(text)]


def test_text_before_the_first_heading_has_an_empty_path() -> None:
    assert paths("intro\n\n# A\n\ntext") == [((), ()), (("A",), (1,))]


def test_skipped_levels_are_kept_and_a_higher_heading_closes_lower_ones() -> None:
    assert paths("# A\n\nx\n\n### B\n\nx\n\n## C\n\nx\n\n### D\n\nx\n\n# E\n\nx") == [
        (("A",), (1,)),
        (("A", "B"), (1, 3)),
        (("A", "C"), (1, 2)),
        (("A", "C", "D"), (1, 2, 3)),
        (("E",), (1,)),
    ]


def test_siblings_never_share_a_chunk_however_small() -> None:
    assert contents("## A\n\nx\n\n## B\n\ny") == ["x", "y"]


def test_blocks_of_one_section_share_a_chunk() -> None:
    assert contents("# A\n\nx\n\n- y\n- z\n\n---\n\nlast") == ["x\n\n- y\n- z\n\n---\n\nlast"]


def test_a_heading_without_content_goes_to_the_first_chunk_below() -> None:
    text = "# A\n\n## B\n\ntext"
    (one,) = chunks_of(text)
    assert [text[start:end] for start, end in one.heading_spans] == ["# A", "## B"]
    assert one.content == "text"
    assert one.section_path == ("A", "B")


def test_only_the_first_chunk_of_a_section_has_its_heading() -> None:
    found = chunks_of("# A\n\n" + "\n\n".join("слово " * 100 for _ in range(3)))
    assert [bool(one.heading_spans) for one in found] == [True, False, False]


def test_a_section_of_a_rule_alone_counts_as_empty() -> None:
    text = "# A\n\n---\n\n## B\n\ntext"
    (one,) = chunks_of(text)
    assert [text[start:end] for start, end in one.heading_spans] == ["# A", "---", "## B"]


def test_headings_at_the_end_are_a_chunk_of_their_own() -> None:
    text = "# A\n\nx\n\n## B\n\n## C"
    last = chunks_of(text)[-1]
    assert (last.content, last.section_path) == ("## C", ("A", "C"))
    assert [text[start:end] for start, end in last.heading_spans] == ["## B"]


def test_a_title_from_metadata_leads_the_path_without_a_level_one_heading() -> None:
    front = "---\ntitle: T\n---\n\n"
    assert paths(front + "## B\n\nx")[-1] == (("T", "B"), (0, 2))
    assert paths(front + "# A\n\nx")[-1] == (("A",), (1,))


def test_the_label_is_before_the_content_and_spans_slice_the_source() -> None:
    document = markdown("# Регламент\n\n## 2. Диагностика\n\nПроверка баланса.")
    (one,) = chunk(document, ChunkingOptions(), count_tokens=None)
    assert one.text == "[Section: Регламент › 2. Диагностика]\n\nПроверка баланса."
    assert [document.text[start:end] for start, end in one.spans] == ["Проверка баланса."]
