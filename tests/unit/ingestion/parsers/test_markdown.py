"""Markdown into blocks."""

import pytest
from hypothesis import given, settings

from app.ingestion.parsers import Block, BlockKind, ParsedDocument
from app.ingestion.parsers.markdown import parse_markdown
from tests.support.markdown import documents, lines


def kinds(document: ParsedDocument) -> list[tuple[str, int, str]]:
    return [(block.kind.value, block.depth, document.text[block.start : block.end]) for block in document.blocks]


def only(text: str) -> Block:
    (block,) = parse_markdown(text).blocks
    return block


def test_headings_of_both_styles_have_their_level_and_plain_title() -> None:
    text = "# A **b** [c](d) `e` {#q}\n\nSet *it*\nnow\n---\n\n### List<String> &amp; <b>x</b> #\n"
    blocks = parse_markdown(text).blocks
    found = [(block.kind, block.depth, block.title) for block in blocks]
    assert found == [
        (BlockKind.HEADING, 1, "A b c e"),
        (BlockKind.HEADING, 2, "Set it now"),
        (BlockKind.HEADING, 3, "List<String> & x"),
    ]


def test_a_heading_in_a_quotation_or_a_list_opens_no_section() -> None:
    assert [kind for kind, _, _ in kinds(parse_markdown("> # a\n\n- # b\n\n1. # c"))] == [
        "paragraph",
        "list_item",
        "list_item",
    ]


def test_list_items_know_their_depth_and_keep_their_continuation() -> None:
    document = parse_markdown("- one\n  two\n  - sub\n\n    more of sub\n- three")
    assert kinds(document) == [
        ("list_item", 1, "- one\n  two"),
        ("list_item", 2, "  - sub"),
        ("paragraph", 2, "    more of sub"),
        ("list_item", 1, "- three"),
    ]
    assert len({block.list_id for block in document.blocks}) == 1


def test_two_lists_are_two() -> None:
    blocks = parse_markdown("- a\n\ntext\n\n- b").blocks
    assert blocks[0].list_id != blocks[2].list_id
    assert blocks[1].list_id is None


def test_an_empty_list_item_is_kept_by_the_gap_rule() -> None:
    assert kinds(parse_markdown("- a\n-\n- b")) == [
        ("list_item", 1, "- a"),
        ("list_item", 1, "-"),
        ("list_item", 1, "- b"),
    ]


def test_text_nested_deeper_than_the_library_goes_is_kept() -> None:
    document = parse_markdown("\n".join("> " * depth + f"t{depth}" for depth in range(1, 150)))
    assert "t149" in document.text[document.blocks[-1].start : document.blocks[-1].end]


def test_link_definitions_and_footnotes_stay_where_they_are() -> None:
    assert [text for _, _, text in kinds(parse_markdown("a\n\n[r]: http://x\n\n[^1]: note\n\nb"))] == [
        "a",
        "[r]: http://x",
        "[^1]: note",
        "b",
    ]


def test_a_table_has_a_header_and_one_range_a_row() -> None:
    text = "| a | b |\n|---|:-:|\n| 1 | 2 |\n| 3 | 4 |"
    block = only(text)
    assert block.kind is BlockKind.TABLE
    assert block.opening == "| a | b |\n|---|:-:|"
    assert [text[start:end] for start, end in block.rows] == ["| 1 | 2 |", "| 3 | 4 |"]


def test_a_repeated_header_from_a_list_item_begins_no_item() -> None:
    assert only("- | a |\n  |---|\n  | 1 |").opening == "  | a |\n  |---|"


@pytest.mark.parametrize(
    ("text", "opening", "closing", "closed"),
    [
        ("```py\nx\n```", "```py", "```", True),
        ("~~~~\nx\n~~~\n~~~~~", "~~~~", "~~~~", True),
        ("```\nx", "```", "```", False),
        ("```", "```", "```", False),
        ("> ```js\n> x\n> ```", "> ```js", "> ```", True),
        ("- ```js\n  x\n  ```", "  ```js", "  ```", True),
    ],
)
def test_a_fence_knows_how_to_be_opened_and_closed_again(text: str, opening: str, closing: str, closed: bool) -> None:
    block = only(text)
    assert (block.kind, block.opening, block.closing, block.tail is not None) == (
        BlockKind.CODE,
        opening,
        closing,
        closed,
    )


def test_headings_in_code_are_code() -> None:
    assert [kind for kind, _, _ in kinds(parse_markdown("```\n# no\n```\n\n    # no\n\n# yes"))] == [
        "code",
        "code",
        "heading",
    ]


def test_front_matter_gives_the_title_and_is_kept() -> None:
    document = parse_markdown("---\ntitle: 'Регламент'\ntags: a\n---\n\ntext")
    assert document.title == "Регламент"
    assert kinds(document)[0] == ("key_value", 0, "---\ntitle: 'Регламент'\ntags: a\n---")


def test_fields_on_lines_of_their_own_are_key_values() -> None:
    block = only("Имя: Иван\n**Адрес:** Москва,\nул. Ленина\nТелефон: 12")
    assert block.kind is BlockKind.KEY_VALUE
    assert len(block.rows) == 3
    assert only("Он сказал: да.\nИ ушёл.\nСовсем.").kind is BlockKind.PARAGRAPH


def test_a_line_of_a_hundred_thousand_marks_is_text() -> None:
    assert only("- " * 100_000 + "x").kind is BlockKind.PARAGRAPH


def test_a_paragraph_underlined_by_mistake_is_text() -> None:
    assert [kind for kind, _, _ in kinds(parse_markdown("слово " * 60 + "\n---\n\nкоротко\n---"))] == [
        "paragraph",
        "heading",
    ]


def test_a_comment_has_nothing_to_read() -> None:
    assert [kind for kind, _, _ in kinds(parse_markdown("<!-- a\nb -->\n\n<!-- c --> text"))] == ["rule", "paragraph"]


@given(documents | lines)
@settings(max_examples=100, deadline=None)
def test_blocks_are_in_order_and_leave_nothing_out(text: str) -> None:
    document = parse_markdown(text)
    done = 0
    for block in document.blocks:
        assert done <= block.start < block.end <= len(document.text)
        assert not document.text[done : block.start].strip()
        done = block.end
    assert not document.text[done:].strip()
