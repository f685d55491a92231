"""Examples of the OpenAPI document."""

from typing import Any

COLLECTION_ID = "0b6a3b5e-3d0f-4a39-9c53-6f3f3c9d2a11"

SEARCH_REQUEST: dict[str, Any] = {
    "query": "что делать при сбое линии",
    "collectionIds": [COLLECTION_ID],
    "topK": 4,
    "rerank": True,
}

SEARCH_ANSWER: dict[str, Any] = {
    "outcome": "hits",
    "hits": [
        {
            "chunkId": "c6a4c0f1-5f0e-5a53-8c8d-1d4f6a4c9b21",
            "documentId": "5f6f3a0c-2a51-4c1f-8f0e-7b1f2d3c4e5f",
            "collectionId": COLLECTION_ID,
            "sourceName": "Регламент.md",
            "chunkIndex": 3,
            "text": "[Section: 2. Первичная диагностика]\n\nПроверка баланса абонента…",
            "contentStart": 37,
            "sectionPath": ["Регламент", "2. Первичная диагностика"],
            "page": None,
            "span": [1204, 1877],
            "relevance": 0.97,
            "relevanceSource": "bge-reranker-v2-m3/sigmoid-1",
            "reranked": True,
            "scores": {"cosine": 0.71, "lexical": 8.2, "fused": 0.0325, "rerank": 0.9991},
            "ranks": {"dense": 2, "lexical": 1, "fused": 1},
        }
    ],
    "degraded": [],
    "notes": [],
    "reranker": {"dialect": "tei", "model": "BAAI/bge-reranker-v2-m3"},
    "timingsMs": {"embed": 14.1, "search": 3.9, "rerank": 38.0, "total": 57.6},
}
