"""The normalised form that spans refer to."""

from hypothesis import given
from hypothesis import strategies as st

from app.text.normalise import normalise


def test_line_ends_become_line_feeds() -> None:
    assert normalise("a\r\nb\rc\nd") == "a\nb\nc\nd"


def test_three_and_more_line_breaks_become_two_also_with_blanks_between() -> None:
    assert normalise("a\n \n\t\n\nb") == "a\n\nb"


def test_nul_marks_and_white_space_at_line_ends_go() -> None:
    assert normalise("\ufeffa\0b \t\nc\u00a0") == "ab\nc"


def test_indentation_and_inner_spaces_stay() -> None:
    assert normalise("  a  b") == "  a  b"


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    assert normalise("a\ud800b") == "a\ufffdb"


@given(st.text())
def test_it_is_idempotent_and_keeps_what_is_visible(text: str) -> None:
    text = text.replace("\0", "").removeprefix("\ufeff")
    once = normalise(text)
    assert normalise(once) == once or once.startswith("\ufeff")
    assert "".join(once.split()) == "".join(text.split())
