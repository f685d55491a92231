"""The generation that searches read: one embedding model and one lexical version."""

from functools import partial
from uuid import uuid4

from sqlalchemy import insert, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.documents import Generation
from app.domain.errors import ModelMismatch
from app.store.database import Database
from app.store.rows import generation_of
from app.store.tables import generation
from app.store.types import database_time

WRITTEN = ("active", "building", "standby")
"""States of generations that every write goes to."""

IS_ACTIVE = generation.c.state == literal_column("'active'")


class SqlGenerations:
    """Creates the first generation and guards that the process serves the one that is active."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def ensure_generation(
        self, *, embedder: str, model_key: str, dimension: int, lexical_version: int, average_length: float
    ) -> Generation:
        """The active generation, created when there is none yet (by one of several processes that start at once).

        `embedder` is its name in the deployment, `average_length` the BM25 constant in terms per chunk; an existing
        generation keeps its own. Raises ModelMismatch, naming both, when it was built with another model or lexical
        version.
        """
        wanted = Generation(
            id=uuid4(),
            embedder=embedder,
            model_key=model_key,
            dimension=dimension,
            lexical_version=lexical_version,
            index_name="",
            state="active",
            average_length=average_length,
        )
        active = await self._database.write(partial(_ensure, wanted=wanted))
        if (active.model_key, active.dimension) != (model_key, dimension):
            raise ModelMismatch(
                f"the index was built with {active.model_key}, but this process embeds with {model_key}"
            )
        if active.lexical_version != lexical_version:
            versions = f"version {active.lexical_version}, but this process has version {lexical_version}"
            raise ModelMismatch(f"the index was built with the lexical tokenizer's {versions}")
        return active


async def _ensure(connection: AsyncConnection, wanted: Generation) -> Generation:
    found = (await connection.execute(select(generation).where(IS_ACTIVE))).first()
    if found is None:
        values = {
            "id": wanted.id,
            "embedder": wanted.embedder,
            "model_key": wanted.model_key,
            "dimension": wanted.dimension,
            "lexical_version": wanted.lexical_version,
            "average_length": wanted.average_length,
            "index_name": f"kroshka_{wanted.id.hex[:12]}",
            "state": wanted.state,
            "created_at": database_time(),
        }
        found = (await connection.execute(insert(generation).values(**values).returning(*generation.c))).one()
    return generation_of(found)
