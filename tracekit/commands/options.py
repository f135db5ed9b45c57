"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def source_folders(text: str = "Look for source files below DIR, too; may be given several times.") -> _Decorator:
    """The option --source DIR; the command gets the folders as its parameter `folders`."""
    folder = click.Path(exists=True, file_okay=False)
    return click.option("--source", "folders", multiple=True, metavar="DIR", type=folder, help=text)


jobs: _Decorator = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Threads; the result is the same for any number.  [default: one for each core]",
)
"""The option --jobs N; the command gets it as its parameter `jobs`."""
