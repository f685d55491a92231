"""The tokenizer of documents and queries, and the weights of terms."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text.lexical import document_terms, document_vector, is_full_match, query_terms, query_vector, term_id

INFLECTIONS = [
    ("документы", "документ"),
    ("регламента", "регламент"),
    ("обращениями", "обращение"),
    ("сервера", "сервером"),
    ("настройке", "настройка"),
    ("клиентов", "клиент"),
    ("жалобу", "жалоба"),
    ("сетевого", "сетевой"),
    ("отправляется", "отправляться"),
    ("ёлка", "елки"),
    ("servers", "server"),
    ("retrieval's", "retrieval"),
    ("embeddings", "embedding"),
    ("indexing", "indexed"),
]


def terms_of(text: str) -> set[str]:
    return {term.text for term in document_terms(text)}


@pytest.mark.parametrize(("in_text", "in_query"), INFLECTIONS)
def test_an_inflected_word_is_found_by_another_form(in_text: str, in_query: str) -> None:
    assert set(query_terms(in_query)) <= terms_of(f"слово {in_text} word")


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("CDATA-XPON", {"cdata-xpon", "cdata", "xpon"}),
        ("bge-reranker-v2-m3", {"bge-reranker-v2-m3", "bge", "rerank", "v2", "m3"}),
        ("ERR_0x80070005", {"err_0x80070005", "err", "0x80070005"}),
        ("v1.2.3", {"v1.2.3", "v1", "2", "3"}),
        ("foo_bar()", {"foo_bar", "foo", "bar"}),
        ("1,234.5", {"1,234.5", "1", "234", "5"}),
        ("C++", {"c++", "c"}),
    ],
)
def test_an_identifier_is_a_term_as_a_whole_and_in_parts(identifier: str, parts: set[str]) -> None:
    assert set(query_terms(identifier)) == parts
    assert terms_of(f"см. {identifier}, далее") >= parts


def test_function_words_of_a_query_are_dropped_unless_there_is_nothing_else() -> None:
    assert query_terms("что такое сервер") == query_terms("сервер")
    assert set(query_terms("to be or not to be")) <= terms_of("To be, or not to be: that is the question")
    assert query_terms("to be or not to be") != []


def test_stress_marks_of_russian_and_the_letter_yo_do_not_matter() -> None:
    assert query_terms("Москва́ ёжик") == query_terms("москва ежик")


def test_accents_of_other_words_stay_significant() -> None:
    assert query_terms("résumé") != query_terms("resume")


def test_han_and_kana_give_bigrams_and_a_single_character_finds_its_words() -> None:
    assert query_terms("検索エンジン") == ["検索", "索エ", "エン", "ンジ", "ジン"]
    assert query_terms("检") == ["检"]
    assert {"检索", "检", "索"} <= terms_of("检索")
    assert "エ" not in terms_of("検索エンジン")


def test_thai_and_hangul_follow_their_words() -> None:
    assert query_terms("ภาษาไทย") == ["ภาษา", "ไทย"]
    assert query_terms("한국어 형태소") == ["한국어", "형태소"]


def test_the_name_of_the_file_and_the_section_path_are_searched_with_the_content() -> None:
    vector = document_vector("price-list.md", ("Оборудование",), "текст", average_length=100.0)
    for word in ("price-list", "list", "оборудования", "текст"):
        assert set(map(term_id, query_terms(word))) <= set(vector.indices), word
    assert term_id("md") not in vector.indices


def test_more_occurrences_weigh_more_but_less_than_proportionally_and_long_texts_weigh_less() -> None:
    def weight(text: str) -> float:
        vector = document_vector("", (), text, average_length=10.0)
        return vector.values[vector.indices.index(term_id("кот"))]

    assert weight("кот пёс") < weight("кот кот пёс") < 2 * weight("кот пёс")
    assert weight("кот " + "пёс " * 30) < weight("кот пёс")


def test_bm25_weights_are_those_of_the_formula() -> None:
    vector = document_vector("", (), "alpha alpha beta", average_length=3.0)
    weights = dict(zip(vector.indices, vector.values, strict=True))
    assert weights[term_id("alpha")] == pytest.approx(2 * 2.2 / (2 + 1.2))
    assert weights[term_id("beta")] == pytest.approx(1.0)


def test_a_full_match_needs_all_terms_and_one_of_them_in_the_content() -> None:
    terms = query_terms("настройка ONU")
    assert is_full_match(terms, title_text="ONU", content="Настройки терминала")
    assert not is_full_match(terms, title_text="Настройка ONU", content="терминал")
    assert not is_full_match(terms, title_text="", content="Настройки терминала")
    assert not is_full_match([], title_text="", content="что")


@given(st.text(max_size=200))
def test_any_text_gives_vectors_with_ascending_unique_ids_and_positive_weights(text: str) -> None:
    for vector in (document_vector("имя.md", (), text, average_length=100.0), query_vector(text)):
        assert list(vector.indices) == sorted(set(vector.indices))
        assert all(weight > 0 for weight in vector.values)


@given(st.text(max_size=100))
def test_every_text_holds_its_own_query_terms(text: str) -> None:
    assert set(query_terms(text)) <= terms_of(text) | {text.strip()[:1]}


def test_threads_do_not_disturb_each_other() -> None:
    words = ["обращениями", "регламентов", "retrieving", "настройками"] * 200
    expected, wrong = query_terms(" ".join(words)), []

    def work() -> None:
        if any(query_terms(" ".join(words)) != expected for _ in range(20)):
            wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
