"""Migrations (alembic), packaged so that the service migrates itself at start."""
