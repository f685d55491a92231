"""Weighted characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text.weights import WeightIndex, weight


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("word слово", 10),
        ("设备", 6),
        ("カタカナ", 12),
        ("한글", 6),
        ("。、", 2),
        ("e\u0301", 2),
        ("a" * 63, 63),
        ("a" * 64, 192),
        ("\U0001f600" * 31, 31),
        ("\U0001f600" * 32, 96),
        ("x " + "a" * 64 + " y", 196),
        ("设" * 64, 192),
    ],
)
def test_weights_of_examples(text: str, expected: int) -> None:
    assert weight(text) == expected


@given(st.text(st.sampled_from("aж设 \n\U0001f600"), max_size=200), st.data())
def test_a_range_never_weighs_less_in_the_index_than_its_slice(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    index = WeightIndex(text)
    assert index(start, end) >= weight(text[start:end])
    assert index(0, len(text)) == weight(text)
