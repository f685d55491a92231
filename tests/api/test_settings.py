"""`/v1/settings/rag`: layers on show, validation, and no lost updates."""

from pathlib import Path
from uuid import uuid4

from app.domain.documents import DEFAULT_WORKSPACE
from tests.support.aio import run
from tests.support.api import open_api

PATH = "/v1/settings/rag"


def test_every_knob_is_shown_with_the_layer_that_it_came_from(tmp_path: Path) -> None:
    async def scenario() -> None:
        environ = {"RAG_SEARCH_TOPK": "11", "RAG_RRF_K": "many"}
        async with open_api(tmp_path, environ=environ) as api:
            await api.services.config.replace(None, {"rerankTopK": 6}, expected_version=None)
            await api.services.config.replace(DEFAULT_WORKSPACE, {"chunkSize": 700}, expected_version=None)
            shown = await api.json("GET", PATH)
            config = shown["config"]
            assert config["chunkSize"] == {"value": 700, "layer": "workspace"}
            assert config["rerankTopK"] == {"value": 6, "layer": "platform"}
            assert config["searchTopK"] == {"value": 11, "layer": "environment"}
            assert config["rrfK"] == {"value": 60, "layer": "default"}
            assert [(item["knob"], item["layer"]) for item in shown["warnings"]] == [("RAG_RRF_K", "environment")]
            assert shown["overrides"] == {"chunkSize": 700}
            assert shown["workspaceId"] == str(DEFAULT_WORKSPACE)

    run(scenario())


def test_put_replaces_the_row_and_patch_changes_single_knobs(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            put = await api.json("PUT", PATH, json={"searchTopK": 12, "minScore": 0.3})
            assert put["overrides"] == {"searchTopK": 12, "minScore": 0.3}
            patched = await api.json("PATCH", PATH, json={"searchTopK": 5, "minScore": None})
            assert patched["overrides"] == {"searchTopK": 5}
            assert patched["config"]["minScore"]["layer"] == "default"
            replaced = await api.json("PUT", PATH, json={})
            assert replaced["overrides"] == {}
            assert (put["version"], patched["version"], replaced["version"]) == (1, 2, 3)

    run(scenario())


def test_a_change_counts_for_the_next_search_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            before = await api.services.config.resolve(DEFAULT_WORKSPACE)
            assert before.config.search_top_k == 8
            await api.json("PATCH", PATH, json={"searchTopK": 5})
            assert (await api.services.config.resolve(DEFAULT_WORKSPACE)).config.search_top_k == 5

    run(scenario())


def test_an_etag_keeps_two_people_from_overwriting_each_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            seen = (await api.client.get(PATH)).headers["etag"]
            assert seen == '"0"'
            first = await api.client.put(PATH, json={"searchTopK": 12}, headers={"If-Match": seen})
            assert (first.status_code, first.headers["etag"]) == (200, '"1"')
            for method in ("PUT", "PATCH"):
                problem = await api.problem(method, PATH, 412, json={"rrfK": 30}, headers={"If-Match": seen})
                assert problem["type"] == "urn:kroshka:problem:precondition_failed"
            listed = {"If-Match": '"7", "1"'}
            assert (await api.client.patch(PATH, json={"rrfK": 30}, headers=listed)).status_code == 200
            shown = await api.json("GET", PATH)
            assert shown["overrides"] == {"searchTopK": 12, "rrfK": 30}

    run(scenario())


def test_if_match_is_read_as_the_standard_says(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:

            async def put(tag: str) -> int:
                return (await api.client.put(PATH, json={}, headers={"If-Match": tag})).status_code

            assert await put("*") == 412, "nothing is stored yet"
            assert await put('"0"') == 200
            assert await put("*") == 200
            assert await put('W/"2"') == 412, "a weak tag never matches"
            assert await put("2") == 422
            assert await put("") == 422

    run(scenario())


def test_a_refused_change_leaves_the_row_as_it_was(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            await api.json("PUT", PATH, json={"searchTopK": 12})
            unknown = await api.problem("PATCH", PATH, 422, json={"chunk_size": 500})
            assert unknown["errors"][0]["pointer"] == "/chunk_size"
            assert "chunkSize" in unknown["detail"]
            overlap = await api.problem("PATCH", PATH, 422, json={"chunkSize": 400, "chunkOverlap": 300})
            assert overlap["errors"][0] == {
                "pointer": "/chunkOverlap",
                "message": "300 is more than half of chunkSize (400)",
                "limit": 200,
            }
            assert (await api.json("GET", PATH))["overrides"] == {"searchTopK": 12}

    run(scenario())


def test_a_workspace_cannot_go_above_the_platforms_ceiling(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            problem = await api.problem("PUT", PATH, 422, json={"searchTimeoutMs": 9_000})
            assert "above the ceiling of 5000" in problem["detail"]
            lowered = await api.json("PUT", PATH, json={"searchTimeoutMs": 2_000})
            assert lowered["config"]["searchTimeoutMs"] == {"value": 2_000, "layer": "workspace"}

    run(scenario())


def test_a_workspace_cannot_send_passages_where_it_likes(tmp_path: Path) -> None:
    async def scenario() -> None:
        environ = {"RAG_RERANK_URLS": "http://allowed:80"}
        async with open_api(tmp_path, environ=environ) as api:
            problem = await api.problem("PUT", PATH, 422, json={"rerankUrl": "http://user:hunter2@evil"})
            assert "hunter2" not in str(problem)
            assert (await api.json("PUT", PATH, json={"rerankUrl": "http://allowed:80"}))["version"] == 1

    run(scenario())


def test_a_change_that_needs_a_reindex_says_so_and_how_many_documents(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            await api.world.indexed()
            changed = await api.json("PATCH", PATH, json={"chunkSize": 500, "searchTopK": 9})
            assert changed["reindex"] == {"knobs": ["chunkSize"], "documents": 1}
            harmless = await api.json("PATCH", PATH, json={"searchTopK": 10})
            assert "reindex" not in harmless

    run(scenario())


def test_only_the_own_workspace_can_be_named(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_api(tmp_path) as api:
            own = {"workspaceId": str(DEFAULT_WORKSPACE)}
            assert (await api.json("GET", PATH, params=own))["version"] == 0
            await api.problem("GET", PATH, 404, params={"workspaceId": str(uuid4())})
            await api.problem("GET", PATH, 403, params={"workspaceId": "__platform__"})
            await api.problem("PUT", PATH, 403, params={"workspaceId": "__platform__"}, json={})

    run(scenario())
