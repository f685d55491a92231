"""A parsed document into chunks, by the strategy that the options name."""

from collections.abc import Iterator

from app.domain.documents import Chunk, ChunkingOptions
from app.domain.errors import DocumentError, InvalidInput
from app.ingestion.chunking.assembly import Assembler, CountTokens, Passage
from app.ingestion.chunking.packing import Packer
from app.ingestion.chunking.sections import Section
from app.ingestion.chunking.strategies import STRATEGIES
from app.ingestion.chunking.strategy import Strategy
from app.ingestion.chunking.units import Draft, Limits
from app.ingestion.parsers.blocks import ParsedDocument
from app.text.labels import label_limit, section_label
from app.text.weights import WeightIndex, weight


class TooLargeForOneChunk(DocumentError):
    """The document does not fit the embedding model's input as one chunk; both numbers are in the message."""

    code = "too_large_for_one_chunk"

    def __init__(self, *, tokens: int, limit: int) -> None:
        super().__init__(
            f"the document has {tokens} tokens and the embedding model takes {limit}: choose another chunk strategy"
        )
        self.tokens, self.limit = tokens, limit


def chunk(document: ParsedDocument, options: ChunkingOptions, *, count_tokens: CountTokens | None) -> list[Chunk]:
    """Chunks in the document's order; the same input gives the same chunks.

    Without `count_tokens` or `options.max_tokens` only weighted characters limit a chunk. Raises InvalidInput for an
    unknown strategy, TooLargeForOneChunk for the strategy that may not cut.
    """
    strategy = STRATEGIES.get(options.strategy)
    if strategy is None:
        raise InvalidInput("chunkStrategy", f"{options.strategy!r} is none of {', '.join(STRATEGIES)}")
    passages = list(_passages(document, options, strategy)) if document.blocks else []
    assembler = Assembler(document, options, count_tokens=count_tokens, cuts=strategy.splits)
    if not strategy.splits:
        _refuse_too_large(assembler, passages, options, count_tokens)
    return assembler.chunks(passages)


def _passages(document: ParsedDocument, options: ChunkingOptions, strategy: Strategy) -> Iterator[Passage]:
    weigh = WeightIndex(document.text)
    for section in strategy.sections(document):
        limits = strategy.limits(limits_of(options, section))

        def packer(maximum: int | None, limits: Limits = limits) -> Packer:
            within = limits if maximum is None else limits.shrunk(maximum)
            return Packer(document.text, weigh=weigh, limits=within, overlap_cuts=strategy.overlap_cuts)

        before: Draft | None = None
        headings = section.headings
        for draft in packer(None).pack(strategy.units(document.text, section.blocks, limits)):
            yield Passage(draft=draft, section=section, packer=packer, headings=headings, before=before)
            before, headings = draft, ()


def limits_of(options: ChunkingOptions, section: Section) -> Limits:
    """What is left for a chunk's content beside the label of its section."""
    label = section_label(section.path, limit=label_limit(options.size)) if options.metadata_enrichment else ""
    maximum = options.hard_maximum - weight(label)
    target = min(options.size, maximum)
    return Limits(target=target, maximum=maximum, overlap=min(options.overlap, target // 2))


def _refuse_too_large(
    assembler: Assembler, passages: list[Passage], options: ChunkingOptions, count_tokens: CountTokens | None
) -> None:
    if options.max_tokens is None or count_tokens is None:
        return
    for tokens in count_tokens([assembler.text(passage) for passage in passages]):
        if tokens > options.max_tokens:
            raise TooLargeForOneChunk(tokens=tokens, limit=options.max_tokens)
