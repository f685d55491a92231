"""The sample corpus is whole, and its golden questions keep the promises made about them."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import Stemmer

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
NOT_DOCUMENTS = {"collections.json", "golden.jsonl"}
KINDS = {"keyword", "paraphrase", "cross", "near_duplicate", "unanswerable"}
STEMMERS = {"en": Stemmer.Stemmer("english"), "ru": Stemmer.Stemmer("russian")}
MIN_CONTENT_WORD_LETTERS = 4
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    about also although another because been before being both cannot does doesn don each every from have how
    into itself most much must only other over should some such than that their them then there these they this
    those very want what when where whether which while will with within without would your yours
    более будет была были быть ведь весь всех всё даже если есть ещё затем зачем как какая какие какого какой
    когда которая которые который которого куда либо лишь между меньше много может можно надо него нужно один
    однако оттуда очень перед после почему при сколько такой также только тоже того тогда хотя чего через чтобы этого
    """,
    )
)

HeadingPath = tuple[str, ...]


def sections(file_name: str) -> dict[HeadingPath, str]:
    """The heading paths of a document, each with its own text up to the next heading of any level."""
    texts: dict[HeadingPath, list[str]] = {}
    path: HeadingPath = ()
    fenced = False
    for line in (SAMPLES / file_name).read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        heading = None if fenced else re.match(r"(#{1,6}) +(.+)", line)
        if heading:
            path = (*path[: len(heading[1]) - 1], heading[2].strip())
            texts[path] = []
        elif path:
            texts[path].append(line)
    return {path: "\n".join(lines).strip() for path, lines in texts.items()}


def content_stems(text: str, language: str) -> set[str]:
    """Stems of the words of at least four letters that are no stop words."""
    words = re.findall(r"[^\W\d_]+", text.lower().replace("ё", "е"))
    stop = {word.replace("ё", "е") for word in STOP_WORDS}
    return {STEMMERS[language].stemWord(w) for w in words if len(w) >= MIN_CONTENT_WORD_LETTERS and w not in stop}


def golden() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SAMPLES / "golden.jsonl").read_text(encoding="utf-8").splitlines()]


def answerable() -> list[dict[str, Any]]:
    return [question for question in golden() if question["kind"] != "unanswerable"]


def collections() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads((SAMPLES / "collections.json").read_text(encoding="utf-8"))
    return listed


def document_names() -> set[str]:
    return {path.name for path in SAMPLES.iterdir() if path.is_file()} - NOT_DOCUMENTS


def language_of(text: str) -> str:
    """The language of a passage, by its script: enough for a corpus that we wrote ourselves."""
    if re.search(r"[\u3040-\u30ff]", text):
        return "ja"
    counts = {
        "zh": 2 * len(re.findall(r"[\u4e00-\u9fff]", text)),  # an ideograph weighs as much as two letters
        "ru": len(re.findall(r"[а-яё]", text.lower())),
        "en": len(re.findall(r"[a-z]", text.lower())),
    }
    return max(counts, key=lambda language: counts[language])


def shared_stems(question: dict[str, Any]) -> set[str]:
    """Content stems that a question shares with any passage that answers it, headings included."""
    passages = [
        " ".join(answer["section"]) + " " + sections(answer["file"])[tuple(answer["section"])]
        for answer in question["relevant"]
    ]
    return {
        stem
        for language in STEMMERS
        for stem in content_stems(question["query"], language)
        if any(stem in content_stems(passage, language) for passage in passages)
    }


def test_every_document_is_in_exactly_one_collection() -> None:
    listed = Counter(name for collection in collections() for name in collection["files"])
    assert set(listed) == document_names()
    assert set(listed.values()) == {1}


def test_collections_have_distinct_names_and_a_description() -> None:
    names = [collection["name"] for collection in collections()]
    assert names[0] == "AI Wiki — RAG/Embeddings"
    assert len(set(names)) == len(names)
    assert all(collection["description"] for collection in collections())


def test_the_corpus_has_10_to_14_documents_of_20_to_40_kb_in_all() -> None:
    assert 10 <= len(document_names()) <= 14
    assert 20_000 <= sum((SAMPLES / name).stat().st_size for name in document_names()) <= 40_000


def test_every_document_has_one_title_and_no_heading_path_twice() -> None:
    for name in document_names():
        headings = re.findall(r"^#{1,6} .+", re.sub(r"```.*?```", "", _text(name), flags=re.S), flags=re.M)
        assert len(sections(name)) == len(headings), name
        assert sum(heading.startswith("# ") for heading in headings) == 1, name


def test_every_table_row_has_as_many_cells_as_its_header() -> None:
    for name in document_names():
        for table in re.findall(r"(?:^\|.*\n?)+", _text(name), flags=re.M):
            assert len({row.count("|") for row in table.splitlines()}) == 1, (name, table)


def test_questions_have_distinct_ids_and_texts_and_known_kinds() -> None:
    questions = golden()
    assert len({question["id"] for question in questions}) == len(questions)
    assert len({question["query"] for question in questions}) == len(questions)
    assert {question["kind"] for question in questions} == KINDS
    names = {collection["name"] for collection in collections()}
    assert all(question["collection"] is None or question["collection"] in names for question in questions)


def test_the_first_question_is_answered_by_the_introduction_and_then_the_process() -> None:
    first = golden()[0]
    assert first["query"] == "what is retrieval augmented generation"
    title = "Retrieval-augmented generation"
    assert [answer["section"] for answer in first["relevant"]] == [[title], [title, "Process"]]
    assert [answer["grade"] for answer in first["relevant"]] == [2, 1]


@pytest.mark.parametrize("question", answerable(), ids=lambda question: question["id"])
def test_the_answer_is_a_section_with_text_of_its_own_in_the_asked_collection(question: dict[str, Any]) -> None:
    assert question["relevant"]
    files = {collection["name"]: collection["files"] for collection in collections()}
    for answer in question["relevant"]:
        assert sections(answer["file"]).get(tuple(answer["section"])), answer
        assert answer.get("grade", 1) in {1, 2}
        assert question["collection"] is None or answer["file"] in files[question["collection"]]


def test_unanswerable_questions_name_no_passage_and_come_in_two_languages() -> None:
    questions = [question for question in golden() if question["kind"] == "unanswerable"]
    assert len(questions) >= 20
    assert all(question["relevant"] == [] for question in questions)
    assert min(Counter(question["lang"] for question in questions)[language] for language in ("ru", "en")) >= 8


def test_there_are_enough_questions_of_each_kind() -> None:
    counts = Counter(question["kind"] for question in answerable())
    total = counts.total()
    assert total >= 44
    assert counts["paraphrase"] * 2 >= total
    assert counts["cross"] * 4 >= total
    assert counts["near_duplicate"] >= 6


@pytest.mark.parametrize("question", [q for q in answerable() if q["kind"] == "paraphrase"], ids=lambda q: q["id"])
def test_a_paraphrase_shares_no_content_word_with_its_answer(question: dict[str, Any]) -> None:
    assert all(language_of(_text(answer["file"])) == question["lang"] for answer in question["relevant"])
    assert shared_stems(question) == set()


@pytest.mark.parametrize("question", [q for q in answerable() if q["kind"] == "cross"], ids=lambda q: q["id"])
def test_a_cross_language_question_is_answered_in_another_language(question: dict[str, Any]) -> None:
    assert all(language_of(_text(answer["file"])) != question["lang"] for answer in question["relevant"])


def test_twin_questions_point_at_different_documents_or_sections() -> None:
    twins = [question for question in golden() if question["kind"] == "near_duplicate"]
    for left, right in zip(twins[::2], twins[1::2], strict=True):
        assert len(content_stems(left["query"], "ru") ^ content_stems(right["query"], "ru")) <= 4
        assert left["relevant"] != right["relevant"]


def _text(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")
