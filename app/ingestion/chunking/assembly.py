"""Drafts into chunks: label, content, spans, and a second cut by the embedder's own tokens."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from app.domain.documents import Chunk, ChunkingOptions
from app.domain.errors import DocumentUnreadable
from app.ingestion.chunking.packing import Packer
from app.ingestion.chunking.sections import Section
from app.ingestion.chunking.units import Draft
from app.ingestion.parsers.blocks import ParsedDocument, Range
from app.text.labels import embedded_text
from app.text.weights import weight

CountTokens = Callable[[Sequence[str]], list[int]]
SAFETY = 0.95
HEADROOM = (29, 32)
"""A chunk is cut again above 464 of 512 tokens: an edit of a few words must not make it too long for the model."""


class Passage(Struct, frozen=True, kw_only=True):
    """A draft and what is needed to cut it again. `headings` belong to it when it is its section's first."""

    draft: Draft
    section: Section
    packer: Callable[[int | None], Packer]
    headings: tuple[Range, ...] = ()
    before: Draft | None = None


class Content(Struct, frozen=True):
    """The content of a chunk, and which ranges of the source it shows, in order."""

    text: str
    spans: tuple[Range, ...]


def render(source: str, draft: Draft) -> Content:
    """Source slices as they are; overlap, repeated headers and fences, and margins around them."""
    if draft.last.margin:
        return _with_margin(source, draft)
    start, end = draft.first.start, draft.last.end
    if not draft.first.opening:
        start += len(source[start:end]) - len(source[start:end].lstrip())
    repeated = source[draft.overlap_start : start].lstrip() if draft.overlap_start is not None else ""
    before = (repeated or draft.first.opening).lstrip()
    return Content(before + source[start:end] + draft.last.closing, ((start, end),))


def _with_margin(source: str, draft: Draft) -> Content:
    text, spans = "", list[Range]()
    for unit in draft.units:
        gap = source[spans[-1][1] : unit.start] if spans else "\n"
        if "\n" in gap:
            text += ("\n" if text else "") + unit.margin + source[unit.start : unit.end]
            spans.append((unit.start, unit.end))
        else:
            text += source[spans[-1][1] : unit.end]
            spans[-1] = (spans[-1][0], unit.end)
    return Content(text.strip(), tuple(_stripped(source, span) for span in spans))


def _stripped(source: str, span: Range) -> Range:
    text = source[span[0] : span[1]]
    return span[0] + len(text) - len(text.lstrip()), span[0] + len(text.rstrip())


class Assembler:
    """Makes the chunks of one document. `cuts` is False for a strategy that must not cut."""

    def __init__(
        self, document: ParsedDocument, options: ChunkingOptions, *, count_tokens: CountTokens | None, cuts: bool
    ) -> None:
        self._source, self._options, self._count, self._cuts = document.text, options, count_tokens, cuts
        self._starts = [block.start for block in document.blocks]
        self._pages = [block.page for block in document.blocks]

    def chunks(self, passages: Sequence[Passage]) -> list[Chunk]:
        """Numbered chunks, none above the embedder's input limit."""
        return [self._chunk(number, passage) for number, passage in enumerate(self._within_tokens(passages))]

    def text(self, passage: Passage) -> str:
        """What is embedded."""
        return self._embedded(passage, render(self._source, passage.draft).text)[0]

    def _embedded(self, passage: Passage, content: str) -> tuple[str, int]:
        made = embedded_text(
            content,
            passage.section.path,
            enrichment=self._options.metadata_enrichment,
            chunk_size=self._options.size,
        )
        return made.text, made.content_start

    def _chunk(self, number: int, passage: Passage) -> Chunk:
        content = render(self._source, passage.draft)
        text, content_start = self._embedded(passage, content.text)
        return Chunk(
            index=number,
            text=text,
            content_start=content_start,
            section_path=passage.section.path,
            section_depths=passage.section.depths,
            spans=content.spans,
            heading_spans=passage.headings,
            page=self._pages[max(bisect_right(self._starts, content.spans[0][0]) - 1, 0)],
            weight=weight(text),
            strategy=self._options.strategy,
        )

    def _within_tokens(self, passages: Sequence[Passage]) -> list[Passage]:
        if self._options.max_tokens is None or self._count is None or not (self._cuts and passages):
            return list(passages)
        limit = max(self._options.max_tokens * HEADROOM[0] // HEADROOM[1], 1)
        done = list(passages)
        tokens = self._count([self.text(passage) for passage in done])
        while any(count > limit for count in tokens):
            done, tokens = self._one_round(done, tokens, limit)
        return done

    def _one_round(self, passages: list[Passage], tokens: list[int], limit: int) -> tuple[list[Passage], list[int]]:
        """Cuts every passage that is too long, and counts only what is new."""
        smaller = [
            list(self._smaller(passage, count, limit)) if count > limit else [passage]
            for passage, count in zip(passages, tokens, strict=True)
        ]
        fresh = [self.text(one) for group, count in zip(smaller, tokens, strict=True) if count > limit for one in group]
        counted = iter(self._count(fresh) if self._count else ())
        known = [
            [next(counted) for _ in group] if count > limit else [count]
            for group, count in zip(smaller, tokens, strict=True)
        ]
        return [one for group in smaller for one in group], [count for group in known for count in group]

    def _smaller(self, passage: Passage, tokens: int, limit: int) -> Iterator[Passage]:
        """The passage cut again by the same rules within a smaller maximum. Raises DocumentUnreadable at the end."""
        size = passage.draft.weight_with()
        maximum = min(int(size * limit / tokens * SAFETY), size - 1)
        if maximum < 1:
            raise DocumentUnreadable(
                f"the embedding model takes {self._options.max_tokens} tokens: "
                "too few for a section's label and one character"
            )
        drafts = passage.packer(maximum).pack(passage.draft.units, after=passage.before)
        before, headings = passage.before, passage.headings
        for draft in drafts:
            yield Passage(draft=draft, section=passage.section, packer=passage.packer, headings=headings, before=before)
            before, headings = draft, ()
