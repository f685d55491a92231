"""Layers of configuration merged into one, knowing where each value came from. Pure.

Strongest wins: default < environment < platform row < workspace row. Ceilings are the exception: of what the
environment and the platform say the lower counts, and a workspace can only lower it further.
"""

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial

import msgspec
from msgspec import Struct

from app.config.knobs import (
    PROFILE_LIMITS,
    PROFILES,
    Kind,
    Knob,
    RagConfig,
    Surroundings,
    Value,
    check_value,
    knobs,
    parse_environment,
)
from app.domain.errors import InvalidInput


class Layer(StrEnum):
    """Where a value came from, weakest first."""

    DEFAULT = "default"
    ENVIRONMENT = "environment"
    PLATFORM = "platform"
    WORKSPACE = "workspace"


class Layers(Struct, frozen=True, kw_only=True):
    """`environment` holds variables by their names; the rows hold overrides by camelCase names."""

    environment: Mapping[str, str] = {}
    platform: Mapping[str, object] = {}
    workspace: Mapping[str, object] = {}


class KnobWarning(Struct, frozen=True, kw_only=True):
    """A value that could not be used as it was given, and why. `knob` is the name as that layer writes it."""

    knob: str
    layer: str
    reason: str


class ResolvedConfig(Struct, frozen=True, kw_only=True):
    """The effective knobs and the layer of each (snake_case names).

    `stale` says that the settings rows could not be read: values are the last known ones, or defaults + environment.
    """

    config: RagConfig
    layers: dict[str, str]
    warnings: tuple[KnobWarning, ...] = ()
    stale: bool = False


Given = dict[Layer, Value]
"""A knob's good values by layer, weakest first."""

Chosen = tuple[Value, Layer]


def resolve(layers: Layers, surroundings: Surroundings | None = None) -> ResolvedConfig:
    """A bad value never stops anything: its knob falls to the next layer, with one warning."""
    catalogue = knobs(surroundings or Surroundings())
    warnings: list[KnobWarning] = []
    given = {name: {Layer.DEFAULT: knob.default} for name, knob in catalogue.items()}
    _read_environment(catalogue, layers.environment, given, warnings)
    _read_row(catalogue, Layer.PLATFORM, layers.platform, given, warnings)
    _read_row(catalogue, Layer.WORKSPACE, layers.workspace, given, warnings)
    _spread_profiles(given)
    chosen = {name: _choose(knob, given[name], warnings) for name, knob in catalogue.items()}
    _agree(catalogue, chosen, warnings)
    values = {catalogue[name].json_name: value for name, (value, _) in chosen.items()}
    return ResolvedConfig(
        config=msgspec.convert(values, RagConfig),
        layers={name: layer.value for name, (_, layer) in chosen.items()},
        warnings=tuple(warnings),
    )


def _read_environment(
    catalogue: Mapping[str, Knob],
    environment: Mapping[str, str],
    given: Mapping[str, Given],
    warnings: list[KnobWarning],
) -> None:
    """An empty variable counts as unset."""
    for name, knob in catalogue.items():
        text = environment.get(knob.env, "").strip()
        if text:
            _take(given[name], Layer.ENVIRONMENT, knob.env, partial(parse_environment, knob, text), warnings)


def _read_row(
    catalogue: Mapping[str, Knob],
    layer: Layer,
    row: Mapping[str, object],
    given: Mapping[str, Given],
    warnings: list[KnobWarning],
) -> None:
    names = {knob.json_name: name for name, knob in catalogue.items()}
    for json_name, value in row.items():
        if json_name not in names:
            warnings.append(KnobWarning(knob=json_name, layer=layer.value, reason="unknown knob"))
            continue
        knob = catalogue[names[json_name]]
        _take(given[knob.name], layer, json_name, partial(check_value, knob, value), warnings)


def _take(given: Given, layer: Layer, written_as: str, read: Callable[[], Value], warnings: list[KnobWarning]) -> None:
    try:
        given[layer] = read()
    except InvalidInput as error:
        warnings.append(KnobWarning(knob=written_as, layer=layer.value, reason=error.message))


def _spread_profiles(given: Mapping[str, Given]) -> None:
    """A layer that chooses a profile means its limits, except those that it sets itself."""
    for layer, profile in given["limits_profile"].items():
        for limit in PROFILE_LIMITS:
            given[limit].setdefault(layer, getattr(PROFILES[str(profile)], limit))


def _choose(knob: Knob, given: Given, warnings: list[KnobWarning]) -> Chosen:
    strongest = max(given, key=_strength)
    if not knob.ceiling:
        return given[strongest], strongest
    set_by_operators = Layer.ENVIRONMENT in given or Layer.PLATFORM in given
    asked = [layer for layer in given if layer is not Layer.DEFAULT or not set_by_operators]
    lowest = min(asked, key=lambda layer: (height(knob, given[layer]), -_strength(layer)))
    if height(knob, given[lowest]) < height(knob, given[strongest]):
        reason = f"{given[strongest]} is above the ceiling of {given[lowest]} ({lowest.value})"
        warnings.append(KnobWarning(knob=knob.json_name, layer=strongest.value, reason=reason))
    return given[lowest], lowest


def _strength(layer: Layer) -> int:
    return list(Layer).index(layer)


def height(knob: Knob, value: Value) -> float:
    """How much a ceiling allows, as a number: no limit is infinite, choices count from the lowest."""
    if value is None:
        return math.inf
    return knob.choices.index(str(value)) if knob.kind is Kind.CHOICE else float(value)


def _agree(catalogue: Mapping[str, Knob], chosen: dict[str, Chosen], warnings: list[KnobWarning]) -> None:
    """What no single layer can see: values of different layers that do not fit each other."""
    _lower(catalogue, chosen, "chunk_overlap", int(chosen["chunk_size"][0] or 0) // 2, "half of chunkSize", warnings)
    _lower(catalogue, chosen, "query_min_length", int(chosen["query_max_length"][0] or 0), "queryMaxLength", warnings)
    if not chosen["dense_weight"][0] and not chosen["lexical_weight"][0]:
        for name in ("dense_weight", "lexical_weight"):
            reason = "denseWeight and lexicalWeight are both 0: the defaults count"
            warnings.append(KnobWarning(knob=catalogue[name].json_name, layer=chosen[name][1].value, reason=reason))
            chosen[name] = (catalogue[name].default, Layer.DEFAULT)


def _lower(
    catalogue: Mapping[str, Knob],
    chosen: dict[str, Chosen],
    name: str,
    bound: int,
    bound_name: str,
    warnings: list[KnobWarning],
) -> None:
    value, layer = chosen[name]
    if isinstance(value, int) and value > bound:
        reason = f"{value} is more than {bound_name}: {bound} counts"
        warnings.append(KnobWarning(knob=catalogue[name].json_name, layer=layer.value, reason=reason))
        chosen[name] = (bound, layer)
