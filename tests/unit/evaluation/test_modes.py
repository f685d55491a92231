import pytest

from app.domain.errors import InvalidInput
from app.domain.search import SearchOverrides
from app.evaluation.modes import MODES, parse_modes


def test_each_mode_switches_what_its_name_says() -> None:
    assert {name: mode.overrides(top_k=7) for name, mode in MODES.items()} == {
        "dense": SearchOverrides(top_k=7, dense=True, lexical=False, rerank=False),
        "lexical": SearchOverrides(top_k=7, dense=False, lexical=True, rerank=False),
        "hybrid": SearchOverrides(top_k=7, dense=True, lexical=True, rerank=False),
        "hybrid+rerank": SearchOverrides(top_k=7, dense=True, lexical=True, rerank=True),
    }


def test_a_list_of_modes_keeps_its_order_and_drops_repetitions() -> None:
    assert [mode.name for mode in parse_modes(" hybrid+rerank, Dense,dense,")] == ["hybrid+rerank", "dense"]


def test_an_unknown_mode_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"unknown mode 'bm25'; known: dense, lexical, hybrid, hybrid\+rerank"):
        parse_modes("dense,bm25")


def test_no_mode_at_all_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no mode is given; known: dense"):
        parse_modes(" , ")
