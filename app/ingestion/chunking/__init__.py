"""One strategy a file, behind one dispatcher."""

from app.ingestion.chunking.dispatch import TooLargeForOneChunk, chunk
from app.ingestion.chunking.strategies import STRATEGIES

__all__ = ["STRATEGIES", "TooLargeForOneChunk", "chunk"]
