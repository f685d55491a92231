"""The lexical side of search: one tokenizer for documents and queries, BM25 weights for documents.

BM25: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009. The engine multiplies by
the inverse document frequency at query time, so a document's weights hold the rest of the formula.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

import xxhash

from app.domain.vectors import SparseVector
from app.text.terms import Stemmers, Term
from app.text.terms import terms as text_terms

LEXICAL_VERSION = 1
"""Goes up with every change that gives some text other terms or weights."""

AVERAGE_LENGTH = 100.0
"""Terms of an average chunk, for a new index generation."""

K1, B = 1.2, 0.75

_STEMMERS = Stemmers()


def lexical_title(source_name: str, section_path: Sequence[str]) -> str:
    """What is searched beside the content, so that a title word finds its sections."""
    return "\n".join([PurePath(source_name).stem, *section_path])


def document_terms(text: str) -> list[Term]:
    """Function words included: a query of nothing else looks for them."""
    return list(text_terms(text, _STEMMERS))


def query_terms(text: str) -> list[str]:
    """Distinct terms in order, without function words unless there is nothing else."""
    found = list(text_terms(text, _STEMMERS, query=True))
    wanted = [term for term in found if not term.stop] or found
    return list(dict.fromkeys(term.text for term in wanted))


def document_vector(
    source_name: str, section_path: Sequence[str], content: str, *, average_length: float
) -> SparseVector:
    """BM25 weights by term id, ids ascending. Terms whose ids collide add up."""
    found = document_terms(f"{lexical_title(source_name, section_path)}\n{content}")
    length = sum(term.counts for term in found)
    norm = K1 * (1 - B + B * length / average_length)
    weights: dict[int, float] = {}
    for text, count in Counter(term.text for term in found).items():
        number = term_id(text)
        weights[number] = weights.get(number, 0.0) + count * (K1 + 1) / (count + norm)
    return _sparse(weights)


def query_vector(text: str) -> SparseVector:
    """Weight 1 for every term of the query, ids ascending."""
    return _sparse(dict.fromkeys(map(term_id, query_terms(text)), 1.0))


def is_full_match(terms: Sequence[str], *, title_text: str, content: str) -> bool:
    """All of the query's terms are there, at least one of them in the content itself."""
    in_content = {term.text for term in document_terms(content)}
    wanted = set(terms)
    if not wanted or not wanted & in_content:
        return False
    return wanted - in_content <= {term.text for term in document_terms(title_text)}


def term_id(term: str) -> int:
    """32-bit xxHash: the dimension of a term in the sparse vector."""
    return xxhash.xxh32_intdigest(term.encode())


def _sparse(weights: dict[int, float]) -> SparseVector:
    numbers = sorted(weights)
    return SparseVector(indices=tuple(numbers), values=tuple(weights[number] for number in numbers))
