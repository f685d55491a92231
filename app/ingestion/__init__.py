"""A document's way: accept, parse, chunk, embed, verify, flip, purge."""
