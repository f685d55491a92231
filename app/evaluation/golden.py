"""The golden set: questions about the sample corpus, with the file and section that answer them.

A hit is relevant when it is of that file and its section path is the golden path or lies below it. The paths hold the
whole breadcrumb, the level-1 heading included; an empty path stands for the whole file.
"""

import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from app.domain.search import Hit
from app.evaluation.lines import broken, read_bytes, read_jsonl
from app.evaluation.measures import Figures, measure
from app.evaluation.questions import Answer, Judgement, Question

UNANSWERABLE = "unanswerable"
_SEPARATOR = "\x1f"  # in no file name and no heading: control characters are not allowed there

_Word = Annotated[str, Meta(min_length=1)]


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """Where an answer stands. `grade` 1..4, 4 is a complete answer."""

    file: _Word
    section: tuple[_Word, ...] = ()
    grade: Annotated[int, Meta(ge=1, le=4)] = 1

    @property
    def unit(self) -> str:
        return section_unit_of(self.file, self.section)


class GoldenQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of the golden file. Without `relevant` the corpus does not answer it. `collection` narrows the search."""

    id: _Word
    query: _Word
    lang: _Word
    kind: _Word
    collection: str | None = None
    relevant: tuple[Section, ...] = ()

    def question(self, collection_ids: Mapping[str, UUID]) -> Question:
        """Ready to ask; `collection_ids` by name must hold this question's collection, if it names one."""
        narrowed = () if self.collection is None else (collection_ids[self.collection],)
        judgements = tuple(Judgement(section.unit, section.grade) for section in self.relevant)
        return Question(id=self.id, text=self.query, judgements=judgements, collection_ids=narrowed)


class SampleCollection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A collection of the sample corpus. `files` are paths below the samples folder, and the documents' names."""

    name: _Word
    description: str = ""
    files: Annotated[tuple[_Word, ...], Meta(min_length=1)]


class GoldenSet(Struct, frozen=True, kw_only=True):
    """The questions, those with an answer apart from those without."""

    answerable: tuple[GoldenQuestion, ...]
    unanswerable: tuple[GoldenQuestion, ...]


class KindFigures(Struct, frozen=True, kw_only=True, rename="camel"):
    """One kind of questions by itself."""

    kind: str
    questions: int
    figures: Figures


def load_collections(path: Path) -> tuple[SampleCollection, ...]:
    """Reads `collections.json`. Raises InvalidInput: broken, a name twice, a file that is not beside it."""
    try:
        collections = msgspec.json.decode(read_bytes(path), type=tuple[SampleCollection, ...])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise broken(path, str(error)) from error
    names = [collection.name for collection in collections]
    for collection in collections:
        if names.count(collection.name) > 1:
            raise broken(path, f"collection {collection.name!r} is there twice")
        for file in collection.files:
            if not (path.parent / file).is_file():
                raise broken(path, f"collection {collection.name!r}: there is no file {file!r} in {path.parent}")
    return collections


def load_golden(path: Path, collections: Sequence[SampleCollection]) -> GoldenSet:
    """Reads `golden.jsonl`. Raises InvalidInput naming the line: broken, an id twice, an unknown file or collection."""
    by_name = {collection.name: set(collection.files) for collection in collections}
    questions: list[GoldenQuestion] = []
    first_lines: dict[str, int] = {}
    for line, question in read_jsonl(path, GoldenQuestion):
        first = first_lines.setdefault(question.id, line)
        if first != line:
            raise broken(path, f"id {question.id!r} is already on line {first}", line=line)
        _check(path, line, question, by_name)
        questions.append(question)
    if not any(question.relevant for question in questions):
        raise broken(path, "holds no question with an answer")
    return GoldenSet(
        answerable=tuple(question for question in questions if question.relevant),
        unanswerable=tuple(question for question in questions if not question.relevant),
    )


def section_unit(question: Question, hit: Hit) -> str:
    """The judged section that the hit lies in (the deepest, if several), else the hit's own section."""
    own = section_unit_of(hit.source_name, hit.section_path)
    judged = [
        judgement.unit
        for judgement in question.judgements
        if own == judgement.unit or own.startswith(judgement.unit + _SEPARATOR)
    ]
    return max(judged, key=len, default=own)


def section_unit_of(file: str, section: Iterable[str]) -> str:
    """File and path in one string, so that a path's beginning is the string's beginning."""
    return _SEPARATOR.join(unicodedata.normalize("NFC", part).strip() for part in (file, *section))


def missing_sections(golden: GoldenSet, sections: Mapping[str, Collection[tuple[str, ...]]]) -> tuple[str, ...]:
    """Golden sections that no chunk lies in, as sentences; `sections` are the chunks' paths by file.

    A misspelt section would never be found and look like a bad search.
    """
    found = [section_unit_of(file, path) + _SEPARATOR for file, paths in sections.items() for path in paths]
    return tuple(
        f"{question.id}: {' › '.join((target.file, *target.section))} is in no chunk"
        for question in golden.answerable
        for target in question.relevant
        if not any(unit.startswith(target.unit + _SEPARATOR) for unit in found)
    )


def figures_by_kind(
    golden: Sequence[GoldenQuestion], questions: Sequence[Question], answers: Sequence[Answer]
) -> tuple[KindFigures, ...]:
    """The measures of each kind of questions, kinds by name. The three sequences are in the same order."""
    rows = list(zip(golden, questions, answers, strict=True))
    figures = []
    for kind in sorted({entry.kind for entry in golden}):
        part = [(question, answer) for entry, question, answer in rows if entry.kind == kind]
        of_kind = measure([question for question, _ in part], [answer for _, answer in part])
        figures.append(KindFigures(kind=kind, questions=len(part), figures=of_kind))
    return tuple(figures)


def _check(path: Path, line: int, question: GoldenQuestion, files_by_collection: Mapping[str, set[str]]) -> None:
    if (question.kind == UNANSWERABLE) == bool(question.relevant):
        raise broken(
            path, f"kind {question.kind!r} does not go with {len(question.relevant)} relevant sections", line=line
        )
    if question.collection is not None and question.collection not in files_by_collection:
        known = ", ".join(files_by_collection)
        raise broken(path, f"unknown collection {question.collection!r}; known: {known}", line=line)
    searched = files_by_collection if question.collection is None else (question.collection,)
    files = {file for name in searched for file in files_by_collection[name]}
    for target in question.relevant:
        if target.file not in files:
            raise broken(path, f"file {target.file!r} is in no collection that is searched", line=line)
    if len({target.unit for target in question.relevant}) != len(question.relevant):
        raise broken(path, "a section is judged twice", line=line)
