"""Text to vectors, synchronously: tokens, input embeddings, the network, pooling."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from app.clients.local_model.q4_file import Q4File, dequantise
from app.clients.local_model.session import EncoderSession
from app.clients.local_model.token_rows import int8_rows, unit_rows
from app.clients.local_model.unigram import UnigramTokenizer
from app.domain.errors import EmbedderUnavailable, LimitExceeded
from app.domain.vectors import FloatArray, QueryVectors, TokenMatrix

QUERY_PREFIX = "query:"
PASSAGE_PREFIX = "passage:"
_MASK_PIECE = "<mask>"
_LONGEST_QUERY = 16_384
"""Characters of a query that are looked at: 512 pieces of at most 16 characters, twice."""


class EncodedPassage(Struct, frozen=True):
    """`dense` (dimension,) float32, L2-normalised; `tokens` int8 rows of the content's tokens."""

    dense: FloatArray
    tokens: TokenMatrix


class E5Encoder:
    """multilingual-e5 (Wang et al., 2024). Holds no state between calls: several threads may use it at once."""

    def __init__(self, *, weights: Q4File, session: EncoderSession, token_mean: FloatArray) -> None:
        sizes = weights.sizes
        self.max_tokens = sizes.positions
        self.dimension = sizes.hidden
        self._session, self._token_mean = session, token_mean
        self._begin, self._end = sizes.begin_id, sizes.end_id
        self._words = weights.q4_blocks("emb.word", sizes.words, sizes.hidden)
        type_row = weights.floats("emb.type", sizes.types, sizes.hidden)[0]
        self._positions = weights.floats("emb.pos", sizes.positions, sizes.hidden) + type_row
        self._tokenizer = tokenizer_of(weights)
        self._query_prefix = self._tokenizer.encode(QUERY_PREFIX)
        self._passage_prefix = self._tokenizer.encode(PASSAGE_PREFIX)

    def count_passage_tokens(self, text: str) -> int:
        """Tokens of a passage, with prefix and special tokens."""
        return len(self.passage_tokens(text))

    def passage_tokens(self, text: str) -> list[int]:
        """All token ids of a passage, however many."""
        return [self._begin, *self._passage_prefix, *self._tokenizer.encode(text), self._end]

    def checked_passage_tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text. LimitExceeded names the first one that the model would have to cut."""
        tokens = [self.passage_tokens(text) for text in texts]
        for index, ids in enumerate(tokens):
            if len(ids) > self.max_tokens:
                raise LimitExceeded(f"/texts/{index}", actual=len(ids), limit=self.max_tokens, unit="tokens")
        return tokens

    def query_tokens(self, text: str) -> list[int]:
        """Token ids of a query, cut at the model's limit."""
        room = self.max_tokens - 2 - len(self._query_prefix)
        content = self._tokenizer.encode(text[:_LONGEST_QUERY], limit=room)
        return [self._begin, *self._query_prefix, *content, self._end]

    def encode_query(self, text: str) -> QueryVectors:
        """Dense vector and centred token vectors; a query without a single token has no rows of the latter."""
        hidden = self.hidden_states(self.query_tokens(text))
        content = hidden[1 + len(self._query_prefix) : -1]
        return QueryVectors(dense=_pool(hidden), tokens=unit_rows(content - self._token_mean))

    def encode_passage(self, tokens: Sequence[int]) -> EncodedPassage:
        """Vectors of a passage whose ids came from `checked_passage_tokens`."""
        hidden = self.hidden_states(tokens)
        return EncodedPassage(dense=_pool(hidden), tokens=int8_rows(self.content(hidden) - self._token_mean))

    def content(self, passage_states: FloatArray) -> FloatArray:
        """The rows of a passage's own tokens: without prefix and special tokens."""
        return passage_states[1 + len(self._passage_prefix) : -1]

    def hidden_states(self, tokens: Sequence[int]) -> FloatArray:
        """The last layer, shape (len(tokens), dimension)."""
        embeddings = dequantise(self._words[np.asarray(tokens, dtype=np.int64)]) + self._positions[: len(tokens)]
        return self._session.run(embeddings)


def _pool(hidden: FloatArray) -> FloatArray:
    """The mean over all tokens, special ones too: how the model was trained."""
    mean = hidden.mean(axis=0)
    norm = float(np.linalg.norm(mean))
    if norm == 0.0:
        raise EmbedderUnavailable("the embedding model gave a vector without direction", cause="bad_answer")
    return np.asarray(mean / norm, dtype=np.float32)


def tokenizer_of(weights: Q4File) -> UnigramTokenizer:
    """The model's own tokenizer."""
    sizes = weights.sizes
    pieces = weights.pieces()
    masks = {index for index, (piece, _) in enumerate(pieces) if piece == _MASK_PIECE}
    return UnigramTokenizer(
        pieces=pieces,
        character_map=weights.character_map,
        unknown_id=sizes.unknown_id,
        control_ids=frozenset({sizes.begin_id, sizes.end_id, sizes.pad_id, sizes.unknown_id} | masks),
    )
