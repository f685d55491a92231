"""The embedder against a server on a real socket: sizes, faults, identity."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from app.clients.circuit import CircuitBreaker
from app.clients.http import Retries, UpstreamCall
from app.clients.tei_embedder import TeiEmbedder
from app.domain.deadline import Deadline
from app.domain.errors import EmbedderUnavailable, InvalidInput, UpstreamRefused
from tests.support.aio import run
from tests.support.tei_server import (
    MISSING_FIELD,
    NOT_FOUND,
    OVERLOADED,
    SERVED_DIMENSION,
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

FAST = Retries(attempts=4, base_s=0.001, max_s=0.01)
OUT_OF_MEMORY = tei_error(424, "Backend", "Backend error: DriverError(CUDA_ERROR_OUT_OF_MEMORY)")


def soon() -> Deadline:
    return Deadline.after(10.0)


@asynccontextmanager
async def connected(server: TeiServer, **options: Any) -> AsyncIterator[TeiEmbedder]:
    """An embedder whose first contact is not in the server's books."""
    embedder = await TeiEmbedder.connect(server.url, api_key=server.api_key, **({"retries": FAST} | options))
    server.received.clear()
    try:
        yield embedder
    finally:
        await embedder.aclose()


def story(
    body: Callable[[TeiServer, TeiEmbedder], Awaitable[None]], server: TeiServer | None = None, **options: Any
) -> None:
    async def tell(running: TeiServer) -> None:
        async with connected(running, **options) as embedder:
            await body(running, embedder)

    with serving(server or TeiServer()) as running:
        run(tell(running))


def sizes(server: TeiServer) -> list[int]:
    """Texts in each request that came in."""
    return [len(request.json["inputs"]) for request in server.requests("/embed")]


def connect(server: TeiServer, **options: Any) -> TeiEmbedder:
    async def tell() -> TeiEmbedder:
        embedder = await TeiEmbedder.connect(server.url, api_key=None, retries=FAST, **options)
        await embedder.aclose()
        return embedder

    return run(tell())


# first contact


def test_the_model_is_what_the_server_says_and_the_dimension_what_it_sends() -> None:
    with serving(TeiServer(max_input_length=8192)) as server:
        model = connect(server).model
    assert (model.name, model.version) == ("BAAI/bge-m3", "5617a9f61b028005a4858fdac845db406aefb181")
    assert (model.dimension, model.max_input_tokens) == (SERVED_DIMENSION, 8192)
    assert (model.weights_sha256, model.late_interaction) == ("", False)


def test_a_given_version_is_stronger_than_the_servers_and_neither_is_said_too() -> None:
    with serving(TeiServer(model_sha=None)) as server:
        assert connect(server, version="r7").model.version == "r7"
        assert connect(server).model.version == "unpinned"


def test_a_reranker_at_the_address_is_refused_by_name() -> None:
    with (
        serving(reranker_server()) as server,
        pytest.raises(UpstreamRefused, match=r"bge-reranker-v2-m3 is a reranker"),
    ):
        connect(server)


@pytest.mark.parametrize("fault", [NOT_FOUND, Reply(200, b"<html>"), Reply(301, headers={"Location": "/elsewhere"})])
def test_an_address_without_teis_description_is_refused(fault: Reply) -> None:
    with serving(TeiServer()) as server:
        server.always("/info", fault)
        with pytest.raises(UpstreamRefused):
            connect(server)


def test_a_wrong_key_stops_the_start_and_is_not_repeated_in_the_message() -> None:
    async def tell(url: str) -> None:
        with pytest.raises(UpstreamRefused, match="401") as caught:
            await TeiEmbedder.connect(url, api_key="wrong-secret", retries=FAST)
        assert "wrong-secret" not in str(caught.value)

    with serving(TeiServer(api_key="right")) as server:
        run(tell(server.url))
        assert len(server.received) == 1


def test_the_key_goes_with_every_request() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        await embedder.embed_query("pump", soon())
        assert server.received[0].headers["authorization"] == "Bearer s3cret"

    story(body, TeiServer(api_key="s3cret"))


def test_a_server_that_is_still_loading_is_waited_for() -> None:
    """TEI opens its port only when the model is ready."""

    async def tell(server: TeiServer, url: str) -> None:
        opened, done = threading.Event(), threading.Event()
        port = int(url.rpartition(":")[2])

        def open_late() -> None:
            with serving(server, port=port):
                opened.set()
                done.wait(10.0)

        connecting = asyncio.create_task(TeiEmbedder.connect(url, api_key=None, retries=FAST, connect_timeout_s=10.0))
        await asyncio.sleep(0.05)
        assert not connecting.done()
        thread = threading.Thread(target=open_late)
        thread.start()
        try:
            embedder = await connecting
            assert opened.is_set()
            await embedder.aclose()
        finally:
            done.set()
            thread.join()

    with refusing_address() as url:
        pass
    run(tell(TeiServer(), url))


def test_a_server_that_does_not_come_is_unavailable_in_the_time_that_was_given() -> None:
    async def tell(url: str) -> None:
        with pytest.raises(EmbedderUnavailable) as caught:
            await TeiEmbedder.connect(url, api_key=None, retries=FAST, connect_timeout_s=0.3)
        assert caught.value.cause == "refused"

    with refusing_address() as url:
        run(tell(url))


@pytest.mark.parametrize("suffix", ["/", "/embed", "/v1", "/v1/embeddings"])
def test_what_people_copy_with_the_address_does_no_harm(suffix: str) -> None:
    async def tell(url: str) -> None:
        embedder = await TeiEmbedder.connect(url + suffix, api_key=None)
        await embedder.aclose()

    with serving(TeiServer()) as server:
        run(tell(server.url))
        assert [request.path for request in server.received] == ["/info", "/embed"]


def test_the_servers_health_route_answers_without_a_key() -> None:
    """Of the test server itself: probes of orchestrators rely on it."""
    import httpx

    with serving(TeiServer(api_key="k")) as server:
        assert httpx.get(f"{server.url}/health").status_code == 200
        assert httpx.get(f"{server.url}/info").status_code == 401


# requests


def test_truncation_and_normalisation_are_always_said() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        await embedder.embed_query("pump", soon())
        await embedder.embed_passages(["valve"], soon())
        query, passages = (request.json for request in server.requests("/embed"))
        assert query == {"inputs": ["pump"], "truncate": True, "normalize": True}
        assert passages == {"inputs": ["valve"], "truncate": False, "normalize": True}

    story(body)


def test_batches_keep_to_the_servers_number_of_texts_and_the_order() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        texts = [f"text number{n}" for n in range(10)]
        vectors = await embedder.embed_passages(texts, soon())
        assert sorted(sizes(server)) == [2, 4, 4]
        for row, text in zip(vectors.dense, texts, strict=True):
            alone = (await embedder.embed_query(text, soon())).dense
            np.testing.assert_allclose(row, alone, atol=1e-6)

    story(body, TeiServer(max_client_batch_size=4))


def test_batches_keep_to_the_bytes_of_a_request() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        await embedder.embed_passages(["я" * 200] * 8, soon())
        assert sum(sizes(server)) == 8
        assert max(len(request.body) for request in server.requests("/embed")) < 1_000

    story(body, TeiServer(payload_limit=1_000), max_request_bytes=900)


def test_passages_on_their_way_leave_permits_to_queries() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.always("/embed", Late(0.03))
        await embedder.embed_passages(["text"] * 32, soon())
        assert server.most_at_once == 2

    story(body, TeiServer(max_client_batch_size=4, max_concurrent_requests=16))


def test_a_query_does_not_wait_for_passages_that_hang() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.fail_next("/embed", *[Hang()] * 4)
        passages = asyncio.create_task(embedder.embed_passages(["text"] * 32 * 8, soon()))
        await asyncio.to_thread(server.wait_for_requests, 4)
        assert (await embedder.embed_query("pump", soon())).dense.shape == (SERVED_DIMENSION,)
        assert not passages.done()
        passages.cancel()
        await asyncio.gather(passages, return_exceptions=True)

    story(body)


def test_a_batch_that_a_restarted_server_finds_too_large_is_halved_and_the_size_remembered() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.max_client_batch_size = 4
        vectors = await embedder.embed_passages(["text"] * 8, soon())
        assert len(vectors.dense) == 8
        assert sizes(server) == [8, 4, 4]
        await embedder.embed_passages(["text"] * 8, soon())
        assert sizes(server)[3:] == [4, 4]

    story(body, TeiServer(max_client_batch_size=8))


@pytest.mark.parametrize("refusal", [TOO_LARGE, OUT_OF_MEMORY, tei_error(413, "Validation", "batch size 8 > 4")])
def test_a_batch_is_halved_when_it_was_too_much_for_the_server(refusal: Reply) -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.fail_next("/embed", *[refusal] * (2 if refusal is OUT_OF_MEMORY else 1))
        assert len((await embedder.embed_passages(["text"] * 8, soon())).dense) == 8
        assert sizes(server)[-2:] == [4, 4]

    story(body)


def test_overload_that_lasts_halves_the_batch() -> None:
    """Since 1.9 a batch is refused at once when there are fewer free permits than texts."""

    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.fail_next("/embed", *[OVERLOADED] * FAST.attempts)
        assert len((await embedder.embed_passages(["text"] * 8, soon())).dense) == 8
        assert sizes(server) == [8, 8, 8, 8, 4, 4]

    story(body)


@pytest.mark.parametrize("status", [413, 422])
def test_the_first_text_that_is_too_long_is_named_in_old_and_new_versions(status: int) -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        texts = ["short"] * 12
        texts[5] = texts[9] = "word " * 600
        with pytest.raises(InvalidInput) as caught:
            await embedder.embed_passages(texts, soon())
        assert (caught.value.pointer, caught.value.limit) == ("/texts/5", 512)

    story(body, TeiServer(validation_status=status, max_client_batch_size=4))


def test_the_first_text_is_named_also_when_a_later_batch_is_answered_sooner() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.fail_next("/embed", Late(0.1))
        with pytest.raises(InvalidInput, match="/texts/0"):
            await embedder.embed_passages(["word " * 600] * 2, soon())

    story(body, TeiServer(max_client_batch_size=1))


def test_a_text_larger_than_a_request_is_named() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        with pytest.raises(InvalidInput, match="/texts/1"):
            await embedder.embed_passages(["short", "x" * 5_000], soon())

    story(body, TeiServer(payload_limit=2_000), max_request_bytes=1_500)


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_an_empty_text_is_named_before_anything_is_sent(text: str) -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        with pytest.raises(InvalidInput, match="/texts/1"):
            await embedder.embed_passages(["text", text], soon())
        with pytest.raises(InvalidInput, match="query"):
            await embedder.embed_query(text, soon())
        assert not server.received

    story(body)


def test_a_query_longer_than_a_request_is_cut() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        await embedder.embed_query("я" * 100_000, soon())
        assert len(server.requests("/embed")[0].body) < 2_000

    story(body, TeiServer(payload_limit=2_000), max_request_bytes=1_500)


# faults


@pytest.mark.parametrize("fault", [OVERLOADED, UNAVAILABLE, Reply(502), Reply(504), Reset(), OUT_OF_MEMORY])
def test_what_may_pass_is_tried_again(fault: Reply | Reset) -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.fail_next("/embed", fault)
        assert len((await embedder.embed_query("pump", soon())).dense) == SERVED_DIMENSION
        assert len(server.received) == 2

    story(body)


@pytest.mark.parametrize(
    ("fault", "cause", "attempts"),
    [
        (OVERLOADED, "overloaded", 4),
        (UNAVAILABLE, "status_5xx", 4),
        (Reset(), "reset", 4),
        (OUT_OF_MEMORY, "status_4xx", 2),
        (Reply(500), "status_5xx", 1),
    ],
)
def test_what_does_not_pass_is_unavailable_with_its_cause(fault: Reply | Reset, cause: str, attempts: int) -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.always("/embed", fault)
        with pytest.raises(EmbedderUnavailable) as caught:
            await embedder.embed_query("pump", soon())
        assert caught.value.cause == cause
        assert len(server.received) == attempts

    story(body)


def test_a_proxys_retry_after_is_kept_when_the_deadline_allows_and_else_handed_on() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.always("/embed", Reply(429, headers={"Retry-After": "7"}))
        with pytest.raises(EmbedderUnavailable) as caught:
            await embedder.embed_query("pump", Deadline.after(5.0))
        assert caught.value.retry_after_s == 7.0
        assert len(server.received) == 1

    story(body)


def test_a_slow_answer_ends_with_the_deadline_and_is_not_asked_for_again() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.always("/embed", Hang())
        began = time.monotonic()
        with pytest.raises(EmbedderUnavailable) as caught:
            await embedder.embed_query("pump", Deadline.after(0.1))
        assert caught.value.cause == "timeout"
        assert time.monotonic() - began < 5.0
        assert len(server.received) == 1

    story(body)


def test_no_time_left_sends_nothing() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        with pytest.raises(EmbedderUnavailable) as caught:
            await embedder.embed_query("pump", Deadline.after(0.0))
        assert caught.value.cause == "timeout"
        assert not server.received

    story(body)


ROW = [0.5] * SERVED_DIMENSION


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps([[None] * SERVED_DIMENSION]),
        json.dumps([[None, *ROW[1:]]]),
        json.dumps([[0.0] * SERVED_DIMENSION]),
        json.dumps([[1e39, *ROW[1:]]]),
        json.dumps([[float("nan"), *ROW[1:]]]),
        json.dumps([["0.5", *ROW[1:]]]),
        json.dumps([ROW, ROW]),
        json.dumps([ROW[1:]]),
        json.dumps([[]]),
        json.dumps([]),
        json.dumps({"data": [ROW]}),
        "<html>",
        "",
    ],
)
def test_an_answer_without_a_finite_vector_of_the_dimension_for_each_text_is_refused(answer: str) -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.always("/embed", Reply(200, answer.encode()))
        with pytest.raises(EmbedderUnavailable) as caught:
            await embedder.embed_query("pump", soon())
        assert caught.value.cause == "bad_answer"

    story(body)


def test_vectors_of_half_precision_are_normalised_again() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.always("/embed", Reply(200, json.dumps([[0.0624, *[0.0624] * (SERVED_DIMENSION - 1)]]).encode()))
        dense = (await embedder.embed_query("pump", soon())).dense
        np.testing.assert_allclose(np.linalg.norm(dense), 1.0, atol=1e-6)

    story(body)


@pytest.mark.parametrize(
    "fault", [Reply(401), NOT_FOUND, tei_error(424, "Backend", "Backend error: Model is not an embedding model")]
)
def test_a_server_that_refuses_everybody_in_service_is_an_outage_and_left_alone(fault: Reply) -> None:
    """Documents in the queue must not be buried because a key was changed."""

    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.always("/embed", fault)
        for cause in ("refused", "circuit_open"):
            with pytest.raises(EmbedderUnavailable) as caught:
                await embedder.embed_passages(["text"], soon())
            assert caught.value.cause == cause
        assert len(server.received) == 1

    story(body)


def test_a_request_that_is_not_understood_is_refused_without_halving() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.always("/embed", MISSING_FIELD)
        with pytest.raises(UpstreamRefused):
            await embedder.embed_passages(["a", "b"], soon())
        assert len(server.received) == 1

    story(body)


def test_no_message_repeats_what_the_server_quoted() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        quoting = {"detail": [{"msg": "invalid", "input": "private words"}]}
        server.always("/embed", Reply(422, json.dumps(quoting).encode()))
        with pytest.raises(UpstreamRefused) as caught:
            await embedder.embed_query("private words", soon())
        assert "private" not in str(caught.value)
        assert "127.0.0.1" not in str(caught.value)

    story(body)


# circuits


def test_an_open_circuit_costs_no_request_and_closes_after_a_good_probe() -> None:
    now_s = [0.0]
    circuit = CircuitBreaker(failure_threshold=2, cool_down_s=1.0, clock=lambda: now_s[0])

    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.always("/embed", Reply(500))
        for cause in ("status_5xx", "status_5xx", "circuit_open"):
            with pytest.raises(EmbedderUnavailable) as caught:
                await embedder.embed_query("pump", soon())
            assert caught.value.cause == cause
        assert len(server.received) == 2
        server.always("/embed", None)
        now_s[0] += 1.0
        await embedder.embed_query("pump", soon())
        assert circuit.state == "closed"

    story(body, query_circuit=circuit)


def test_a_document_that_upsets_the_server_keeps_no_query_away() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.always("/embed", Reply(500))
        with pytest.raises(EmbedderUnavailable):
            await embedder.embed_passages(["poison"], soon())
        server.always("/embed", None)
        with pytest.raises(EmbedderUnavailable, match="left alone"):
            await embedder.embed_passages(["text"], soon())
        await embedder.embed_query("pump", soon())

    story(body, passage_circuit=CircuitBreaker(failure_threshold=1))


@pytest.mark.parametrize(("fair_wait_s", "state"), [(0.01, "open"), (5.0, "closed")])
def test_a_time_out_speaks_against_the_server_only_if_it_had_a_fair_time(fair_wait_s: float, state: str) -> None:
    """Else one caller with a deadline of a millisecond would take the embedder from all others."""
    circuit = CircuitBreaker(failure_threshold=1)

    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.always("/embed", Hang())
        with pytest.raises(EmbedderUnavailable):
            await embedder.embed_query("pump", Deadline.after(0.05))
        assert circuit.state == state

    story(body, query_circuit=circuit, fair_wait_s=fair_wait_s)


def test_a_caller_who_goes_away_says_nothing_about_the_server() -> None:
    circuit = CircuitBreaker(failure_threshold=1)

    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        server.fail_next("/embed", Hang())
        waiting = asyncio.create_task(embedder.embed_query("pump", soon()))
        await asyncio.to_thread(server.wait_for_requests, 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert circuit.state == "closed"
        await embedder.embed_query("pump", soon())

    story(body, query_circuit=circuit)


def test_a_text_that_is_refused_says_nothing_about_the_server() -> None:
    circuit = CircuitBreaker(failure_threshold=1)

    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        with pytest.raises(InvalidInput):
            await embedder.embed_passages(["word " * 600], soon())
        assert circuit.state == "closed"

    story(body, passage_circuit=circuit)


def test_a_closed_embedder_is_unavailable() -> None:
    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        await embedder.aclose()
        with pytest.raises(EmbedderUnavailable, match="closed"):
            await embedder.embed_query("pump", soon())

    story(body)


def test_every_attempt_is_observed_with_its_result() -> None:
    calls = list[UpstreamCall]()

    async def body(server: TeiServer, embedder: TeiEmbedder) -> None:
        calls.clear()
        server.fail_next("/embed", Reset(), OVERLOADED)
        await embedder.embed_query("pump", soon())
        server.fail_next("/embed", Hang())
        with pytest.raises(EmbedderUnavailable):
            await embedder.embed_query("pump", Deadline.after(0.05))
        assert [(call.path, call.result) for call in calls] == [
            ("/embed", result) for result in ("reset", "overloaded", "ok", "timeout")
        ]

    story(body, observer=calls.append)
