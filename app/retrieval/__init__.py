"""A query's way: gate, embed and tokenize, search, visible revisions, fuse, floor, rerank, hits."""
