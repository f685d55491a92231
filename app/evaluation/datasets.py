"""Data sets in BEIR's form (Thakur et al., 2021): `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`.

Each corpus document is uploaded as a plain text file. Its name carries the document's id, so that a hit can be traced
back without asking the service anything.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, TypeVar

from msgspec import Meta, Struct, field

from app.domain.errors import InvalidInput
from app.domain.search import Hit
from app.evaluation.lines import broken, numbered_lines, read_jsonl
from app.evaluation.questions import Judgement, Question

QRELS_NAMES = ("qrels.tsv", "qrels/test.tsv")
MAX_ID_BYTES = 150  # as base32 it must fit in a file's name (255 bytes on most file systems)
_NAME = re.compile(r"x0([a-z2-7]+)\.txt")

_Id = Annotated[str, Meta(min_length=1)]


class CorpusDocument(Struct, frozen=True, kw_only=True):
    """A document of the corpus. Other fields of its line (author, metadata) are ignored."""

    id: _Id = field(name="_id")
    text: str
    title: str = ""

    @property
    def source_name(self) -> str:
        return source_name_of(self.id)

    def body(self, *, with_title: bool = False) -> str:
        """What is uploaded: the text; with the title above it if asked, or if there is no text at all.

        Published BEIR figures are for title and text; those of XQuAD's paragraphs for the text alone.
        """
        if not self.text.strip():
            return self.title
        return f"{self.title}\n\n{self.text}" if with_title and self.title.strip() else self.text


class Dataset(Struct, frozen=True, kw_only=True):
    """A corpus and its questions. `unjudged` questions have no relevant document and are left out, as is usual."""

    name: str
    documents: tuple[CorpusDocument, ...]
    questions: tuple[Question, ...]
    unjudged: int = 0


class _Query(Struct, frozen=True):
    id: _Id = field(name="_id")
    text: Annotated[str, Meta(min_length=1)]


_Row = TypeVar("_Row", CorpusDocument, _Query)


def source_name_of(document_id: str) -> str:
    """A file name for any id: lower-case base32, because names are compared without regard to case.

    It is one opaque word: parts of a readable id would be searched as words (`Mach 1` finding document 1 by name).
    """
    return f"x0{base64.b32encode(document_id.encode()).decode().rstrip('=').lower()}.txt"


def document_id_of(source_name: str) -> str | None:
    """The id in a name that `source_name_of` made, else None."""
    match = _NAME.fullmatch(source_name)
    if match is None:
        return None
    packed = match[1].upper()
    try:
        document_id = base64.b32decode(packed + "=" * (-len(packed) % 8)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return document_id if source_name_of(document_id) == source_name else None


def document_unit(question: Question, hit: Hit) -> str:
    """A hit counts for its document; a stranger in the collection is a document of its own and never relevant."""
    document_id = document_id_of(hit.source_name)
    return f"other:{hit.document_id}" if document_id is None else _unit(document_id)


def load_dataset(folder: Path, *, limit: int | None = None, queries_from: Path | None = None) -> Dataset:
    """Reads a folder with the three files; `limit` keeps the first judged questions, and always the whole corpus.

    `queries_from` takes the questions of a parallel data set (same ids, another language). Raises InvalidInput that
    names file and line: broken JSON, missing fields, an id twice, a judgement of something unknown.
    """
    if limit is not None and limit < 1:
        raise InvalidInput("limit", "at least 1 question is needed", limit=1)
    documents = _read_documents(folder / "corpus.jsonl")
    queries = _read_queries((queries_from or folder) / "queries.jsonl")
    judgements = _read_judgements(_qrels_path(folder), {document.id for document in documents}, queries.keys())
    asked = [Question(id=key, text=text, judgements=tuple(judgements.get(key, ()))) for key, text in queries.items()]
    judged = tuple(question for question in asked if question.is_answerable)
    if not judged:
        raise broken(folder, "no query of this data set has a relevant document")
    return Dataset(
        name=folder.resolve().name,
        documents=documents,
        questions=judged[:limit],
        unjudged=len(asked) - len(judged),
    )


def _unit(document_id: str) -> str:
    return f"document:{document_id}"


def _read_documents(path: Path) -> tuple[CorpusDocument, ...]:
    documents: list[CorpusDocument] = []
    for line, document in _unique(path, read_jsonl(path, CorpusDocument)):
        if len(document.id.encode()) > MAX_ID_BYTES:
            raise broken(path, f"an _id may have at most {MAX_ID_BYTES} bytes", line=line)
        if not document.body().strip():
            raise broken(path, f"document {document.id!r} has neither text nor title", line=line)
        documents.append(document)
    if not documents:
        raise broken(path, "holds no document")
    return tuple(documents)


def _read_queries(path: Path) -> dict[str, str]:
    return {query.id: query.text for _, query in _unique(path, read_jsonl(path, _Query))}


def _unique(path: Path, rows: Iterable[tuple[int, _Row]]) -> Iterator[tuple[int, _Row]]:
    """The rows with their lines, each id once."""
    first_lines: dict[str, int] = {}
    for line, row in rows:
        first = first_lines.setdefault(row.id, line)
        if first != line:
            raise broken(path, f"_id {row.id!r} is already on line {first}", line=line)
        yield line, row


def _qrels_path(folder: Path) -> Path:
    for name in QRELS_NAMES:
        if (folder / name).is_file():
            return folder / name
    raise broken(folder, f"there is no {' or '.join(QRELS_NAMES)}")


def _read_judgements(path: Path, documents: set[str], queries: Iterable[str]) -> Mapping[str, list[Judgement]]:
    """Judgements by query id. The first line may be BEIR's header."""
    known_queries, seen = set(queries), set()
    judgements: dict[str, list[Judgement]] = {}
    for line, fields in _qrels_rows(path):
        query_id, document_id, grade = fields
        if query_id not in known_queries:
            raise broken(path, f"query {query_id!r} is not in queries.jsonl", line=line)
        if document_id not in documents:
            raise broken(path, f"document {document_id!r} is not in corpus.jsonl", line=line)
        if (query_id, document_id) in seen:
            raise broken(path, f"query {query_id!r} and document {document_id!r} are judged twice", line=line)
        seen.add((query_id, document_id))
        judgements.setdefault(query_id, []).append(Judgement(_unit(document_id), grade))
    return judgements


def _qrels_rows(path: Path) -> Iterator[tuple[int, tuple[str, str, int]]]:
    for line, raw in numbered_lines(path):
        try:
            fields = raw.decode().split("\t")
        except UnicodeDecodeError as error:
            raise broken(path, f"is not UTF-8: {error.reason}", line=line) from error
        if line == 1 and fields[-1] == "score":
            continue
        if len(fields) != 3:
            raise broken(
                path, f"3 fields separated by tabs are needed (query, document, grade), not {len(fields)}", line=line
            )
        if not re.fullmatch(r"[0-9]{1,4}", fields[2]):
            raise broken(path, f"the grade must be a whole number from 0 to 9999, not {fields[2]!r}", line=line)
        yield line, (fields[0], fields[1], int(fields[2]))
