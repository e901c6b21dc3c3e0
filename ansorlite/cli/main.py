"""The ``ansorlite`` command and the table of its subcommands."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final

import click

from ansorlite.errors import AnsorliteError
from ansorlite.report.screen import say
from ansorlite.visible import visible

#: Subcommand -> what it is for, in the words of ``--help``. Each lives in the module of its name, as the function ``command``.
COMMANDS: Final[Mapping[str, str]] = {
    "tune": "Find fast programs for a model or a kernel, and keep them in a database.",
    "run": "Run a model or a kernel with the best programs known.",
    "bench": "Time a model or a kernel, also against something else.",
    "export": "Write a model as a shared library for C and Python.",
    "tasks": "List the tasks that a model consists of.",
    "records": "Look into a database; export and import measurements.",
    "pack": "Write the best programs known of a model to a file that travels.",
    "report": "Write what a database tells as an HTML page.",
    "explain": "Say what bounds each statement of a program, by the analytical cost model.",
    "presets": "List the systems that `ansorlite tune --preset` can tune as.",
    "target": "Say what a target is, or what a board is.",
    "boards": "Lend boards by name to one tuner at a time; list them.",
    "calibrate": "Measure what instructions, caches and memory cost on this machine.",
}


#: What a shell expects of a program that Ctrl-C ended.
INTERRUPTED: Final = 130


class UserError(click.ClickException):
    """A user's mistake: one sentence on stderr, exit code 2."""

    exit_code = 2


class _LazyGroup(click.Group):
    """Imports a subcommand's module when the subcommand is called, not before."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"ansorlite.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except AnsorliteError as error:
            raise UserError(str(error)) from error
        except click.ClickException as error:
            # What click says of words that it does not take has these words in it.
            text = visible(error.format_message())
            error.format_message = lambda: text  # type: ignore[method-assign]
            raise
        except KeyboardInterrupt:
            say("stopped by Ctrl-C", stderr=True)
            raise click.exceptions.Exit(INTERRUPTED) from None


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="ansorlite", message="%(version)s")
def main() -> None:
    """Finds fast programs for tensor computations on this machine.

    \b
    ansorlite tune resnet50.onnx --trials 2000 --database tuning.db
    ansorlite bench resnet50.onnx --database tuning.db --against onnxruntime
    """
