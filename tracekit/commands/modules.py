"""`tracekit modules`: the analysis modules that there are, one line each."""

from __future__ import annotations

import click


@click.command("modules")
def command() -> None:
    """List the analysis modules."""
    from tracekit import module

    names = module.names()
    width = max(map(len, names), default=0)
    for name in names:
        click.echo(f"{name:{width}}  {module.describe(name)}".rstrip())
