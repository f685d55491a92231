"""The tokenizer against worked examples, and against the `tokenizers` library on the real pieces."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from app.clients.local_model.q4_file import Q4File
from app.clients.local_model.unigram import UnigramTokenizer
from app.clients.local_model.weights import locate_weights
from tests.support.local_model import TINY_PIECES

ALPHABET = st.one_of(
    st.characters(min_codepoint=32, max_codepoint=0x24F),
    st.characters(min_codepoint=0x400, max_codepoint=0x4FF),
    st.characters(min_codepoint=0x3040, max_codepoint=0x30FF),
    st.characters(min_codepoint=0x4E00, max_codepoint=0x50FF),
    st.characters(min_codepoint=0x600, max_codepoint=0x6FF),
    st.characters(min_codepoint=0x1F300, max_codepoint=0x1F6FF),
    st.sampled_from("ﷺﬁ①Å가\u0301"),
)
SAMPLES = (
    "Перед включением насоса проверьте давление.",
    "The quick brown fox, v1.2.3 — ERR_0x80070005!",
    "如果忘记密码,可以在登录页面点击找回。",
    "カタカナとひらがな、漢字",
    "ﷺ" * 200,
    "tab\tand\nline  two   spaces",
    "",
)


def tiny() -> UnigramTokenizer:
    return UnigramTokenizer(
        pieces=TINY_PIECES, character_map={0xFF21: "a"}, unknown_id=3, control_ids=frozenset({0, 1, 2, 3, 13})
    )


def names(ids: list[int]) -> list[str]:
    return [TINY_PIECES[piece_id][0] for piece_id in ids]


def test_the_most_probable_split_wins_not_the_longest_piece() -> None:
    assert names(tiny().encode("ab")) == ["\u2581ab"]
    assert names(tiny().encode("abc")) == ["\u2581ab", "c"]
    assert names(tiny().encode("cab")) == ["\u2581", "c", "ab"]


def test_of_equal_splits_the_one_with_the_longest_last_piece_is_taken() -> None:
    pieces = (("<unk>", 0.0), ("\u2581", -1.0), ("a", -2.0), ("b", -2.0), ("ab", -4.0))
    tokenizer = UnigramTokenizer(pieces=pieces, character_map={}, unknown_id=0, control_ids=frozenset({0}))
    assert tokenizer.encode("ab") == [1, 4]


def test_neighbouring_unknown_characters_are_one_piece() -> None:
    assert names(tiny().encode("xyz")) == ["\u2581", "<unk>"]
    assert names(tiny().encode("axyb")) == ["\u2581", "a", "<unk>", "b"]


def test_a_document_cannot_write_control_pieces() -> None:
    control = {0, 1, 2, 13}
    for text in ("<s>", "</s>", "<mask>", "a</s>b", "<pad>"):
        assert control.isdisjoint(tiny().encode(text))


def test_white_space_and_nul_make_no_difference() -> None:
    plain = tiny().encode("ab c")
    assert tiny().encode("  ab   c ") == plain
    assert tiny().encode("a\0b \u2581c") == plain
    assert tiny().encode(" \u2581 ") == []


def test_compatibility_characters_are_folded() -> None:
    assert tiny().encode("ａb") == tiny().encode("ab")
    assert tiny().encode("\uff21") == tiny().encode("A")  # NFKC comes first: the map never sees U+FF21


def test_the_limit_cuts_and_stops() -> None:
    assert tiny().encode("ab c " * 50, limit=3) == tiny().encode("ab c " * 50)[:3]


def test_a_long_word_without_spaces_is_split_in_linear_time() -> None:
    assert len(tiny().encode("a" * 50_000)) == 50_001


def test_lone_surrogates_are_unknown_rather_than_an_error() -> None:
    assert names(tiny().encode("\ud800")) == ["\u2581", "<unk>"]


@pytest.fixture(scope="module")
def pair() -> tuple[UnigramTokenizer, Tokenizer, dict[int, str]]:
    """Ours, and the library's over the same pieces."""
    weights = Q4File.open(locate_weights())
    pieces, unknown = weights.pieces(), weights.sizes.unknown_id
    control = frozenset({0, 1, 2, 3, len(pieces) - 1})
    ours = UnigramTokenizer(pieces=pieces, character_map=weights.character_map, unknown_id=unknown, control_ids=control)
    library = Tokenizer(models.Unigram(pieces, unk_id=unknown, byte_fallback=False))
    library.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always", split=True)
    return ours, library, weights.character_map


def library_ids(library: Tokenizer, character_map: dict[int, str], text: str) -> list[int]:
    folded = unicodedata.normalize("NFKC", text.replace("\0", "")).translate(character_map)
    words = " ".join(folded.replace("\u2581", " ").split(" ")).split(" ")
    joined = " ".join(word for word in words if word)
    return list(library.encode(joined, add_special_tokens=False).ids) if joined else []


@pytest.mark.model
@pytest.mark.parametrize("text", SAMPLES)
def test_ids_are_those_of_the_tokenizers_library(
    pair: tuple[UnigramTokenizer, Tokenizer, dict[int, str]], text: str
) -> None:
    ours, library, character_map = pair
    assert ours.encode(text) == library_ids(library, character_map, text)


@pytest.mark.model
@settings(max_examples=300, deadline=None)
@given(text=st.text(ALPHABET, max_size=60))
def test_ids_of_any_text_are_those_of_the_tokenizers_library(
    pair: tuple[UnigramTokenizer, Tokenizer, dict[int, str]], text: str
) -> None:
    ours, library, character_map = pair
    assert ours.encode(text) == library_ids(library, character_map, text)
