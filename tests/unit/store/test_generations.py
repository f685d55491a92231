"""The active generation."""

import asyncio
from pathlib import Path

import pytest

from app.domain.documents import Generation
from app.domain.errors import ModelMismatch
from app.store.database import Database
from app.store.generations import SqlGenerations
from tests.support.aio import run


async def ensure(database: Database, model_key: str = "e5@1/384", lexical_version: int = 1) -> Generation:
    return await SqlGenerations(database=database).ensure_generation(
        embedder="local",
        model_key=model_key,
        dimension=int(model_key.rpartition("/")[2]),
        lexical_version=lexical_version,
        average_length=60.0,
    )


def test_processes_that_start_at_once_share_one_generation(tmp_path: Path) -> None:
    async def story() -> None:
        databases = [await Database.open(f"sqlite:///{tmp_path}/k.db") for _ in range(3)]
        made = await asyncio.gather(*(ensure(database) for database in databases))
        assert len({generation.id for generation in made}) == 1
        assert made[0].index_name.startswith("kroshka_")
        for database in databases:
            await database.aclose()

    run(story())


def test_another_model_or_tokenizer_is_refused_naming_both(tmp_path: Path) -> None:
    async def story() -> None:
        database = await Database.open(f"sqlite:///{tmp_path}/k.db")
        await ensure(database)
        with pytest.raises(ModelMismatch, match=r"e5@1/384.*bge-m3@1/1024"):
            await ensure(database, "bge-m3@1/1024")
        with pytest.raises(ModelMismatch, match=r"version 1.*version 2"):
            await ensure(database, lexical_version=2)
        await database.aclose()

    run(story())
