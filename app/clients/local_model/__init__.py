"""Embedding models that run in our own process, from weights installed with the service."""
