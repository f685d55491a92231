"""The reranker's client against servers on real sockets: dialects, parts, faults, scales."""

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from app.clients.circuit import CircuitBreaker
from app.clients.http import Retries
from app.clients.rerank import HttpReranker
from app.domain.deadline import Deadline
from app.domain.errors import RerankerUnavailable, UpstreamRefused
from app.domain.ports import RerankCandidate, RerankQuery, RerankScores
from tests.support.aio import run
from tests.support.tei_server import (
    MISSING_FIELD,
    NOT_FOUND,
    OVERLOADED,
    TOO_LARGE,
    UNAVAILABLE,
    Hang,
    Late,
    Reply,
    Reset,
    TeiServer,
    refusing_address,
    reranker_server,
    serving,
    tei_error,
)

FAST = Retries(attempts=2, base_s=0.001, max_s=0.01)
QUERY = "pump pressure limit"
TEXTS = ("the pump has a limit", "nothing of it", "pump pressure limit is two bar")
EXPECTED = tuple(1 / (1 + math.exp(-logit)) for logit in (8 * 2 / 3 - 4, -4.0, 4.0))


def soon() -> Deadline:
    return Deadline.after(10.0)


def candidates(texts: Sequence[str]) -> list[RerankCandidate]:
    return [RerankCandidate(chunk_id=uuid4(), text=text, fused=0.1, cosine=None, lexical=None) for text in texts]


async def rank(reranker: HttpReranker, texts: Sequence[str] = TEXTS, deadline: Deadline | None = None) -> RerankScores:
    return await reranker.rank(RerankQuery(text=QUERY, vectors=None), candidates(texts), deadline or soon())


@asynccontextmanager
async def reranking(url: str, **options: Any) -> AsyncIterator[HttpReranker]:
    reranker = HttpReranker(url=url, **({"api_key": None, "retries": FAST} | options))
    try:
        yield reranker
    finally:
        await reranker.aclose()


def story(
    body: Callable[[TeiServer, HttpReranker], Awaitable[None]], server: TeiServer | None = None, **options: Any
) -> None:
    async def tell(running: TeiServer) -> None:
        async with reranking(running.url, **options) as reranker:
            await body(running, reranker)

    with serving(server or reranker_server()) as running:
        run(tell(running))


def posts(server: TeiServer) -> list[str]:
    return [request.path for request in server.received if request.method == "POST"]


def assert_scores(answer: RerankScores, expected: Sequence[float | None] = EXPECTED) -> None:
    assert answer.scores == pytest.approx(tuple(expected), abs=1e-6)


# dialects


def test_tei_scores_come_back_in_the_candidates_order() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        answer = await rank(reranker)
        assert_scores(answer)
        assert (answer.dialect, answer.model) == ("tei", "BAAI/bge-reranker-v2-m3")
        assert answer.relevance_scale == "sigmoid"

    story(body)


@pytest.mark.parametrize(
    ("routes", "dialect", "asked"),
    [
        ({"/v1/rerank": "documents"}, "tei-v1", ["/rerank", "/v1/rerank"]),
        ({"/rerank": "documents"}, "jina", ["/rerank", "/v1/rerank", "/rerank"]),
        ({"/v2/rerank": "documents"}, "cohere", ["/rerank", "/v1/rerank", "/rerank", "/v2/rerank"]),
    ],
)
def test_other_dialects_are_found_in_order_and_remembered(
    routes: dict[str, str], dialect: str, asked: list[str]
) -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        answer = await rank(reranker)
        assert_scores(answer)
        assert (answer.dialect, answer.model) == (dialect, "wrapped-model")
        assert posts(server) == [*asked, asked[-1]]
        server.received.clear()
        await rank(reranker)
        assert [request.path for request in server.received] == [asked[-1]]

    story(body, reranker_server(rerank_routes=routes, wrapped=True, serves_info=False))


def test_the_v1_route_may_answer_with_a_bare_array_and_the_first_with_a_wrapped_one() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        assert_scores(await rank(reranker))

    story(body, reranker_server(rerank_routes={"/v1/rerank": "documents"}, wrapped=False, serves_info=False))
    story(body, reranker_server(wrapped=True))


def test_a_model_is_named_to_servers_that_hold_several() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        answer = await rank(reranker)
        assert server.requests("/v1/rerank")[-1].json["model"] == "bge-reranker-v2-m3"
        assert answer.model == "bge-reranker-v2-m3"

    routes = {"/v1/rerank": "documents"}
    story(body, reranker_server(rerank_routes=routes, wrapped=True, serves_info=False), model="bge-reranker-v2-m3")


def test_a_server_that_changes_its_dialect_is_met_again_within_the_same_call() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        await rank(reranker)
        server.rerank_routes, server.wrapped = {"/v1/rerank": "documents"}, True
        answer = await rank(reranker)
        assert_scores(answer)
        assert answer.dialect == "tei-v1"

    story(body)


def test_fields_that_are_no_longer_known_are_not_asked_for_in_halves() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        await rank(reranker)
        server.received.clear()
        server.fail_next("/rerank", MISSING_FIELD)
        assert_scores(await rank(reranker))
        assert [len(request.json["texts"]) for request in server.requests("/rerank")] == [3, 1, 3]

    story(body)


def test_many_first_calls_at_once_find_the_dialect_once() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        for answer in await asyncio.gather(*(rank(reranker) for _ in range(8))):
            assert_scores(answer)
        assert len(server.requests("/info")) == 1
        assert posts(server).count("/rerank") == 1
        assert posts(server).count("/v1/rerank") == 1 + 8

    story(body, reranker_server(rerank_routes={"/v1/rerank": "documents"}, wrapped=True, serves_info=False))


def test_a_server_without_any_rerank_route_is_refused_and_then_left_alone() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        with pytest.raises(UpstreamRefused, match="no known rerank route") as caught:
            await rank(reranker)
        assert caught.value.cause == "status_4xx"
        server.received.clear()
        with pytest.raises(RerankerUnavailable) as left_alone:
            await rank(reranker)
        assert left_alone.value.cause == "circuit_open"
        assert not server.received

    story(body, reranker_server(rerank_routes={}, serves_info=False))


@pytest.mark.parametrize("fault", [OVERLOADED, UNAVAILABLE, Reset(), Reply(401), tei_error(424, "Backend", "NaN")])
def test_trouble_is_never_taken_for_another_dialect(fault: Reply | Reset) -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        server.always("/rerank", fault)
        with pytest.raises((RerankerUnavailable, UpstreamRefused)):
            await rank(reranker)
        assert set(posts(server)) == {"/rerank"}

    story(body)


@pytest.mark.parametrize("suffix", ["/", "/rerank", "/v1", "/v1/rerank/"])
def test_what_people_copy_with_the_address_does_no_harm(suffix: str) -> None:
    async def tell(url: str) -> None:
        async with reranking(url + suffix) as reranker:
            assert_scores(await rank(reranker))

    with serving(reranker_server()) as server:
        run(tell(server.url))


def test_an_embedding_model_at_the_address_is_refused_by_name() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        with pytest.raises(UpstreamRefused, match="BAAI/bge-m3"):
            await rank(reranker)
        assert not posts(server)

    story(body, TeiServer())


@pytest.mark.parametrize(
    "fault",
    [
        tei_error(424, "Backend", "Backend error: model is not a re-ranker model"),
        Reply(400, b'{"error": {"message": "The model does not support Rerank (Score) API", "code": 400}}'),
        Reply(501, b'{"error": {"message": "This server does not support reranking. Start it with `--reranking`"}}'),
        Reply(401),
    ],
)
def test_a_server_that_will_never_rerank_is_left_alone_at_once(fault: Reply) -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        server.always("/rerank", fault)
        with pytest.raises(UpstreamRefused):
            await rank(reranker)
        with pytest.raises(RerankerUnavailable, match="left alone"):
            await rank(reranker)
        assert posts(server) == ["/rerank"]

    story(body)


@pytest.mark.parametrize("answer", [Reply(200, b"<html>hello</html>", "text/html"), Reply(500), Reply(401)])
def test_a_server_that_answers_info_oddly_is_asked_to_rerank_all_the_same(answer: Reply) -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        server.always("/info", answer)
        assert_scores(await rank(reranker))

    story(body)


def test_the_key_goes_with_every_request() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        assert_scores(await rank(reranker))
        assert {request.headers["authorization"] for request in server.received} == {"Bearer s3cret"}

    story(body, reranker_server(api_key="s3cret"), api_key="s3cret")


# parts


def many(count: int) -> list[str]:
    return [f"pump number{n}" if n % 3 else f"pump pressure number{n}" for n in range(count)]


def many_scores(count: int) -> list[float]:
    return [1 / (1 + math.exp(-(8 * (1 if n % 3 else 2) / 3 - 4))) for n in range(count)]


def test_requests_are_no_larger_than_the_servers_batch_and_come_together_again() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        assert_scores(await rank(reranker, many(11)), many_scores(11))
        lengths = [len(request.json["texts"]) for request in server.requests("/rerank")]
        assert sorted(lengths[1:]) == [3, 4, 4]

    story(body, reranker_server(max_client_batch_size=4))


def test_requests_are_no_larger_than_the_bytes_of_a_request() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        texts = ["я" * 300] * 9
        assert len((await rank(reranker, texts)).scores) == 9
        assert max(len(request.body) for request in server.requests("/rerank")) < 1_500

    story(body, reranker_server(payload_limit=1_500), max_request_bytes=1_300)


@pytest.mark.parametrize("status", [413, 422])
def test_a_part_that_is_too_large_for_the_server_is_halved(status: int) -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        await rank(reranker)
        server.max_client_batch_size = 4
        server.received.clear()
        assert_scores(await rank(reranker, many(8)), many_scores(8))
        assert [len(request.json["texts"]) for request in server.requests("/rerank")] == [8, 4, 4]
        server.received.clear()
        assert_scores(await rank(reranker, many(8)), many_scores(8))
        assert [len(request.json["texts"]) for request in server.requests("/rerank")] == [4, 4]

    story(body, reranker_server(validation_status=status))


def test_a_body_that_is_too_large_is_halved() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        await rank(reranker)
        server.fail_next("/rerank", TOO_LARGE)
        assert_scores(await rank(reranker, many(8)), many_scores(8))

    story(body)


def test_one_part_that_fails_fails_the_whole() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        await rank(reranker)
        server.fail_next("/rerank", Reply(500))
        with pytest.raises(RerankerUnavailable) as caught:
            await rank(reranker, many(12))
        assert caught.value.cause == "status_5xx"

    story(body, reranker_server(max_client_batch_size=4))


def test_after_a_failed_part_the_others_are_called_off() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        await rank(reranker)
        server.fail_next("/rerank", Hang(), Reply(500), Hang())
        tasks = len(asyncio.all_tasks())
        with pytest.raises(RerankerUnavailable) as caught:
            await rank(reranker, many(12))
        assert caught.value.cause == "status_5xx"  # and not the time-out of those that hang
        assert len(asyncio.all_tasks()) == tasks

    story(body, reranker_server(max_client_batch_size=4))


def test_searches_at_once_leave_half_of_the_servers_permits_to_others() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        await rank(reranker)
        server.always("/rerank", Late(0.02))
        await asyncio.gather(*(rank(reranker, many(8)) for _ in range(3)))
        assert server.most_at_once == 2

    story(body, reranker_server(max_client_batch_size=4, max_concurrent_requests=16))


def test_empty_texts_are_not_sent_and_have_no_score() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        answer = await rank(reranker, ["", TEXTS[0], " \n", TEXTS[2]])
        assert answer.scores[0] is answer.scores[2] is None
        assert answer.scores[1] == pytest.approx(EXPECTED[0])
        assert answer.scores[3] == pytest.approx(EXPECTED[2])
        assert server.requests("/rerank")[-1].json["texts"] == [TEXTS[0], TEXTS[2]]

    story(body)


def test_nothing_to_score_asks_nobody() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        assert (await rank(reranker, [])).scores == ()
        assert (await rank(reranker, ["", " "])).scores == (None, None)
        assert not server.received

    story(body)


def test_long_texts_and_odd_characters_are_made_fit_to_be_sent() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        await rank(reranker, ["pump " * 1_000, "alone \ud800 and nul \0"])
        first, second = server.requests("/rerank")[-1].json["texts"]
        assert len(first) == 100
        assert second == "alone \ufffd and nul \0"

    story(body, max_text_characters=100)


# answers and scales


def items(*scores: float | None) -> bytes:
    return json.dumps([{"index": index, "score": score} for index, score in enumerate(scores)]).encode()


def test_texts_that_the_answer_leaves_out_or_gives_null_have_no_score() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        await rank(reranker)
        server.fail_next("/rerank", Reply(200, items(0.5, None)))
        assert (await rank(reranker)).scores == (0.5, None, None)

    story(body)


@pytest.mark.parametrize("answer", [b"[]", b"<html>", b'{"results": null}', items(None, None, None), b""])
def test_an_answer_without_any_score_is_nonsense(answer: bytes) -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        server.always("/rerank", Reply(200, answer))
        with pytest.raises(RerankerUnavailable) as caught:
            await rank(reranker)
        assert caught.value.cause == "bad_answer"

    story(body)


def test_logits_are_put_on_the_scale_of_probabilities() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        assert_scores(await rank(reranker))

    story(body, reranker_server(logits=True))


def test_the_scale_is_decided_over_all_parts_and_kept() -> None:
    """Logits of one part may all lie within 0..1; so may those of a later call."""

    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        await rank(reranker, ["pump"])
        server.always("/rerank", Reply(200, items(0.5, 0.6)))
        server.fail_next("/rerank", Reply(200, items(0.5, 3.0)))
        scores = (await rank(reranker, many(4))).scores
        assert sorted(scores) == pytest.approx(sorted([*(1 / (1 + math.exp(-x)) for x in (0.5, 3.0, 0.5, 0.6))]))
        assert (await rank(reranker, many(2))).scores == pytest.approx((0.6224593, 0.6456563))

    story(body, reranker_server(max_client_batch_size=2))


def test_the_scale_can_be_said() -> None:
    async def as_logits(server: TeiServer, reranker: HttpReranker) -> None:
        server.always("/rerank", Reply(200, items(0.0)))
        assert (await rank(reranker, ["pump"])).scores == (0.5,)

    async def as_probabilities(server: TeiServer, reranker: HttpReranker) -> None:
        server.always("/rerank", Reply(200, items(7.0)))
        with pytest.raises(RerankerUnavailable, match=r"outside 0\.\.1"):
            await rank(reranker, ["pump"])

    story(as_logits, score_scale="logit")
    story(as_probabilities, score_scale="sigmoid")


# faults


@pytest.mark.parametrize("fault", [OVERLOADED, UNAVAILABLE, Reset(), tei_error(424, "Backend", "Backend error: NaN")])
def test_what_may_pass_is_tried_once_more(fault: Reply | Reset) -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        await rank(reranker)
        server.fail_next("/rerank", fault)
        assert_scores(await rank(reranker))
        server.fail_next("/rerank", fault, fault)
        with pytest.raises(RerankerUnavailable):
            await rank(reranker)

    story(body)


def test_a_time_out_is_unavailable_at_the_deadline_and_not_tried_again() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        await rank(reranker)
        server.received.clear()
        server.always("/rerank", Hang())
        began = time.monotonic()
        with pytest.raises(RerankerUnavailable) as caught:
            await rank(reranker, deadline=Deadline.after(0.1))
        assert caught.value.cause == "timeout"
        assert time.monotonic() - began < 5.0
        assert posts(server) == ["/rerank"]

    story(body)


def test_no_time_left_sends_nothing() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        with pytest.raises(RerankerUnavailable) as caught:
            await rank(reranker, deadline=Deadline.after(-1.0))
        assert caught.value.cause == "timeout"
        assert not server.received

    story(body)


def test_an_address_where_nobody_listens_is_refused_until_the_circuit_opens() -> None:
    circuit = CircuitBreaker(failure_threshold=2)

    async def tell(url: str) -> None:
        async with reranking(url, circuit=circuit) as reranker:
            for cause in ("refused", "refused", "circuit_open"):
                with pytest.raises(RerankerUnavailable) as caught:
                    await rank(reranker)
                assert caught.value.cause == cause

    with refusing_address() as url:
        run(tell(url))


def test_an_open_circuit_closes_after_a_good_probe() -> None:
    now_s = [0.0]
    circuit = CircuitBreaker(failure_threshold=1, cool_down_s=1.0, clock=lambda: now_s[0])

    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        server.fail_next("/rerank", Reply(500))
        with pytest.raises(RerankerUnavailable):
            await rank(reranker)
        with pytest.raises(RerankerUnavailable) as caught:
            await rank(reranker)
        assert caught.value.cause == "circuit_open"
        now_s[0] += 1.0
        assert_scores(await rank(reranker))
        assert circuit.state == "closed"

    story(body, circuit=circuit)


def test_the_requests_of_a_caller_who_goes_away_are_called_off() -> None:
    circuit = CircuitBreaker(failure_threshold=1)

    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        await rank(reranker)
        server.received.clear()
        server.fail_next("/rerank", Hang(), Hang())
        waiting = asyncio.create_task(rank(reranker, many(8)))
        await asyncio.to_thread(server.wait_for_requests, 2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert circuit.state == "closed"
        assert_scores(await rank(reranker))

    story(body, reranker_server(max_client_batch_size=4), circuit=circuit)


def test_a_closed_reranker_is_unavailable() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        await reranker.aclose()
        with pytest.raises(RerankerUnavailable, match="closed"):
            await rank(reranker)

    story(body)


def test_a_route_that_is_lost_and_not_found_again_is_refused() -> None:
    async def body(server: TeiServer, reranker: HttpReranker) -> None:
        await rank(reranker)
        server.always("/rerank", NOT_FOUND)
        with pytest.raises(UpstreamRefused, match="no known rerank route"):
            await rank(reranker)

    story(body)
