"""Outbound adapters: vector engines, embedders, rerankers, blobs."""
