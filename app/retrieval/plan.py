"""What one search will do: its knobs, its depths and its text, decided before anything is called. Pure."""

import re

from msgspec import UNSET, Struct

from app.config.knobs import RagConfig
from app.domain.errors import InvalidInput, LimitExceeded
from app.domain.search import SearchQuery

MAX_TOP_K = 200
_HAN = re.compile(
    r"[\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]"
)


class SearchPlan(Struct, frozen=True, kw_only=True):
    """`pool_depth` is the depth of each list, `rerank_pool` how many fused candidates the reranker sees."""

    text: str
    top_k: int
    min_score: float | None
    rerank: bool
    dense: bool
    lexical: bool
    pool_depth: int
    rerank_pool: int
    timeout_s: float
    rerank_timeout_s: float


def query_weight(text: str) -> int:
    """Weighted characters of a query: a Han character says as much as three others."""
    return len(text) + 2 * len(_HAN.findall(text))


def make_plan(query: SearchQuery, config: RagConfig, *, max_timeout_s: float, reranker_pool: int | None) -> SearchPlan:
    """`reranker_pool` is how many candidates the reranker wants to see at least, None when there is no reranker."""
    _check(query)
    wanted = query.overrides
    rerank = reranker_pool is not None and (config.rerank_enabled if wanted.rerank is UNSET else bool(wanted.rerank))
    default_top_k = config.rerank_top_k if rerank else config.search_top_k
    top_k = default_top_k if wanted.top_k is UNSET else int(wanted.top_k)
    rerank_pool = max(top_k, config.rerank_top_k, config.search_top_k, reranker_pool or 0) if rerank else 0
    timeout_ms = config.search_timeout_ms if query.timeout_ms is None else query.timeout_ms
    return SearchPlan(
        text=query.text.strip()[: config.query_max_length],
        top_k=top_k,
        min_score=config.min_score if wanted.min_score is UNSET else wanted.min_score,
        rerank=rerank,
        dense=wanted.dense,
        lexical=wanted.lexical,
        pool_depth=max(4 * top_k, config.search_top_k, rerank_pool),
        rerank_pool=rerank_pool,
        timeout_s=min(timeout_ms / 1000, max_timeout_s),
        rerank_timeout_s=config.rerank_timeout_ms / 1000,
    )


def _check(query: SearchQuery) -> None:
    top_k, min_score = query.overrides.top_k, query.overrides.min_score
    if top_k is not UNSET and not 1 <= top_k <= MAX_TOP_K:
        raise LimitExceeded("/topK", actual=top_k, limit=MAX_TOP_K, unit="hits")
    if min_score is not UNSET and min_score is not None and not -1 <= min_score <= 1:
        raise InvalidInput("/minScore", "a cosine lies between -1 and 1", limit="-1..1")
    if query.timeout_ms is not None and query.timeout_ms < 1:
        raise InvalidInput("/timeoutMs", "must be at least 1 millisecond", limit=1)
    if query.max_tokens is not None and query.max_tokens < 1:
        raise InvalidInput("/maxTokens", "must be at least 1 token", limit=1)
    if not (query.overrides.dense or query.overrides.lexical):
        raise InvalidInput("/overrides", "at least one of dense and lexical search must be on")
