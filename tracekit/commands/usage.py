"""An error of usage that a sentence explains: the usage itself would not help."""

from __future__ import annotations

from typing import Any

import click


class ShortUsageError(click.UsageError):
    """A usage error that one sentence explains; click prints the usage beside others."""

    def show(self, file: Any = None) -> None:
        """Print the sentence to `file`, by default standard error."""
        click.echo(f"tracekit: {self.format_message()}", file=file, err=file is None)
