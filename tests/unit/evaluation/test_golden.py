import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.domain.errors import InvalidInput
from app.evaluation.golden import (
    GoldenSet,
    figures_by_kind,
    load_collections,
    load_golden,
    missing_sections,
    section_unit,
)
from app.evaluation.questions import Answer, Judgement, Question
from tests.support.evaluation import NAMES, hit, write_jsonl

RAG = {"file": "rag.md", "section": ["RAG", "Process"], "grade": 2}
PLAIN: dict[str, Any] = {"id": "g1", "query": "how does it go", "lang": "en", "relevant": [RAG], "kind": "paraphrase"}
CRASH: dict[str, Any] = {"id": "g2", "query": "moon", "lang": "en", "relevant": [], "kind": "unanswerable"}


def load(folder: Path, *lines: dict[str, Any]) -> GoldenSet:
    for name in ("rag.md", "сбои.md"):
        (folder / name).write_text("# RAG\n", encoding="utf-8")
    collections = [
        {"name": "AI Wiki", "description": "articles", "files": ["rag.md"]},
        {"name": "Регламенты", "files": ["сбои.md"]},
    ]
    (folder / "collections.json").write_text(json.dumps(collections), encoding="utf-8")
    return load_golden(write_jsonl(folder / "golden.jsonl", lines), load_collections(folder / "collections.json"))


def refused(read: Callable[[], object]) -> str:
    with pytest.raises(InvalidInput) as caught:
        read()
    return str(caught.value)


def asked(*sections: list[str]) -> Question:
    judgements = tuple(Judgement("\x1f".join(section)) for section in sections)
    return Question(id="q", text="q", judgements=judgements)


def test_questions_without_an_answer_are_kept_apart(tmp_path: Path) -> None:
    golden = load(tmp_path, PLAIN, CRASH)

    assert [question.id for question in golden.answerable] == ["g1"]
    assert [question.id for question in golden.unanswerable] == ["g2"]
    assert not golden.unanswerable[0].question({}).is_answerable


def test_a_questions_collection_narrows_its_search(tmp_path: Path) -> None:
    golden = load(tmp_path, PLAIN, PLAIN | {"id": "g3", "collection": "AI Wiki"})
    anywhere, narrowed = (entry.question({"AI Wiki": NAMES}) for entry in golden.answerable)

    assert anywhere.collection_ids == ()
    assert narrowed.collection_ids == (NAMES,)
    assert narrowed.judgements == (Judgement("rag.md\x1fRAG\x1fProcess", 2),)


@pytest.mark.parametrize(
    ("path", "is_relevant"),
    [
        (["RAG", "Process"], True),
        (["RAG", "Process", "Indexing"], True),
        (["RAG"], False),
        ([], False),
        (["RAG", "Processes"], False),
        (["Process"], False),
    ],
)
def test_a_hit_is_relevant_in_the_golden_section_and_below_it(
    tmp_path: Path, path: list[str], is_relevant: bool
) -> None:
    question = load(tmp_path, PLAIN).answerable[0].question({})

    unit = section_unit(question, hit("rag.md", path))

    assert (unit == question.judgements[0].unit) is is_relevant


def test_the_same_section_of_another_file_is_not_relevant() -> None:
    question = asked(["rag.md", "RAG"])

    assert section_unit(question, hit("copy.md", ["RAG"])) != question.judgements[0].unit


def test_an_empty_section_stands_for_the_whole_file() -> None:
    question = asked(["rag.md"])

    assert section_unit(question, hit("rag.md", ["RAG", "Process"])) == "rag.md"
    assert section_unit(question, hit("rag.md.bak", [])) == "rag.md.bak"


def test_the_deepest_judged_section_counts() -> None:
    question = asked(["rag.md", "RAG"], ["rag.md", "RAG", "Process"])

    assert section_unit(question, hit("rag.md", ["RAG", "Process", "Indexing"])) == "rag.md\x1fRAG\x1fProcess"
    assert section_unit(question, hit("rag.md", ["RAG", "History"])) == "rag.md\x1fRAG"


def test_names_are_compared_in_one_unicode_form() -> None:
    question = asked(["\u0439.md", "\u0439"])  # й in one code point

    assert section_unit(question, hit("\u0438\u0306.md", ["\u0438\u0306"])) == question.judgements[0].unit


def test_a_golden_section_that_no_chunk_lies_in_is_told(tmp_path: Path) -> None:
    golden = load(tmp_path, PLAIN, PLAIN | {"id": "g3", "relevant": [{"file": "rag.md", "section": ["RAG", "Proces"]}]})

    sentences = missing_sections(golden, {"rag.md": [("RAG",), ("RAG", "Process", "Indexing")]})

    assert sentences == ("g3: rag.md › RAG › Proces is in no chunk",)


def test_each_kind_is_measured_by_itself(tmp_path: Path) -> None:
    golden = load(tmp_path, PLAIN, PLAIN | {"id": "g3", "kind": "cross-lingual"}, PLAIN | {"id": "g4"})
    questions = [entry.question({}) for entry in golden.answerable]
    right = questions[0].judgements[0].unit
    answers = [
        Answer(question_id=question.id, units=units, outcome="hits", latency_ms=1.0)
        for question, units in zip(questions, [(right,), ("x", right), ("x",)], strict=True)
    ]

    kinds = figures_by_kind(golden.answerable, questions, answers)

    assert [(kind.kind, kind.questions, kind.figures.success_at_1) for kind in kinds] == [
        ("cross-lingual", 1, 0.0),
        ("paraphrase", 2, 0.5),
    ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": "g1"}, "golden.jsonl:2: id 'g1' is already on line 1"),
        ({"query": ""}, "golden.jsonl:2: Expected `str` of length >= 1 - at `$.query`"),
        ({"answer": "x"}, "golden.jsonl:2: Object contains unknown field `answer`"),
        ({"relevant": [RAG | {"grade": 5}]}, "golden.jsonl:2: Expected `int` <= 4 - at `$.relevant[0].grade`"),
        ({"relevant": [RAG | {"file": "no.md"}]}, "golden.jsonl:2: file 'no.md' is in no collection"),
        ({"relevant": [RAG, RAG]}, "golden.jsonl:2: a section is judged twice"),
        ({"relevant": []}, "golden.jsonl:2: kind 'paraphrase' does not go with 0 relevant sections"),
        ({"kind": "unanswerable"}, "golden.jsonl:2: kind 'unanswerable' does not go with 1 relevant sections"),
        ({"collection": "Wiki"}, "golden.jsonl:2: unknown collection 'Wiki'; known: AI Wiki, Регламенты"),
        ({"collection": "Регламенты"}, "golden.jsonl:2: file 'rag.md' is in no collection that is searched"),
    ],
)
def test_a_broken_question_is_refused_with_its_line(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    assert problem in refused(lambda: load(tmp_path, PLAIN, PLAIN | {"id": "g2"} | change))


def test_a_golden_set_without_answers_is_refused(tmp_path: Path) -> None:
    assert "holds no question with an answer" in refused(lambda: load(tmp_path, CRASH))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[", "collections.json: Input data was truncated"),
        ('[{"name": "A", "files": []}]', "collections.json: Expected `array` of length >= 1"),
        ('[{"name": "A", "files": ["no.md"]}]', "collection 'A': there is no file 'no.md'"),
        ('[{"name": "A", "files": ["a.md"]}, {"name": "A", "files": ["a.md"]}]', "collection 'A' is there twice"),
    ],
)
def test_broken_collections_are_refused(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "a.md").write_text("a", encoding="utf-8")
    (tmp_path / "collections.json").write_text(content, encoding="utf-8")

    assert problem in refused(lambda: load_collections(tmp_path / "collections.json"))
