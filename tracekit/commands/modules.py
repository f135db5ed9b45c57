"""`tracekit modules`: the analysis modules that there are, and the events that they may ask for."""

from __future__ import annotations

import click

from tracekit.commands.terminal import terminal_style


@click.command("modules")
@click.option("--events", is_flag=True, help="List the events and fields that a module may ask for.")
def command(events: bool) -> None:
    """List the analysis modules."""
    click.echo("\n".join(_events() if events else _modules()))


def _modules() -> list[str]:
    from tracekit.modules import registry
    from tracekit.render.folding import fold

    names = registry.names()
    width = max(map(len, names), default=0)
    left = terminal_style().width - width - 2
    lines = []
    for name in names:
        text = registry.describe(name)
        first, *others = fold(text, left) if left > 0 else [text]
        lines += [f"{name:{width}}  {first}".rstrip(), *(" " * width + f"  {other}" for other in others)]
    return lines


def _events() -> list[str]:
    from tracekit.formats.events import DELIVERED
    from tracekit.modules.services import SERVICES

    lines = [f"{'event':16}  {'since':5}  fields"]
    for event in DELIVERED:
        fields = ", ".join(f"{field.name} ({field.dtype})" for field in event.fields)
        lines.append(f"{event.name:16}  {event.since:5}  {fields}".rstrip())
        if event.doc:
            lines.append(" " * 25 + event.doc)
    lines += ["", "services, for every event"]
    lines += [f"{name:16}  {text}" for name, text in SERVICES.items()]
    return lines
