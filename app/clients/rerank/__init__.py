"""Cross-encoders over HTTP: the dialects they speak, how their answers are read, the client."""

from app.clients.rerank.client import HttpReranker

__all__ = ["HttpReranker"]
