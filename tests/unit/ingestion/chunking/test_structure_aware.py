"""Where the default strategy cuts, and what it repeats."""

from itertools import pairwise

import pytest

from app.domain.documents import ChunkingOptions
from app.domain.errors import DocumentUnreadable
from app.ingestion.chunking import chunk
from app.text.weights import weight
from tests.support.chunking import chunks_of, contents, markdown, sentences


def test_blocks_are_collected_up_to_the_target_and_cut_between() -> None:
    paragraphs = [f"{number} " + "слово " * 60 + "конец." for number in range(5)]
    assert contents("\n\n".join(paragraphs)) == [
        "\n\n".join(paragraphs[:2]),
        "\n\n".join(paragraphs[2:4]),
        paragraphs[4],
    ]


def test_one_paragraph_stays_whole_up_to_the_hard_maximum() -> None:
    whole = "слово " * 230 + "к"
    assert weight(whole) == 1381
    assert contents(whole) == [whole]


def test_an_over_long_paragraph_is_cut_between_sentences() -> None:
    found = contents(sentences(60))
    assert len(found) == 3
    assert all(one.endswith("деле.") and one.startswith("Предложение") for one in found)
    assert all(weight(one) <= 900 for one in found)


def test_overlap_repeats_whole_sentences_and_is_in_no_span() -> None:
    document = markdown(sentences(60))
    found = chunk(document, ChunkingOptions(overlap=120), count_tokens=None)
    for before, one in pairwise(found):
        (start, end) = one.spans[0]
        repeated = one.content[: len(one.content) - (end - start)]
        assert repeated.startswith("Предложение")
        assert 40 <= weight(repeated) <= 120
        assert before.content.endswith(repeated.rstrip())
        assert before.spans[0][1] < start


def test_overlap_is_words_when_a_sentence_is_longer() -> None:
    document = markdown("слово " * 400)
    first, second = chunk(document, ChunkingOptions(overlap=50), count_tokens=None)[:2]
    repeated = second.content[: len(second.content) - (second.spans[0][1] - second.spans[0][0])]
    assert repeated == "слово " * 8
    assert first.content.endswith("слово")


def test_no_overlap_between_blocks_or_in_tables_and_code() -> None:
    code = "```\n" + "\n".join(f"line {number} of code" for number in range(90)) + "\n```"
    rows = "| a | b |\n|---|---|\n" + "\n".join(f"| row {number} | some text here |" for number in range(60))
    paragraphs = "\n\n".join("слово " * 100 for _ in range(4))
    document = markdown(f"{code}\n\n# T\n\n{rows}\n\n# P\n\n{paragraphs}")
    with_overlap, without = (
        [one.text for one in chunk(document, ChunkingOptions(overlap=overlap), count_tokens=None)]
        for overlap in (120, 0)
    )
    assert with_overlap == without


def test_a_list_is_cut_between_items_and_an_item_keeps_its_continuation() -> None:
    items = [f"- пункт {number} " + "слово " * 20 + "\n  продолжение\n\n  ещё абзац" for number in range(12)]
    found = contents("\n".join(items))
    assert len(found) == 3
    assert all(one.startswith("- пункт") and one.endswith("ещё абзац") for one in found)


def test_an_introduction_goes_with_the_list_it_introduces() -> None:
    items = "\n".join(f"- пункт {number} " + "слово " * 20 for number in range(12))
    assert contents(f"Перечень:\n\n{items}")[0].startswith("Перечень:\n\n- пункт 0")


def test_fields_are_cut_between_lines() -> None:
    found = contents("\n".join(f"Поле {number}: значение " + "слово " * 12 for number in range(24)))
    assert len(found) > 1
    assert all(one.startswith("Поле") for one in found)


def test_every_fragment_of_a_table_has_the_header_and_whole_rows() -> None:
    rows = [f"| ряд {number} | {'текст ' * 12}|" for number in range(30)]
    found = contents("| имя | что |\n|---|---|\n" + "\n".join(rows))
    assert len(found) > 2
    assert all(one.startswith("| имя | что |\n|---|---|\n| ряд") for one in found)
    assert [line for one in found for line in one.split("\n")[2:]] == rows


def test_a_row_that_fits_nowhere_is_cut_between_cells_under_the_header() -> None:
    cells = [f"ячейка {number} " + "слово " * 60 for number in range(6)]
    found = contents("| a |" + " x |" * 5 + "\n" + "|---" * 6 + "|\n| " + " | ".join(cells) + " |")
    assert len(found) > 2
    assert all(one.startswith("| a |") and one.endswith("|") for one in found)


def test_a_header_too_large_to_repeat_is_kept_once() -> None:
    header = "| " + "заголовок " * 100 + "| b |"
    rows = [f"| ряд {number} | {'слово ' * 30}|" for number in range(10)]
    found = contents("\n".join([header, "|---|---|", *rows]))
    assert sum("заголовок" in one for one in found) == 1
    assert found[-1].startswith("| ряд")


def test_every_piece_of_code_is_between_the_same_fences() -> None:
    lines = [f"    call({number}, 'аргумент')" for number in range(80)]
    found = contents("~~~~python\n" + "\n".join(lines) + "\n~~~~")
    assert len(found) > 2
    assert all(one.startswith("~~~~python\n    call(") and one.endswith("\n~~~~") for one in found)
    assert [line for one in found for line in one.split("\n")[1:-1]] == lines


def test_code_is_cut_at_blank_lines_first() -> None:
    functions = ["def f():\n" + "\n".join("    x = 1" for _ in range(40)) for _ in range(4)]
    found = contents("```py\n" + "\n\n".join(functions) + "\n```")
    assert all(one.startswith("```py\ndef f():") for one in found)


def test_a_fence_too_large_to_repeat_becomes_an_indented_block() -> None:
    lines = [f"line {number} " + "word " * 10 for number in range(40)]
    found = contents("```" + "info " * 200 + "\n" + "\n".join(lines) + "\n```")
    assert sum("info" in one for one in found) == 1
    assert "\n    line 1 word" in found[1]
    assert not any(one.startswith("```") for one in found[1:-1])


def test_a_fence_that_the_source_never_closes_is_closed() -> None:
    (one,) = chunks_of("text\n\n```\ncode")
    assert one.content == "text\n\n```\ncode\n```"
    assert one.spans == ((0, 14),)


def test_a_few_words_at_the_end_of_a_section_are_no_chunk_of_their_own() -> None:
    text = "слово " * 145 + "\n\n" + "ещё " * 20
    assert contents(text) == [text.replace(" \n", "\n").strip()]


@pytest.mark.parametrize("cluster", ["e\u0301\u0302", "👩‍👩‍👧"])
def test_a_cut_never_falls_into_a_grapheme_cluster(cluster: str) -> None:
    found = contents(cluster * 800)
    assert len(found) > 1
    assert all(len(one) % len(cluster) == 0 and one.startswith(cluster) for one in found)


def test_a_cluster_larger_than_a_chunk_is_cut_between_code_points() -> None:
    found = contents("e" + "\u0301" * 3000)
    assert "".join(found) == "e" + "\u0301" * 3000


def test_the_hard_maximum_holds_with_label_and_header_at_the_smallest_size() -> None:
    rows = "\n".join(f"| {number} | {'слово ' * number}|" for number in range(40))
    text = "# " + "Заголовок раздела " * 12 + "\n\n| a | b |\n|---|---|\n" + rows
    found = chunks_of(text, size=100, metadata_enrichment=True)
    assert max(one.weight for one in found) <= 156
    assert found[0].text.startswith("[Section: Заголовок…]")


def test_chunks_above_the_models_limit_are_cut_again_by_the_same_rules() -> None:
    rows = "\n".join(f"| {number} | 12 345,67 | 89 012,34 |" for number in range(30))
    options = ChunkingOptions(max_tokens=512)
    found = chunk(
        markdown("| a | b | c |\n|---|---|---|\n" + rows),
        options,
        count_tokens=lambda texts: [2 + sum(map(str.isdigit, text)) + text.count("|") for text in texts],
    )
    plain = chunk(markdown("| a | b | c |\n|---|---|---|\n" + rows), options, count_tokens=None)
    assert len(found) > len(plain)
    assert all(one.text.startswith("| a | b | c |\n|---|---|---|\n| ") for one in found)
    assert [one.index for one in found] == list(range(len(found)))


def test_a_model_that_cannot_hold_one_character_is_an_error_with_its_limit() -> None:
    with pytest.raises(DocumentUnreadable, match="takes 8 tokens"):
        chunk(markdown("text"), ChunkingOptions(max_tokens=8), count_tokens=lambda texts: [9 for _ in texts])
