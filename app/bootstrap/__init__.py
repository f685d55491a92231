"""Builds adapters and wires pipelines; the only place that knows which is which."""

from app.bootstrap.service import Service, open_service

__all__ = ["Service", "open_service"]
