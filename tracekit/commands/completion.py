"""`tracekit completion`: the script that completes tracekit's command line in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_TRACEKIT_COMPLETE"
"""The environment variable by which the shell asks; click derives it from the name of the program."""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a script that completes commands, options, modules and files in SHELL.

    \b
        bash   eval "$(tracekit completion bash)"          in ~/.bashrc
        zsh    eval "$(tracekit completion zsh)"           in ~/.zshrc, after compinit
        fish   tracekit completion fish | source           in ~/.config/fish/config.fish

    bash must be 4.4 or newer.
    """
    completion = get_completion_class(shell)
    assert completion is not None, f"click does not know {shell}"
    click.echo(completion(click.get_current_context().find_root().command, {}, "tracekit", VARIABLE).source())
