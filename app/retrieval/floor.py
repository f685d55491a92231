"""The cosine floor: a candidate below it stays only when it is a full lexical match."""

from collections.abc import Callable, Sequence
from uuid import UUID

from app.retrieval.fusion import Candidate


def below_floor(candidates: Sequence[Candidate], min_score: float) -> list[Candidate]:
    """Those whose known cosine is under `min_score`; a candidate without a cosine is not judged."""
    return [candidate for candidate in candidates if candidate.cosine is not None and candidate.cosine < min_score]


def apply_floor(
    candidates: Sequence[Candidate], min_score: float, is_full_match: Callable[[UUID], bool]
) -> list[Candidate]:
    """Order kept. Applied before any cut, so that a row below the floor never takes a place.

    Only lexical candidates are asked for a full match: only they can hold all of the query's terms.
    """

    def stays(candidate: Candidate) -> bool:
        if candidate.cosine is None or candidate.cosine >= min_score:
            return True
        return candidate.lexical_rank is not None and is_full_match(candidate.chunk_id)

    return [candidate for candidate in candidates if stays(candidate)]
