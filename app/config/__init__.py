"""Deployment settings from the environment; retrieval knobs layered and cached for 30 seconds."""
