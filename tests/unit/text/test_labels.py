"""The label before the content."""

from hypothesis import given
from hypothesis import strategies as st

from app.text.labels import embedded_text, section_label
from app.text.weights import weight


def test_the_label_is_followed_by_a_blank_line_and_the_content() -> None:
    made = embedded_text("Проверка", ["Регламент", "2. Диагностика"], enrichment=True, chunk_size=900)
    assert made.text == "[Section: Регламент › 2. Диагностика]\n\nПроверка"
    assert made.text[made.content_start :] == "Проверка"


def test_without_a_path_or_enrichment_the_text_is_the_content() -> None:
    assert embedded_text("x", [], enrichment=True, chunk_size=900).text == "x"
    assert embedded_text("x", ["A"], enrichment=False, chunk_size=900).text == "x"


def test_the_deepest_elements_that_fit_are_kept() -> None:
    path = ["A" * 60, "b " * 50, "c " * 50, "last"]
    assert section_label(path) == f"[Section: {path[2]} › last]\n\n"


def test_a_last_element_that_is_too_long_is_cut_at_a_word() -> None:
    label = section_label(["слово " * 60])
    assert label.endswith("слово…]\n\n")
    assert weight(label) <= 180 + len("[Section: ]\n\n")


@given(st.lists(st.text(st.sampled_from("ab 设ж"), min_size=1, max_size=120), min_size=1, max_size=4))
def test_a_label_holds_no_more_than_its_limit(path: list[str]) -> None:
    assert len(section_label(path)) <= 180 + len("[Section: ]\n\n")
