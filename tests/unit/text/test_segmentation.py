"""Where a text may be cut."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text import segmentation


def split(ends: Sequence[int], text: str) -> list[str]:
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def test_sentences_of_several_scripts() -> None:
    text = "Первое. Second one! 第三句。第四句。"
    assert split(segmentation.sentence_ends(text), text) == ["Первое. ", "Second one! ", "第三句。", "第四句。"]


def test_a_line_break_inside_a_paragraph_ends_no_sentence() -> None:
    text = "one long\nsentence here. Another"
    assert split(segmentation.sentence_ends(text), text) == ["one long\nsentence here. ", "Another"]
    assert split(segmentation.raw_sentence_ends(text), text)[0] == "one long\n"


@pytest.mark.parametrize(
    "text", ["См. п. 2.1 договора", "Иванов И. И. подписал", "J. K. Rowling wrote", "на ул. Ленина, д. 5", "Dr. Smith"]
)
def test_abbreviations_and_initials_end_no_sentence(text: str) -> None:
    assert segmentation.sentence_ends(text) == [len(text)]


def test_offsets_are_code_points_also_behind_astral_characters() -> None:
    text = "😀😀 one. Two."
    assert split(segmentation.sentence_ends(text), text) == ["😀😀 one. ", "Two."]


def test_grapheme_clusters_stay_whole() -> None:
    text = "e\u0301👩‍👩‍👧x"
    assert split(segmentation.grapheme_ends(text), text) == ["e\u0301", "👩‍👩‍👧", "x"]


def test_words_without_spaces_are_found_and_keep_their_punctuation() -> None:
    thai = "เราต้องใช้พจนานุกรม"
    assert split(segmentation.word_ends(thai), thai) == ["เรา", "ต้อง", "ใช้", "พจนานุกรม"]
    assert split(segmentation.word_ends("one, two"), "one, two") == ["one, ", "two"]


def test_cells_end_behind_their_bar_but_not_behind_an_escaped_one() -> None:
    assert split(segmentation.cell_ends(r"| a | b\|c |"), r"| a | b\|c |") == ["| ", "a | ", r"b\|c |"]


ALL = [
    segmentation.sentence_ends,
    segmentation.raw_sentence_ends,
    segmentation.paragraph_ends,
    segmentation.line_ends,
    segmentation.cell_ends,
    segmentation.spaced_word_ends,
    segmentation.word_ends,
    segmentation.grapheme_ends,
    segmentation.code_point_ends,
]


@pytest.mark.parametrize("ends", ALL)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"]))
    | st.text(st.sampled_from("a. |\\\nж设😀\u0301г"), max_size=60)
)
def test_pieces_are_the_whole_text(ends: Callable[[str], Sequence[int]], text: str) -> None:
    found = list(ends(text))
    assert found == sorted(set(found))
    assert "".join(split(found, text)) == text
