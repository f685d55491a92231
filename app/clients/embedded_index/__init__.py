"""The embedded vector engine: qdrant-edge in a process of its own, and the client that speaks to it."""
