"""The command line: serve, ingest, search, eval, chunk, demo. Only results go to standard output."""

import sys
from typing import ClassVar

import click

from app import __version__
from app.cli.context import handle_errors


class LazyGroup(click.Group):
    """Imports a command only when it is asked for, so that `--help` and small commands start at once."""

    commands_by_name: ClassVar[dict[str, tuple[str, str]]] = {
        "chunk": ("app.cli.chunk", "Show how a file is cut into passages."),
        "demo": ("app.cli.demo", "Index the sample documents and search them."),
        "eval": ("app.cli.evaluate", "Measure retrieval on a BEIR-style folder."),
        "ingest": ("app.cli.ingest", "Index files and folders."),
        "migrate": ("app.cli.migrate", "Bring the metadata database to this version's tables."),
        "search": ("app.cli.search", "Find passages."),
        "serve": ("app.cli.serve", "Run the service."),
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.commands_by_name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands_by_name:
            return None
        module = __import__(self.commands_by_name[cmd_name][0], fromlist=["command"])
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.commands_by_name[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="kroshka")
def cli() -> None:
    """Kroshka: documents go in, cited passages come out, each with its breadcrumb.

    Exit codes: 0 done, 1 the work failed (with a sentence), 2 wrong usage.
    """


def main() -> None:
    """The console script."""
    sys.exit(handle_errors(cli))
