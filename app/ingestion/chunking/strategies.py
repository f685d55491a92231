"""What a strategy is, and those that there are by name."""

from collections.abc import Mapping
from types import MappingProxyType

from app.ingestion.chunking.fixed import FIXED
from app.ingestion.chunking.paragraph import PARAGRAPH
from app.ingestion.chunking.recursive import RECURSIVE
from app.ingestion.chunking.rows import ROWS
from app.ingestion.chunking.sentence import SENTENCE
from app.ingestion.chunking.strategy import Strategy
from app.ingestion.chunking.structure_aware import STRUCTURE_AWARE
from app.ingestion.chunking.whole import WHOLE

STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {one.name: one for one in (STRUCTURE_AWARE, RECURSIVE, SENTENCE, PARAGRAPH, FIXED, WHOLE, ROWS)}
)
