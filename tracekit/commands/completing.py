"""What a shell offers in place of a word that is typed half; nothing is imported that takes long."""

from __future__ import annotations

import os

import click
from click.shell_completion import CompletionItem


def files(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of files, which the shell knows best."""
    return [CompletionItem(incomplete, type="file")]


def modules(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The analysis modules, or files where a path is begun."""
    if os.sep in incomplete or incomplete.startswith("."):
        return files(ctx, parameter, incomplete)
    from tracekit.modules import registry

    names = [name for name in registry.names() if name.startswith(incomplete)]
    return [CompletionItem(name, help=registry.describe(name)) for name in names]
