"""Layers: strongest wins, bad values fall through, ceilings only go down."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.config.knobs import Kind, Knob, Surroundings, knobs
from app.config.layers import Layers, ResolvedConfig, height, resolve
from app.domain.errors import InvalidInput

AROUND = Surroundings(
    min_score=0.2,
    rerank_url="http://rerank:80",
    rerank_urls=("http://rerank:80", "http://other:80"),
    chunk_strategies=("structure_aware", "fixed"),
    max_embedding_batch=32,
)
CATALOGUE = knobs(AROUND)
INDEPENDENT = [
    knob
    for knob in CATALOGUE.values()
    if not knob.ceiling
    and knob.name not in ("chunk_size", "chunk_overlap", "query_min_length", "dense_weight", "lexical_weight")
]
CEILINGS = [knob for knob in CATALOGUE.values() if knob.ceiling]


def good_values(knob: Knob) -> st.SearchStrategy[Any]:
    """Values that the knob takes in a settings row."""
    kinds: dict[Kind, st.SearchStrategy[Any]] = {
        Kind.SWITCH: st.booleans(),
        Kind.CHOICE: st.sampled_from(knob.choices or ("-",)),
        Kind.URL: st.sampled_from(knob.choices or ("-",)),
        Kind.TEXT: st.sampled_from(("bge-reranker-v2-m3", "jina")),
    }
    if knob.kind is Kind.INTEGER:
        values: st.SearchStrategy[Any] = st.integers(int(knob.low), int(min(knob.high, 1e6)))
    elif knob.kind is Kind.NUMBER:
        values = st.floats(knob.low, knob.high, allow_nan=False)
    else:
        values = kinds[knob.kind]
    return st.none() | values if knob.nullable else values


def bad_values(knob: Knob) -> st.SearchStrategy[Any]:
    """Values that the knob refuses in a settings row."""
    wrong_type: st.SearchStrategy[Any] = st.sampled_from([[], {}, {"a": 1}])
    if knob.kind in (Kind.INTEGER, Kind.NUMBER):
        return wrong_type | st.sampled_from([knob.low - 1, knob.high + 1, math.nan, "8", True])
    if knob.kind is Kind.SWITCH:
        return wrong_type | st.sampled_from(["true", 1, 0])
    if knob.kind is Kind.TEXT:
        return wrong_type | st.sampled_from(["", " ", "two\nlines", "x" * 201, 5, True])
    return wrong_type | st.sampled_from(["", "no such name", 5, True])


def as_text(value: Any) -> str:
    """A value as an environment variable writes it."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


@given(st.data())
def test_the_strongest_layer_with_a_good_value_wins_and_bad_ones_are_warned_of_once(data: st.DataObject) -> None:
    knob = data.draw(st.sampled_from(INDEPENDENT))
    rows, expected, layer, bad_layers = {}, knob.default, "default", []
    for name in ("platform", "workspace"):
        kind = data.draw(st.sampled_from(["absent", "good", "bad"]))
        if kind == "absent":
            continue
        value = data.draw(good_values(knob) if kind == "good" else bad_values(knob))
        rows[name] = {knob.json_name: value}
        if kind == "good":
            expected, layer = value, name
        else:
            bad_layers.append(name)

    resolved = resolve(Layers(**rows), AROUND)

    assert getattr(resolved.config, knob.name) == expected
    assert resolved.layers[knob.name] == layer
    assert [(warning.knob, warning.layer) for warning in resolved.warnings] == [(knob.json_name, n) for n in bad_layers]


@given(st.data())
def test_a_workspace_can_only_lower_a_ceiling(data: st.DataObject) -> None:
    knob = data.draw(st.sampled_from(CEILINGS))
    platform = data.draw(st.fixed_dictionaries({}, optional={knob.json_name: good_values(knob)}))
    workspace = {knob.json_name: data.draw(good_values(knob))}

    without = resolve(Layers(platform=platform), AROUND)
    resolved = resolve(Layers(platform=platform, workspace=workspace), AROUND)

    allowed, wanted = getattr(without.config, knob.name), workspace[knob.json_name]
    assert height(knob, getattr(resolved.config, knob.name)) == min(height(knob, allowed), height(knob, wanted))


@given(
    st.dictionaries(st.text(max_size=12) | st.sampled_from([k.json_name for k in CATALOGUE.values()]), st.integers()),
    st.dictionaries(st.sampled_from([k.env for k in CATALOGUE.values()]), st.text(max_size=12)),
)
def test_nothing_in_a_row_or_the_environment_can_stop_the_service(
    row: dict[str, Any], environment: dict[str, str]
) -> None:
    resolved = resolve(Layers(environment=environment, platform=row, workspace=row), AROUND)

    assert resolved.config.chunk_overlap <= resolved.config.chunk_size // 2
    assert resolved.config.query_min_length <= resolved.config.query_max_length
    assert resolved.config.dense_weight or resolved.config.lexical_weight
    for name, knob in CATALOGUE.items():
        value = getattr(resolved.config, name)
        if knob.kind in (Kind.INTEGER, Kind.NUMBER) and value is not None:
            assert knob.low <= value <= knob.high


@given(st.data())
def test_the_environment_reads_back_what_a_row_would_hold(data: st.DataObject) -> None:
    knob = data.draw(st.sampled_from([k for k in INDEPENDENT if k.kind is not Kind.NUMBER]))
    # A variable with an address is one, or is not set: there is no word for "none".
    value = data.draw(good_values(knob).filter(lambda value: value is not None or knob.kind is not Kind.URL))

    resolved = resolve(Layers(environment={knob.env: as_text(value)}), AROUND)

    assert getattr(resolved.config, knob.name) == value
    assert resolved.warnings == ()


def resolved_with(**variables: str) -> ResolvedConfig:
    return resolve(Layers(environment=variables), AROUND)


def test_defaults_are_those_of_the_table() -> None:
    config = resolve(Layers(), AROUND).config

    assert (config.chunk_size, config.chunk_overlap, config.embedding_batch) == (900, 120, 8)
    assert (config.search_top_k, config.rerank_top_k, config.rrf_k) == (8, 4, 60)
    assert (config.query_min_length, config.query_max_length) == (3, 1000)
    assert (config.rerank_timeout_ms, config.search_timeout_ms) == (1500, 5000)
    assert (config.max_chunks_per_document, config.max_chunks_per_collection) == (20_000, None)
    assert config.dynamic_documents_max_tokens == 50_000


def test_the_floor_is_the_models_own() -> None:
    assert resolve(Layers(), AROUND).config.min_score == 0.2
    assert resolve(Layers(), Surroundings(min_score=None)).config.min_score is None


def test_a_floor_can_be_taken_away() -> None:
    resolved = resolve(Layers(platform={"minScore": 0.4}, workspace={"minScore": None}), AROUND)

    assert resolved.config.min_score is None
    assert resolved.layers["min_score"] == "workspace"


def test_an_overlap_of_more_than_half_the_size_is_clamped_and_reported() -> None:
    resolved = resolve(Layers(platform={"chunkOverlap": 400}, workspace={"chunkSize": 200}), AROUND)

    assert resolved.config.chunk_overlap == 100
    assert [(w.knob, w.layer) for w in resolved.warnings] == [("chunkOverlap", "platform")]
    assert "100 counts" in resolved.warnings[0].reason


def test_the_small_profile_brings_its_limits() -> None:
    config = resolve(Layers(workspace={"limitsProfile": "small"}), AROUND).config

    assert (config.max_chunks_per_document, config.max_chunks_per_collection) == (150, 1_000)


def test_a_limit_beside_a_profile_in_one_layer_is_stronger_than_the_profile() -> None:
    resolved = resolve(Layers(platform={"limitsProfile": "small", "maxChunksPerDocument": 400}), AROUND)

    assert resolved.config.max_chunks_per_document == 400
    assert resolved.config.max_chunks_per_collection == 1_000


def test_a_workspace_cannot_leave_the_platforms_profile_upwards() -> None:
    resolved = resolve(Layers(platform={"limitsProfile": "small"}, workspace={"limitsProfile": "standard"}), AROUND)

    assert resolved.config.limits_profile == "small"
    assert resolved.config.max_chunks_per_document == 150
    assert ("limitsProfile", "workspace") in [(w.knob, w.layer) for w in resolved.warnings]


def test_operators_may_raise_a_ceiling_above_its_default() -> None:
    assert resolved_with(RAG_SEARCH_TIMEOUT_MS="20000").config.search_timeout_ms == 20_000


def test_no_layer_gets_past_the_deployments_search_timeout() -> None:
    around = Surroundings(max_search_timeout_ms=2_000)

    assert resolve(Layers(), around).config.search_timeout_ms == 2_000
    assert resolve(Layers(workspace={"searchTimeoutMs": 4_000}), around).config.search_timeout_ms == 2_000


@pytest.mark.parametrize(("text", "expected"), [("false", False), ("FALSE", True), ("0", True), ("no", True)])
def test_only_the_literal_false_switches_vector_selection_off(text: str, expected: bool) -> None:
    resolved = resolved_with(IS_DYNAMIC_DOCUMENT_VECTOR_SELECTION_ENABLED=text)

    assert resolved.config.dynamic_documents_vector_selection is expected
    assert resolved.warnings == ()


@pytest.mark.parametrize("text", ["", "0", "-3", "NaN", "Infinity", "many"])
def test_a_token_count_that_is_no_positive_number_is_the_default(text: str) -> None:
    resolved = resolved_with(DYNAMIC_DOCUMENT_VECTOR_SELECTION_MAX_TOKEN_COUNT=text)

    assert resolved.config.dynamic_documents_max_tokens == 50_000


def test_a_row_can_name_only_addresses_that_the_deployment_allows() -> None:
    allowed = resolve(Layers(workspace={"rerankUrl": "http://other:80"}), AROUND)
    refused = resolve(Layers(workspace={"rerankUrl": "http://secret:hunter2@evil"}), AROUND)

    assert allowed.config.rerank_url == "http://other:80"
    assert refused.config.rerank_url == "http://rerank:80"
    assert "hunter2" not in refused.warnings[0].reason


def test_weights_that_are_both_nothing_are_the_defaults() -> None:
    resolved = resolve(Layers(platform={"denseWeight": 0}, workspace={"lexicalWeight": 0}), AROUND)

    assert (resolved.config.dense_weight, resolved.config.lexical_weight) == (1.0, 1.0)
    assert {warning.knob for warning in resolved.warnings} == {"denseWeight", "lexicalWeight"}


def test_an_unknown_knob_in_a_row_is_a_warning() -> None:
    resolved = resolve(Layers(workspace={"chunkSise": 5}), AROUND)

    assert [(w.knob, w.layer, w.reason) for w in resolved.warnings] == [("chunkSise", "workspace", "unknown knob")]


def test_every_knob_of_the_configuration_has_an_entry_with_bounds() -> None:
    config = resolve(Layers(), AROUND).config

    assert set(config.__struct_fields__) == set(CATALOGUE)
    assert config.__struct_encode_fields__ == tuple(knob.json_name for knob in CATALOGUE.values())
    for knob in CATALOGUE.values():
        assert knob.kind not in (Kind.INTEGER, Kind.NUMBER) or (math.isfinite(knob.low) and math.isfinite(knob.high))


def test_a_refusal_names_value_and_bound() -> None:
    from app.config.knobs import check_value

    with pytest.raises(InvalidInput, match="201 is not allowed: an integer from 1 to 200") as caught:
        check_value(CATALOGUE["search_top_k"], 201)
    assert (caught.value.pointer, caught.value.limit) == ("/searchTopK", "1..200")
