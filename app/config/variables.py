"""Reading environment variables with types. Values are never repeated in errors: they may be secrets."""

import math
from collections.abc import Mapping
from pathlib import Path

from app.config.knobs import is_http_url
from app.config.secrets import Secret
from app.domain.errors import ConfigurationError


class Variables:
    """A typed view of an environment. A variable that is empty counts as unset.

    Every method raises ConfigurationError, naming the variable and what it may be.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def refuse(self, name: str, allowed: str) -> ConfigurationError:
        """The error for a variable, ready to be raised."""
        state = "has a value that cannot be used" if self.text(name) else "is not set"
        return ConfigurationError(f"environment variable {name} {state}; it must be {allowed}")

    def text(self, name: str) -> str:
        """Without surrounding white space; empty when unset."""
        return self._environ.get(name, "").strip()

    def secret(self, name: str) -> Secret | None:
        text = self.text(name)
        return Secret(text) if text else None

    def path(self, name: str, default: Path) -> Path:
        """An absolute path; `~` is expanded."""
        text = self.text(name)
        return (Path(text).expanduser() if text else default).absolute()

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        return self.optional_choice(name, choices) or default

    def optional_choice(self, name: str, choices: tuple[str, ...]) -> str | None:
        text = self.text(name).lower()
        if text and text not in choices:
            raise self.refuse(name, f"one of {', '.join(choices)}")
        return text or None

    def integer(self, name: str, default: int, *, low: int, high: int) -> int:
        value = self.optional_integer(name, low=low, high=high)
        return default if value is None else value

    def optional_integer(self, name: str, *, low: int, high: int) -> int | None:
        text = self.text(name)
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 18 and low <= int(text) <= high):
            raise self.refuse(name, f"an integer from {low:,} to {high:,}")
        return int(text)

    def number(self, name: str, default: float, *, low: float, high: float) -> float:
        text = self.text(name)
        try:
            value = float(text) if text else default
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise self.refuse(name, f"a number from {low:g} to {high:g}")
        return value

    def url(self, name: str) -> str | None:
        """An http or https address, without the slash at its end."""
        text = self.text(name)
        if text and not is_http_url(text):
            raise self.refuse(name, "an absolute http or https address")
        return text.rstrip("/") or None

    def address(self, name: str, schemes: tuple[str, ...], default: str) -> str:
        """A `scheme://…` address of another kind (database, blob store)."""
        text = self.text(name) or default
        if text.partition("://")[0].lower() not in schemes or "://" not in text:
            raise self.refuse(name, f"an address that begins with one of {', '.join(f'{s}://' for s in schemes)}")
        return text
