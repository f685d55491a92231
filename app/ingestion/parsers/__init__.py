"""One parser a format; each gives blocks."""
