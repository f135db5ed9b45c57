"""`tracekit new-module`: a module to start from, with its naive reference and its test."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

import click

from tracekit.formats.errors import TracekitError
from tracekit.modules import registry
from tracekit.template import written


@click.command("new-module")
@click.argument("name")
def command(name: str) -> None:
    """Write NAME.py, naive_NAME.py and test_NAME.py into this folder: a module that works, to be changed.

    Nothing is overwritten. NAME is a Python name in lower case.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise click.BadParameter(f"{name!r} is no Python name in lower case.", param_hint="NAME")
    if registry.exists(name):
        raise TracekitError(f"There is a module {name!r} already; `tracekit modules` lists them.")
    texts = written(name)
    present = [file for file in texts if Path(file).exists()]
    if present:
        raise TracekitError(f"{present[0]} exists already; nothing was written.")
    for file, text in texts.items():
        _write(Path(file), text)
    click.echo(
        f"wrote {', '.join(texts)}\n"
        f"run it:   tracekit analyze -m ./{name}.py trace.zst\n"
        f"test it:  python -m pytest test_{name}.py\n"
        f"so that `-m {name}` finds it, install a package that says in its pyproject.toml:\n"
        f'          [project.entry-points."{registry.ENTRY_POINTS}"]\n'
        f'          {name} = "{name}"'
    )


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise TracekitError(f"Cannot write {path}: {error.strerror}.") from None
