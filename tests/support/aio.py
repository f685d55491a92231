"""Running async code in plain test functions."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T], *, timeout_s: float = 30.0) -> T:
    """Runs to the end on a fresh event loop; a hang fails the test after `timeout_s`."""
    return asyncio.run(asyncio.wait_for(coroutine, timeout_s))
