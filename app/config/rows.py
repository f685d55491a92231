"""Checking settings rows before they are written, and variables before they are forgotten. Pure."""

from collections.abc import Mapping

from app.config.knobs import Knob, RagConfig, Value, check_value
from app.config.layers import ResolvedConfig, height
from app.domain.errors import InvalidInput, UnknownField


def check_row(overrides: Mapping[str, object], catalogue: Mapping[str, Knob], ceilings: ResolvedConfig | None) -> None:
    """Raises UnknownField or InvalidInput for the first knob that cannot stay as it is.

    `ceilings` is what the platform allows a workspace; None for the platform's own row.
    """
    by_json_name = {knob.json_name: knob for knob in catalogue.values()}
    for name, value in overrides.items():
        if name not in by_json_name:
            raise UnknownField(f"/{name}", known=tuple(by_json_name))
        knob = by_json_name[name]
        checked = check_value(knob, value)
        if ceilings is not None and knob.ceiling:
            _check_ceiling(knob, checked, ceilings)
    _check_pairs(overrides)


def merged(overrides: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    """The row with the changes; None removes an override (RFC 7396)."""
    together = {**overrides, **changes}
    return {name: value for name, value in together.items() if name not in changes or value is not None}


def changed_for_new_documents_only(catalogue: Mapping[str, Knob], before: RagConfig, after: RagConfig) -> list[str]:
    """Knobs (camelCase) whose change does not reach what is already indexed."""
    return [
        knob.json_name
        for name, knob in catalogue.items()
        if knob.reindex and getattr(before, name) != getattr(after, name)
    ]


def unknown_variables(environ: Mapping[str, str], catalogue: Mapping[str, Knob]) -> list[str]:
    """Variables that look like knobs and are none: most likely misspelt."""
    known = {knob.env for knob in catalogue.values()} | {"RAG_RERANK_URLS"}
    return sorted(name for name in environ if name.startswith("RAG_") and name not in known)


def _check_ceiling(knob: Knob, value: Value, ceilings: ResolvedConfig) -> None:
    allowed: Value = getattr(ceilings.config, knob.name)
    if height(knob, value) > height(knob, allowed):
        message = f"{value} is above the ceiling of {allowed} ({ceilings.layers[knob.name]}); it can only be lowered"
        raise InvalidInput(f"/{knob.json_name}", message, limit=str(allowed))


def _check_pairs(overrides: Mapping[str, object]) -> None:
    """Pairs inside one row; where layers disagree, the merge clamps and reports."""
    size, overlap = overrides.get("chunkSize"), overrides.get("chunkOverlap")
    if isinstance(size, int) and isinstance(overlap, int) and overlap > size // 2:
        raise InvalidInput("/chunkOverlap", f"{overlap} is more than half of chunkSize ({size})", limit=size // 2)
    low, high = overrides.get("queryMinLength"), overrides.get("queryMaxLength")
    if isinstance(low, int) and isinstance(high, int) and low > high:
        raise InvalidInput("/queryMinLength", f"{low} is more than queryMaxLength ({high})", limit=high)
    if overrides.get("denseWeight") == 0 and overrides.get("lexicalWeight") == 0:
        raise InvalidInput("/lexicalWeight", "denseWeight and lexicalWeight cannot both be 0")
