from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidInput
from app.evaluation.datasets import document_id_of, document_unit, load_dataset, source_name_of
from app.evaluation.questions import Judgement, Question
from app.store.names import MAX_SOURCE_NAME, checked_name, fold_name
from tests.support.evaluation import hit, write_dataset

DOCUMENTS = ({"_id": "d1", "title": "Реки", "text": "Волга течёт.", "author": "n. n."}, {"_id": "d2", "text": "Дон."})
QUERIES = (
    {"_id": "q1", "text": "куда течёт волга"},
    {"_id": "q2", "text": "что такое дон"},
    {"_id": "q3", "text": "?"},
)
QRELS = (("q1", "d1", 4), ("q1", "d2", 1), ("q2", "d2", 1), ("q3", "d1", 0))


def write(folder: Path) -> Path:
    return write_dataset(folder, documents=DOCUMENTS, queries=QUERIES, qrels=QRELS)


def refused(read: Callable[[], object]) -> str:
    with pytest.raises(InvalidInput) as caught:
        read()
    return str(caught.value)


def append(path: Path, line: str | bytes) -> None:
    with path.open("ab") as stream:
        stream.write((line if isinstance(line, bytes) else line.encode()) + b"\n")


def test_documents_questions_and_grades_are_read(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path / "rivers"))

    assert dataset.name == "rivers"
    assert [(document.id, document.body()) for document in dataset.documents] == [
        ("d1", "Волга течёт."),
        ("d2", "Дон."),
    ]
    assert dataset.questions == (
        Question(
            id="q1", text="куда течёт волга", judgements=(Judgement("document:d1", 4), Judgement("document:d2", 1))
        ),
        Question(id="q2", text="что такое дон", judgements=(Judgement("document:d2", 1),)),
    )


def test_a_question_without_a_relevant_document_is_left_out_and_counted(tmp_path: Path) -> None:
    assert load_dataset(write(tmp_path)).unjudged == 1


def test_a_limit_keeps_the_first_questions_and_the_whole_corpus(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path), limit=1)

    assert [question.id for question in dataset.questions] == ["q1"]
    assert len(dataset.documents) == 2


def test_a_limit_below_one_is_refused(tmp_path: Path) -> None:
    assert "at least 1 question" in refused(lambda: load_dataset(write(tmp_path), limit=0))


def test_beirs_own_place_of_the_judgements_and_a_missing_header_are_accepted(tmp_path: Path) -> None:
    write_dataset(tmp_path, documents=DOCUMENTS, queries=QUERIES, qrels=QRELS, header=False)
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels.tsv").rename(tmp_path / "qrels" / "test.tsv")

    assert len(load_dataset(tmp_path).questions) == 2


def test_questions_may_come_from_a_parallel_data_set(tmp_path: Path) -> None:
    english = [{"_id": "q1", "text": "where does the volga flow"}, {"_id": "q2", "text": "don"}, QUERIES[2]]
    write_dataset(tmp_path / "en", documents=DOCUMENTS, queries=english, qrels=QRELS)

    dataset = load_dataset(write(tmp_path / "ru"), queries_from=tmp_path / "en")

    assert dataset.questions[0].text == "where does the volga flow"
    assert dataset.documents[0].text == "Волга течёт."


def test_byte_order_marks_blank_lines_and_crlf_do_no_harm(tmp_path: Path) -> None:
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"):
        path = write(tmp_path) / name
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n\r\n"))

    assert len(load_dataset(tmp_path).questions) == 2


def test_a_line_separator_inside_a_text_does_not_end_the_line(tmp_path: Path) -> None:
    documents = [{"_id": "d1", "text": "one\u2028two"}, DOCUMENTS[1]]
    write_dataset(tmp_path, documents=documents, queries=QUERIES, qrels=QRELS)

    assert load_dataset(tmp_path).documents[0].text == "one\u2028two"


def test_the_title_is_added_when_asked_for_or_when_there_is_nothing_else(tmp_path: Path) -> None:
    documents = [DOCUMENTS[0], {"_id": "d2", "title": "Дон", "text": " "}]
    first, second = load_dataset(write_dataset(tmp_path, documents=documents, queries=QUERIES, qrels=QRELS)).documents

    assert first.body(with_title=True) == "Реки\n\nВолга течёт."
    assert second.body() == "Дон"


@pytest.mark.parametrize(
    ("file", "line", "problem"),
    [
        ("corpus.jsonl", "{not json", "corpus.jsonl:3: JSON is malformed"),
        ("corpus.jsonl", '{"_id": "d3"}', "corpus.jsonl:3: Object missing required field `text`"),
        ("corpus.jsonl", '{"_id": 3, "text": "x"}', "corpus.jsonl:3: Expected `str`, got `int`"),
        ("corpus.jsonl", '{"_id": "", "text": "x"}', "corpus.jsonl:3: Expected `str` of length >= 1"),
        ("corpus.jsonl", '{"_id": "d1", "text": "x"}', "corpus.jsonl:3: _id 'd1' is already on line 1"),
        ("corpus.jsonl", '{"_id": "d3", "text": " "}', "corpus.jsonl:3: document 'd3' has neither text nor title"),
        ("corpus.jsonl", '{"_id": "%s", "text": "x"}' % ("я" * 76), "corpus.jsonl:3: an _id may have at most 150"),
        ("corpus.jsonl", b'{"_id": "d3", "text": "\xff"}', "corpus.jsonl:3: "),
        ("queries.jsonl", '{"_id": "q1", "text": "x"}', "queries.jsonl:4: _id 'q1' is already on line 1"),
        ("qrels.tsv", "q1 d1 1", "qrels.tsv:6: 3 fields separated by tabs are needed"),
        ("qrels.tsv", "q9\td1\t1", "qrels.tsv:6: query 'q9' is not in queries.jsonl"),
        ("qrels.tsv", "q2\td9\t1", "qrels.tsv:6: document 'd9' is not in corpus.jsonl"),
        ("qrels.tsv", "q2\td1\tyes", "qrels.tsv:6: the grade must be a whole number from 0 to 9999, not 'yes'"),
        ("qrels.tsv", "q2\td1\t-1", "qrels.tsv:6: the grade must be a whole number from 0 to 9999, not '-1'"),
        ("qrels.tsv", "q1\td1\t4", "qrels.tsv:6: query 'q1' and document 'd1' are judged twice"),
        ("qrels.tsv", b"q1\t\xff\t1", "qrels.tsv:6: is not UTF-8"),
    ],
)
def test_a_broken_line_is_refused_with_its_file_and_number(
    tmp_path: Path, file: str, line: str | bytes, problem: str
) -> None:
    append(write(tmp_path) / file, line)

    assert problem in refused(lambda: load_dataset(tmp_path))


@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_named(tmp_path: Path, file: str) -> None:
    (write(tmp_path) / file).unlink()

    assert file in refused(lambda: load_dataset(tmp_path))


def test_a_data_set_without_any_relevant_document_is_refused(tmp_path: Path) -> None:
    write_dataset(tmp_path, documents=DOCUMENTS, queries=QUERIES, qrels=[("q1", "d1", 0)])

    assert "no query of this data set" in refused(lambda: load_dataset(tmp_path))


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    write_dataset(tmp_path, documents=[], queries=QUERIES, qrels=[])

    assert "holds no document" in refused(lambda: load_dataset(tmp_path))


@given(st.text(min_size=1, max_size=37))
def test_any_id_survives_being_a_document_name(document_id: str) -> None:
    name = source_name_of(document_id)

    assert checked_name("/sourceName", name, limit=MAX_SOURCE_NAME) == name
    assert len(name.encode()) <= 255
    assert document_id_of(name) == document_id


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_different_ids_stay_different_without_regard_to_case(one: str, other: str) -> None:
    assert (fold_name(source_name_of(one)) == fold_name(source_name_of(other))) == (one == other)


@pytest.mark.parametrize(
    "name", ["notes.txt", "x0.txt", "x0a.txt", "x0ab.txt", "x074.txt", "X0MQYDALJQ.txt", "x0gf.txt"]
)
def test_other_names_carry_no_id(name: str) -> None:
    assert document_id_of(name) is None


def test_a_hit_of_a_strange_document_is_a_unit_of_its_own() -> None:
    question = Question(id="q", text="q")

    assert document_unit(question, hit(source_name_of("d1"))) == "document:d1"
    assert document_unit(question, hit("notes.txt")) == f"other:{hit('notes.txt').document_id}"
