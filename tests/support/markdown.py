"""Random Markdown for property tests: every kind of block, in awkward sizes and nestings."""

from hypothesis import strategies as st

WORDS = (
    *(
        "баланс",
        "абонента",
        "Проверка",
        "т. е.",
        "г.",
        "router",
        "don't",
        "x",
        "№5",
        "`code`",
        "«да»",
        "|",
        "#",
        "-",
        "1.",
    ),
    *("通信設備の確認", "设备诊断流程说明", "ต้องใช้พจนานุกรม", "한국어", "e\u0301\u0302\u0303", "a\u2028b", "\U0001f600"),
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "https://example.org/" + "a" * 80,
    "F" * 150,
)
word = st.sampled_from(WORDS)
sentence = st.builds(lambda words, end: " ".join(words) + end, st.lists(word, min_size=1, max_size=14), st.sampled_from(
    [".", "!", "…", "。", "", ":"]
))  # fmt: skip
prose = st.lists(sentence, min_size=1, max_size=12).map(" ".join)
wrapped = st.lists(sentence, min_size=1, max_size=6).map("\n".join)
heading = st.builds(lambda level, title: f"{'#' * level} {title}", st.integers(1, 6), sentence)
setext = st.builds(lambda title, mark: f"{title}\n{mark * 3}", word, st.sampled_from("=-"))
bullet = st.builds(
    lambda depth, mark, text: "  " * depth + mark + " " + text,
    st.integers(0, 4),
    st.sampled_from(["-", "*", "1.", "2)"]),
    prose | st.just("") | st.just("- inner"),
)
bullets = st.lists(bullet, min_size=1, max_size=8).map("\n".join)
cell = st.lists(word.filter(lambda one: "|" not in one), max_size=6).map(" ".join)


@st.composite
def table(draw: st.DrawFn) -> str:
    """A pipe table; cells may be empty or larger than a chunk."""
    columns = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(cell, min_size=columns, max_size=columns), min_size=1, max_size=12))
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * columns, *lines[1:]])


@st.composite
def fence(draw: st.DrawFn) -> str:
    """Fenced code, sometimes with a huge info string, sometimes never closed."""
    mark = draw(st.sampled_from(["```", "~~~~", "`````"]))
    info = draw(st.sampled_from(["", "python", "js title=" + "x" * 90]))
    code = st.sampled_from(["", "    return x", "def f(a, b):", "y = '" + "z" * 200 + "'", "# no heading"])
    lines = draw(st.lists(code | prose, max_size=12))
    return "\n".join([mark + info, *lines, *draw(st.sampled_from([[mark], [mark], []]))])


def indented(text: str, prefix: str) -> str:
    """The text inside a quotation or an item."""
    return "\n".join(prefix + line for line in text.split("\n"))


leaf = st.one_of(prose, wrapped, bullets, table(), fence(), st.sampled_from(
    ["---", "***", "<!-- note -->", "<div>\nraw\n</div>", "Имя: Иван\nТелефон: 12\nАдрес: дом", "[ref]: https://e.org",
     "    indented code\n\n    more", "[^1]: foot", "-", "\f", "\u00a0"]
))  # fmt: skip
nested = st.builds(indented, leaf, st.sampled_from(["> ", "  ", "- ", "> > ", "    "]))
block = st.one_of(heading, setext, leaf, leaf, nested)
documents = st.lists(block, min_size=1, max_size=10).flatmap(
    lambda blocks: st.sampled_from(["\n\n", "\n", "\r\n\r\n", "\n\n\n\n"]).map(lambda gap: gap.join(blocks))
)
lines = st.lists(
    st.sampled_from(["- a", "  - b", "> c", "```", "| a | b |", "|---|---|", "# h", "===", "---", "", "text", "1)", "+",
                     "    code", "~~~", "<b>", "\tx", "a: b", "   # h3", "|", "> ```", "- ```", "* * *", "- # h"]),
    max_size=30,
).map("\n".join)  # fmt: skip
