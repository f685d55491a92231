"""The named ways to search that an evaluation compares."""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from app.domain.errors import InvalidInput
from app.domain.search import SearchOverrides


class Mode(Struct, frozen=True, kw_only=True):
    """Which lists are searched and whether the best of them are reranked."""

    name: str
    dense: bool
    lexical: bool
    rerank: bool

    def overrides(self, *, top_k: int) -> SearchOverrides:
        return SearchOverrides(top_k=top_k, dense=self.dense, lexical=self.lexical, rerank=self.rerank)


MODES: Mapping[str, Mode] = MappingProxyType(
    {
        mode.name: mode
        for mode in (
            Mode(name="dense", dense=True, lexical=False, rerank=False),
            Mode(name="lexical", dense=False, lexical=True, rerank=False),
            Mode(name="hybrid", dense=True, lexical=True, rerank=False),
            Mode(name="hybrid+rerank", dense=True, lexical=True, rerank=True),
        )
    }
)


def parse_modes(text: str) -> tuple[Mode, ...]:
    """Modes from a list with commas, each once, in the order given. Raises InvalidInput with the known names."""
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in MODES]
    if unknown or not names:
        problem = f"unknown mode {unknown[0]!r}" if unknown else "no mode is given"
        raise InvalidInput("modes", f"{problem}; known: {', '.join(MODES)}")
    return tuple(MODES[name] for name in dict.fromkeys(names))
