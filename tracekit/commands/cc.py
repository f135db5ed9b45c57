"""`tracekit cc`, `c++`, `fc` and `rustc`: hand the whole command line to the compiler driver."""

from __future__ import annotations

import click

from tracekit.commands import completing

# The compiler's options are not ours to parse: every word, `--help` included, goes through.
_EVERY_WORD = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}


@click.command("cc", context_settings=_EVERY_WORD)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, shell_complete=completing.files)
def command(words: tuple[str, ...]) -> int:
    """Compile and link C with clang, instrumented."""
    from tracekit.recorder import driver

    return driver.main("cc", words)


@click.command("c++", context_settings=_EVERY_WORD)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, shell_complete=completing.files)
def cxx_command(words: tuple[str, ...]) -> int:
    """Compile and link C++ with clang, instrumented."""
    from tracekit.recorder import driver

    return driver.main("c++", words)


@click.command("fc", context_settings=_EVERY_WORD)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, shell_complete=completing.files)
def fc_command(words: tuple[str, ...]) -> int:
    """Compile and link Fortran with flang, instrumented."""
    from tracekit.recorder import fortran

    return fortran.main(words)


@click.command("rustc", context_settings=_EVERY_WORD)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, shell_complete=completing.files)
def rustc_command(words: tuple[str, ...]) -> int:
    """Compile and link Rust with rustc, instrumented."""
    from tracekit.recorder import rust

    return rust.main(words)
