"""Data sets, metrics and comparison of retrieval runs."""
