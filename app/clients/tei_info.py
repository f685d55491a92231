"""What `GET /info` of a TEI server tells, and the request sizes that follow from it."""

from collections.abc import Sequence
from typing import Any

import msgspec

MAX_REQUEST_BYTES = 1_500_000  # TEI's own limit is 2,000,000 unless set otherwise, and /info does not tell
DEFAULT_BATCH = 32


class TeiInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that we use. `max_client_batch_size` and `max_concurrent_requests` both count texts."""

    model_id: str
    model_type: dict[str, Any] | str = ""
    model_sha: str | None = None
    max_input_length: int = 512
    max_client_batch_size: int = DEFAULT_BATCH
    max_concurrent_requests: int = 512
    version: str = ""

    @property
    def kind(self) -> str:
        """`embedding`, `reranker` or `classifier`; empty when the server does not say."""
        return next(iter(self.model_type), "") if isinstance(self.model_type, dict) else self.model_type

    @property
    def batch_size(self) -> int:
        """Texts a request. Half of the permits at most: a larger batch than all permits is refused for ever."""
        return max(1, min(self.max_client_batch_size, self.max_concurrent_requests // 2))

    def parallel_requests(self, most: int) -> int:
        """Requests of a whole batch on their way at once, so that half of the permits are left to others."""
        return max(1, min(most, self.max_concurrent_requests // 2 // self.batch_size))


def parse_info(body: bytes) -> TeiInfo | None:
    """None when the body is not TEI's: other servers answer what they like."""
    try:
        info = msgspec.json.decode(body, type=TeiInfo)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    limits = (info.max_input_length, info.max_client_batch_size, info.max_concurrent_requests)
    return info if info.model_id and min(limits) > 0 else None


def batches(sizes: Sequence[int], *, max_count: int, max_bytes: int) -> list[range]:
    """Ranges of neighbours, at most `max_count` and `max_bytes` each; one that is too large goes alone."""
    found, start, total = list[range](), 0, 0
    for index, size in enumerate(sizes):
        if index > start and (index - start >= max_count or total + size > max_bytes):
            found.append(range(start, index))
            start, total = index, 0
        total += size
    if sizes:
        found.append(range(start, len(sizes)))
    return found


def halves(part: range) -> tuple[range, range]:
    """Both halves of a range of at least two."""
    middle = part.start + len(part) // 2
    return range(part.start, middle), range(middle, part.stop)
