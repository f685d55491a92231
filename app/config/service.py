"""The effective knobs of a workspace: the settings rows, cached for 30 seconds, and how they are changed."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar
from uuid import UUID

import structlog
from msgspec import Struct, structs

from app.config.knobs import Knob, Surroundings, knobs
from app.config.layers import Layers, ResolvedConfig, resolve
from app.config.rows import check_row, merged, unknown_variables
from app.domain.errors import TransientError
from app.domain.ports import SettingsRows

PLATFORM = "__platform__"
TTL_S = 30.0
RETRY_S = 1.0  # how long a stale answer serves before the database is asked again
READ_FAILURES = (TransientError, OSError)

T = TypeVar("T")
MAX_REMEMBERED_WARNINGS = 1_000

LoadObserver = Callable[[str, str], None]
"""Called with (layer, result): the labels of `kroshka_config_loads_total`."""


class SettingsRow(Struct, frozen=True, kw_only=True):
    """One scope's own overrides (camelCase) and the version that `If-Match` must name; 0 when there is no row."""

    overrides: dict[str, object]
    version: int


class FreshConfig(Struct, frozen=True, kw_only=True):
    """The knobs as the rows say now, and the scope's own row."""

    resolved: ResolvedConfig
    overrides: dict[str, object]
    version: int


class _Entry(Struct, frozen=True):
    resolved: ResolvedConfig
    expires_at: float


def _ignore(_layer: str, _result: str) -> None:
    return None


class ConfigService:
    """Reads are memoised per workspace; many requests at expiry cause one read.

    A write through this process is seen at once, by other replicas within 30 seconds. When the rows cannot be read
    the last known values serve, marked stale, else defaults and environment.
    """

    def __init__(
        self,
        *,
        rows: SettingsRows,
        environ: Mapping[str, str],
        surroundings: Surroundings,
        clock: Callable[[], float] = time.monotonic,
        observer: LoadObserver = _ignore,
    ) -> None:
        """`clock` is in seconds."""
        self._rows, self._surroundings, self._clock, self._observer = rows, surroundings, clock, observer
        self.catalogue: dict[str, Knob] = knobs(surroundings)
        self._environment = {knob.env: environ[knob.env] for knob in self.catalogue.values() if knob.env in environ}
        self._entries: dict[str, _Entry] = {}
        self._loads: dict[str, asyncio.Task[ResolvedConfig]] = {}
        self._writes: dict[str, int] = {}
        self._running: set[asyncio.Task[Any]] = set()
        self._warned: set[tuple[str, str, str]] = set()
        self._log = structlog.get_logger("kroshka.config")
        for name in unknown_variables(environ, self.catalogue):
            self._log.warning("environment_variable_unknown", variable=name)

    async def resolve(self, workspace_id: UUID | None) -> ResolvedConfig:
        """The workspace's effective knobs; None means the platform's own. Never raises because of the database."""
        key = _key(workspace_id)
        entry = self._entries.get(key)
        if entry is not None and self._clock() < entry.expires_at:
            self._observer(_label(key), "hit")
            return entry.resolved
        load = self._loads.get(key)
        if load is None:
            load = self._loads[key] = self._start(self._load(key))
        return await asyncio.shield(load)  # one caller that gives up must not take the answer from the others

    async def row(self, workspace_id: UUID | None) -> SettingsRow:
        """The row itself, never the cache. Raises StoreUnavailable."""
        overrides, version = await self._rows.read(_key(workspace_id))
        return SettingsRow(overrides=overrides, version=version)

    async def fresh(self, workspace_id: UUID | None) -> FreshConfig:
        """For people who look at the settings or change them: the rows, never the cache. Raises StoreUnavailable."""
        row = await self.row(workspace_id)
        platform = row.overrides if workspace_id is None else (await self.row(None)).overrides
        workspace = {} if workspace_id is None else row.overrides
        layers = Layers(environment=self._environment, platform=platform, workspace=workspace)
        resolved = resolve(layers, self._surroundings)
        return FreshConfig(resolved=resolved, overrides=row.overrides, version=row.version)

    async def replace(
        self, workspace_id: UUID | None, overrides: Mapping[str, object], *, expected_version: int | None
    ) -> SettingsRow:
        """Raises InvalidInput or UnknownField with the knob and its bound, or PreconditionFailed."""
        ceilings = None if workspace_id is None else await self._ceilings()
        check_row(overrides, self.catalogue, ceilings)
        # On its own task: a caller that leaves makes the outcome unknown, and the cache must be cleared after it.
        write = self._start(self._write(_key(workspace_id), dict(overrides), expected_version))
        return await asyncio.shield(write)

    async def change(
        self, workspace_id: UUID | None, changes: Mapping[str, object], *, expected_version: int | None
    ) -> SettingsRow:
        """Merges `changes` into the row; None removes an override (RFC 7396). Raises as `replace` does."""
        row = await self.row(workspace_id)
        expected = row.version if expected_version is None else expected_version
        return await self.replace(workspace_id, merged(row.overrides, changes), expected_version=expected)

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # seen: the waiters get it, if there are any left

    async def _load(self, key: str) -> ResolvedConfig:
        """A load that began before a write is never stored after it."""
        began_at, this_load = self._write_count(key), asyncio.current_task()
        try:
            resolved = resolve(await self._read_layers(key), self._surroundings)
        except READ_FAILURES as error:
            return self._last_known(key, error)
        finally:
            if self._loads.get(key) is this_load:
                del self._loads[key]
        self._observer(_label(key), "loaded")
        self._warn(key, resolved)
        if began_at == self._write_count(key):
            self._entries[key] = _Entry(resolved, self._clock() + TTL_S)
        return resolved

    async def _read_layers(self, key: str) -> Layers:
        platform, _ = await self._rows.read(PLATFORM)
        workspace = {} if key == PLATFORM else (await self._rows.read(key))[0]
        return Layers(environment=self._environment, platform=platform, workspace=workspace)

    def _last_known(self, key: str, error: Exception) -> ResolvedConfig:
        self._log.warning("settings_unreadable", error=type(error).__name__)
        self._observer(_label(key), "stale")
        known = self._entries.get(key)
        resolved = known.resolved if known else resolve(Layers(environment=self._environment), self._surroundings)
        stale = structs.replace(resolved, stale=True)
        self._entries[key] = _Entry(stale, self._clock() + RETRY_S)
        return stale

    async def _ceilings(self) -> ResolvedConfig:
        platform, _ = await self._rows.read(PLATFORM)
        return resolve(Layers(environment=self._environment, platform=platform), self._surroundings)

    async def _write(self, key: str, overrides: dict[str, object], expected_version: int | None) -> SettingsRow:
        try:
            version = await self._rows.write(key, overrides, expected_version=expected_version)
        finally:
            self._expire(key)
        return SettingsRow(overrides=overrides, version=version)

    def _expire(self, key: str) -> None:
        """Values stay as the last known ones; nobody joins a load that began before the write."""
        self._writes[key] = self._writes.get(key, 0) + 1
        for name in list(self._entries) if key == PLATFORM else [key] if key in self._entries else []:
            self._entries[name] = _Entry(self._entries[name].resolved, -math.inf)
        for name in list(self._loads) if key == PLATFORM else [key]:
            self._loads.pop(name, None)

    def _write_count(self, key: str) -> tuple[int, int]:
        return self._writes.get(PLATFORM, 0), self._writes.get(key, 0)

    def _warn(self, key: str, resolved: ResolvedConfig) -> None:
        """One line for each bad value, not one for each load."""
        if len(self._warned) > MAX_REMEMBERED_WARNINGS:
            self._warned.clear()
        for warning in resolved.warnings:
            known_as = (key, warning.knob, warning.reason)
            if known_as not in self._warned:
                self._warned.add(known_as)
                self._observer(warning.layer, "invalid_knob")
                self._log.warning("knob_adjusted", knob=warning.knob, layer=warning.layer, reason=warning.reason)


def _key(workspace_id: UUID | None) -> str:
    return PLATFORM if workspace_id is None else str(workspace_id)


def _label(key: str) -> str:
    return "platform" if key == PLATFORM else "workspace"
