"""What the commands share: options, the environment, errors as sentences, JSON on standard output."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from app.domain.errors import KroshkaError

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


def handle_errors(cli: click.Command) -> int:
    """Runs the command; a KroshkaError becomes one sentence on standard error and exit code 1."""
    try:
        result = cli.main(standalone_mode=False)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        return 1
    except KroshkaError as error:
        click.echo(f"kroshka: {error}", err=True)
        return 1
    return result if isinstance(result, int) else 0


def data_option(command: Command) -> Command:
    """`--data DIR`."""
    option = click.option(
        "--data",
        type=click.Path(file_okay=False, path_type=Path),
        envvar="KROSHKA_DATA",
        help="Data folder (environment: KROSHKA_DATA). Default: the platform's user data folder.",
    )
    return option(command)


def url_options(command: Command) -> Command:
    """`--url` and `--key`: a running service instead of the embedded one."""
    key = click.option("--key", envvar="KROSHKA_KEY", help="API key for --url (environment: KROSHKA_KEY).")
    url = click.option(
        "--url",
        help="A running service. Default: the one that runs on the data folder, else none: work in this process.",
    )
    return url(key(command))


def environment(data: Path | None, **overrides: str | None) -> dict[str, str]:
    """The process's environment with what was given as options."""
    given = {"KROSHKA_DATA": str(data) if data is not None else None, **overrides}
    return dict(os.environ) | {name: value for name, value in given.items() if value is not None}


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Runs to the end; logs go to standard error as short lines."""
    return asyncio.run(work)


def print_json(value: object) -> None:
    """One line of JSON, the API's own objects."""
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.flush()
