"""Plain text into blocks."""

from app.ingestion.parsers import BlockKind
from app.ingestion.parsers.plain import parse_plain


def test_paragraphs_lie_between_blank_lines() -> None:
    document = parse_plain("one\ntwo\r\n\r\n\r\n# three")
    assert [document.text[block.start : block.end] for block in document.blocks] == ["one\ntwo", "# three"]
    assert {block.kind for block in document.blocks} == {BlockKind.PARAGRAPH}


def test_bullets_make_a_list_with_depths_and_an_introduction() -> None:
    document = parse_plain("Нужно:\n• один\n  - под\n    и ещё\n• два")
    assert [(block.kind, block.depth) for block in document.blocks] == [
        (BlockKind.PARAGRAPH, 0),
        (BlockKind.LIST_ITEM, 1),
        (BlockKind.LIST_ITEM, 2),
        (BlockKind.LIST_ITEM, 1),
    ]
    assert document.text[document.blocks[2].start : document.blocks[2].end] == "  - под\n    и ещё"


def test_one_dash_makes_no_list() -> None:
    assert [block.kind for block in parse_plain("- Да, - сказал он.\nИ ушёл.").blocks] == [BlockKind.PARAGRAPH]


def test_fields_on_lines_of_their_own_are_key_values() -> None:
    (block,) = parse_plain("Name: x\nPhone: 1\nCity: y").blocks
    assert block.kind is BlockKind.KEY_VALUE
