"""Options of the whole suite."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak-rounds", type=int, default=1, help="How often the soak tests kill the server.")
