"""Deployment settings from an environment."""

from pathlib import Path

import pytest

from app.config.deployment import Deployment
from app.config.secrets import Secret, without_credentials
from app.domain.errors import ConfigurationError
from app.domain.vectors import EmbeddingModel


def test_nothing_set_is_a_laptop(tmp_path: Path) -> None:
    deployment = Deployment.from_environ({"KROSHKA_DATA": str(tmp_path)})

    assert (deployment.host, deployment.port) == ("127.0.0.1", 8000)
    assert (deployment.embedder, deployment.reranker) == ("local", "local")
    assert deployment.database_url == f"sqlite+aiosqlite:///{tmp_path}/kroshka.db"
    assert deployment.blob_url == f"file://{tmp_path}/blobs"
    assert (deployment.qdrant_url, deployment.max_upload_bytes) == (None, 200_000_000)
    assert deployment.max_search_timeout_s == 30.0


def test_without_a_data_folder_it_is_the_platforms() -> None:
    deployment = Deployment.from_environ({})

    assert deployment.data_dir.is_absolute()
    assert "kroshka" in str(deployment.data_dir)


def test_empty_variables_count_as_unset() -> None:
    names = ("KROSHKA_PORT", "EMBEDDER", "QDRANT_URL", "MAX_UPLOAD_BYTES", "MAX_SEARCH_TIMEOUT", "DATABASE_URL")

    assert repr(Deployment.from_environ(dict.fromkeys(names, " "))) == repr(Deployment.from_environ({}))


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("EMBEDDER", "openai", "one of local, tei, hash"),
        ("RERANKER", "yes", "one of local, tei, none"),
        ("KROSHKA_PORT", "80800", "an integer from 0 to 65,535"),
        ("KROSHKA_PORT", "8e3", "an integer from 0 to 65,535"),
        ("MAX_UPLOAD_BYTES", "200MB", "an integer from 1"),
        ("MAX_SEARCH_TIMEOUT", "nan", "a number from 0.1 to 600"),
        ("MAX_SEARCH_TIMEOUT", "soon", "a number from 0.1 to 600"),
        ("QDRANT_URL", "qdrant:6333", "an absolute http or https address"),
        ("TEI_EMBED_URL", "ftp://host", "an absolute http or https address"),
        ("DATABASE_URL", "mysql://host/db", "sqlite://"),
        ("BLOB_URL", "/var/blobs", "file://"),
        ("RAG_RERANK_URLS", "http://a, nonsense", "separated by commas"),
        ("KROSHKA_ALLOW_ANONYMOUS", "write", "one of search"),
        ("KROSHKA_DATA", "/data?v=1", "a folder without a question mark"),
    ],
)
def test_a_wrong_value_names_the_variable_and_what_it_may_be(variable: str, value: str, allowed: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Deployment.from_environ({variable: value})

    assert f"environment variable {variable} " in str(caught.value)
    assert allowed in str(caught.value)
    assert value not in str(caught.value).replace("separated by commas", "") or value in allowed


@pytest.mark.parametrize(
    ("environ", "variable"),
    [
        ({"EMBEDDER": "tei"}, "TEI_EMBED_URL"),
        ({"RERANKER": "tei"}, "TEI_RERANK_URL"),
        ({"EMBEDDER": "hash", "RERANKER": "local"}, "RERANKER"),
    ],
)
def test_settings_that_need_each_other_are_checked_together(environ: dict[str, str], variable: str) -> None:
    with pytest.raises(ConfigurationError, match=f"environment variable {variable} "):
        Deployment.from_environ(environ)


def test_the_reranker_follows_the_embedder_when_it_is_not_named() -> None:
    tei = {"EMBEDDER": "tei", "TEI_EMBED_URL": "http://tei/"}

    assert Deployment.from_environ({"EMBEDDER": "hash"}).reranker == "none"
    assert Deployment.from_environ(tei).reranker == "none"
    assert Deployment.from_environ(tei | {"TEI_RERANK_URL": "http://rerank"}).reranker == "tei"
    assert Deployment.from_environ(tei).tei_embed_url == "http://tei"


def test_the_allow_list_holds_the_deployments_own_address_first() -> None:
    rerank = {"RERANKER": "tei", "RAG_RERANK_URL": "http://a", "RAG_RERANK_URLS": "http://b, http://a"}
    deployment = Deployment.from_environ(rerank)

    assert deployment.rerank_urls == ("http://a", "http://b")
    around = deployment.surroundings(EmbeddingModel(name="m", version="1", dimension=3, min_score=0.3))
    assert (around.rerank_url, around.min_score, around.max_search_timeout_ms) == ("http://a", 0.3, 30_000)


def test_an_address_is_no_default_where_the_deployment_reranks_by_itself() -> None:
    deployment = Deployment.from_environ({"RERANKER": "local", "TEI_RERANK_URL": "http://a"})
    around = deployment.surroundings(EmbeddingModel(name="m", version="1", dimension=3))
    assert (around.rerank_url, around.rerank_urls) == (None, ("http://a",))


def test_no_secret_is_in_what_is_printed() -> None:
    deployment = Deployment.from_environ(
        {
            "QDRANT_API_KEY": "canary-1",
            "TEI_API_KEY": "canary-2",
            "DATABASE_URL": "postgresql://kroshka:canary-3@db/kroshka?password=canary-4",
            "BLOB_URL": "s3://key:canary-5@bucket",
        }
    )

    shown = f"{deployment!r} {deployment} {deployment.qdrant_api_key}"
    assert "canary" not in shown
    assert "db/kroshka" in shown
    assert deployment.qdrant_api_key == Secret("canary-1")
    assert deployment.tei_api_key is not None
    assert deployment.tei_api_key.reveal() == "canary-2"


def test_an_address_without_credentials_is_shown_whole() -> None:
    assert without_credentials("http://host:6333/path") == "http://host:6333/path"
    assert without_credentials("http://[broken") == "***"
