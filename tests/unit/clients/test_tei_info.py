"""What /info says, and how texts are put into requests."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.clients.tei_info import TeiInfo, batches, halves, parse_info


def test_the_description_of_tei_1_9_is_read() -> None:
    body = {
        "model_id": "BAAI/bge-m3",
        "model_sha": None,
        "model_type": {"embedding": {"pooling": "cls"}},
        "max_concurrent_requests": 512,
        "max_input_length": 8192,
        "max_batch_requests": None,
        "max_client_batch_size": 64,
        "auto_truncate": True,
    }
    info = parse_info(json.dumps(body).encode())
    assert info is not None
    assert (info.kind, info.max_input_length, info.batch_size, info.parallel_requests(4)) == ("embedding", 8192, 64, 4)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>welcome</html>",
        b"[]",
        b"{}",
        b'{"model_id": ""}',
        b'{"model_id": "m", "max_input_length": "long"}',
        b'{"model_id": "m", "max_client_batch_size": 0}',
        b'{"model_id": "\xff"}',
        b"[" * 100_000,
    ],
)
def test_what_is_not_teis_description_is_nothing(body: bytes) -> None:
    assert parse_info(body) is None


def test_a_batch_is_never_larger_than_half_of_the_servers_permits() -> None:
    info = TeiInfo(model_id="m", max_client_batch_size=64, max_concurrent_requests=10)
    assert (info.batch_size, info.parallel_requests(4)) == (5, 1)


def test_a_server_with_one_permit_gets_one_text_at_a_time() -> None:
    info = TeiInfo(model_id="m", max_concurrent_requests=1)
    assert (info.batch_size, info.parallel_requests(4)) == (1, 1)


@given(st.lists(st.integers(1, 50)), st.integers(1, 7), st.integers(1, 100))
def test_batches_hold_every_text_once_in_order_and_keep_to_both_bounds(
    sizes: list[int], max_count: int, max_bytes: int
) -> None:
    parts = batches(sizes, max_count=max_count, max_bytes=max_bytes)
    assert [index for part in parts for index in part] == list(range(len(sizes)))
    for part in parts:
        assert 1 <= len(part) <= max_count
        assert len(part) == 1 or sum(sizes[index] for index in part) <= max_bytes


@given(st.integers(0, 100), st.integers(2, 100))
def test_halves_are_both_smaller_and_make_the_whole(start: int, length: int) -> None:
    first, second = halves(range(start, start + length))
    assert [*first, *second] == list(range(start, start + length))
    assert first
    assert second
