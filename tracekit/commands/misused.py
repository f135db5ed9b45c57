"""What is wrong with a command line, where the usage would not help."""

from __future__ import annotations

from typing import Any

import click

from tracekit import extras


class Misused(click.UsageError):
    """A usage error that one sentence explains."""

    def show(self, file: Any = None) -> None:
        """Print the sentence to `file`, by default standard error."""
        click.echo(f"tracekit: {self.format_message()}", file=file, err=file is None)


def need_extra(name: str, what: str) -> None:
    """Raises Misused, with the command that installs it, if the extra that `what` needs is not there."""
    try:
        extras.require(name, what)
    except extras.MissingExtraError as error:
        raise Misused(str(error)) from None
