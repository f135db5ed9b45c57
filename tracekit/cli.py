"""The command line: the visible list of commands, and what every failure looks like to the user."""

from __future__ import annotations

import errno
import importlib
import os
import resource
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from tracekit.extras import MissingExtraError
from tracekit.formats.errors import TracekitError
from tracekit.formats.file_names import escape_undecodable
from tracekit.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

INTERRUPTED = 130
BROKEN_PIPE = 141
"""128 + the number of the signal that would have ended a program without a handler."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a file that has no room for what is written."""


class Verb(NamedTuple):
    """A command: where it is defined, its line in the help, and its exit statuses for failures."""

    module: str
    help: str
    attribute: str = "command"
    failure: int = 1
    usage: int = 2


COMMANDS: dict[str, Verb] = {
    "cc": Verb("tracekit.commands.cc", "Compile and link C with clang, instrumented."),
    "c++": Verb("tracekit.commands.cc", "Compile and link C++ with clang, instrumented.", attribute="cxx_command"),
    "fc": Verb("tracekit.commands.cc", "Compile and link Fortran with flang, instrumented.", attribute="fc_command"),
    "rustc": Verb("tracekit.commands.cc", "Compile and link Rust with rustc, instrumented.", attribute="rustc_command"),
    "record": Verb(
        "tracekit.commands.record", "Run an instrumented program and write its trace.", failure=125, usage=125
    ),
    "start": Verb("tracekit.commands.windows", "Begin to record a program under `record --paused`.", "start_command"),
    "stop": Verb("tracekit.commands.windows", "Stop recording it, until the next start.", "stop_command"),
    "analyze": Verb("tracekit.commands.analyze", "Replay a trace through an analysis module and print the profile."),
    "advise": Verb("tracekit.commands.advise", "Say what to do with each hot loop, or with that at FILE:LINE."),
    "merge": Verb("tracekit.commands.merge", "Join the profiles of several runs of one build."),
    "diff": Verb("tracekit.commands.diff", "Compare two profiles, of one build or of two.", failure=2),
    "annotate": Verb("tracekit.commands.annotate", "Print source with the accesses and verdicts of each line."),
    "report": Verb("tracekit.commands.report", "Write a self-contained HTML page of a run."),
    "query": Verb("tracekit.commands.query", "Ask profiles of a run in SQL."),
    "shell": Verb("tracekit.commands.shell", "Ask query after query at a prompt."),
    "top": Verb("tracekit.commands.top", "Browse loops, source and dependences in the terminal."),
    "mcp": Verb("tracekit.commands.mcp", "Serve profiles to coding assistants."),
    "modules": Verb("tracekit.commands.modules", "List the analysis modules."),
    "new-module": Verb("tracekit.commands.new_module", "Write a module to start from, and its test."),
    "info": Verb("tracekit.commands.info", "Say what a trace holds: threads, accesses, sizes, metadata."),
    "index": Verb("tracekit.commands.index", "Put snapshots into a trace: parts of it are found at once."),
    "calls": Verb("tracekit.commands.calls", "List calls of intercepted functions, with their arguments."),
    "regions": Verb("tracekit.commands.regions", "Show the address space over time, from record --snapshots."),
    "dump": Verb("tracekit.commands.dump", "Print the events of a trace, one a line."),
    "export": Verb("tracekit.commands.export", "Write traces for simulators, profiles for viewers."),
    "import": Verb("tracekit.commands.import_trace", "Make a trace of one that another tool wrote."),
    "check": Verb("tracekit.commands.check", "Verify every invariant of a trace."),
    "doctor": Verb("tracekit.commands.doctor", "Say what recording needs, what is there and what is missing."),
    "completion": Verb("tracekit.commands.completion", "Print a script that completes the command line in a shell."),
}

"""Name -> command, in the order of the help."""

SECTIONS = {
    "cc": "Record a run",
    "analyze": "Analyse it",
    "annotate": "Look at profiles",
    "modules": "Modules",
    "info": "Look into traces, and convert them",
    "doctor": "This machine",
}
"""Command -> the title of the help's section that it begins."""


class LazyGroup(click.Group):
    """Imports a command's module when that command is run, never to list it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order in which help shows them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        verb = COMMANDS.get(cmd_name)
        if verb is None:
            return None
        command = getattr(importlib.import_module(verb.module), verb.attribute)
        assert isinstance(command, click.Command), f"{verb.module}.{verb.attribute} is not a click.Command"
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments begin with; where there is none, the one that was meant, it seems."""
        if args[0] not in COMMANDS:
            from tracekit.near import nearest  # here, for only a mistake needs it

            close = nearest(args[0], COMMANDS)
            if close:
                ctx.fail(f"No such command {args[0]!r}. (Did you mean {' or '.join(map(repr, close))}?)")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their lines in COMMANDS, section by section."""
        width = max(map(len, COMMANDS))
        rows: dict[str, list[tuple[str, str]]] = {}
        title = ""
        for name, verb in COMMANDS.items():
            title = SECTIONS.get(name, title)
            rows.setdefault(title, []).append((name.ljust(width), verb.help))
        for title, lines in rows.items():
            with formatter.section(title):
                formatter.write_dl(lines)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer commands and the options of all, without importing any."""
        from click.shell_completion import CompletionItem

        commands = [(name, verb) for name, verb in COMMANDS.items() if name.startswith(incomplete)]
        own = click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(name, help=verb.help) for name, verb in commands] + own

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; when the reader of its output has gone (`tracekit dump | head`), end quietly."""
        try:
            result: object = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            _drop_output()
            return BROKEN_PIPE


def _drop_output() -> None:
    """What standard output still holds goes nowhere: the interpreter's own flush at exit must not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tracekit", message="%(prog)s %(version)s")
def group() -> None:
    """Record a program's memory behaviour once; analyse the recording as often as you like.

    \b
        CC="tracekit cc" make          build the program, instrumented
        tracekit record ./app input    run it: trace.zst
        tracekit analyze -m camp trace.zst
    """


def main(arguments: Sequence[str]) -> int:
    """Run ``tracekit ARGUMENTS`` and return its exit status; no failure shows a traceback unless it is a bug."""
    escape_undecodable(sys.stdout, sys.stderr)
    verb = next((COMMANDS[word] for word in arguments if word in COMMANDS), Verb("", ""))
    try:
        result = group.main(list(arguments), prog_name="tracekit", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except (click.Abort, KeyboardInterrupt):  # Abort is a RuntimeError
        return INTERRUPTED
    except MissingExtraError as error:
        return _fail(str(error), verb.usage)
    except TracekitError as error:
        return _fail(str(error), verb.failure)
    except MemoryError:
        return _fail(_out_of_memory(), verb.failure)
    except (OSError, ImportError, RuntimeError, SystemError) as error:
        if isinstance(error, OSError) and _is_of_output(error):
            _drop_output()
            return _fail(f"Cannot write the output: {error.strerror}.", verb.failure)
        if not _had_no_room(error):
            raise
        return _fail(_out_of_memory(), verb.failure)
    except click.UsageError as error:
        error.show()
        return verb.usage
    except click.ClickException as error:
        return _fail(error.format_message(), verb.failure)


def _is_of_output(error: OSError) -> bool:
    """Whether standard output could not be written: it has no room, or the shell closed it (`>&-`)."""
    from tracekit.environment import is_output_closed

    return error.filename is None and (error.errno in FULL or (error.errno == errno.EBADF and is_output_closed()))


def _had_no_room(error: Exception) -> bool:
    """Whether a shared library, an extension module or a thread had no room: each has words of its own for that.

    Where the address space is limited, LLVM's library is the first that does not fit.
    """
    if not _is_limited():
        return False
    if isinstance(error, OSError):
        return error.errno in (None, errno.ENOMEM)  # without a number: llvmlite, whose library was not loaded
    signs = ("can't start new thread", "Failed to materialize symbols")
    return not isinstance(error, RuntimeError) or any(sign in str(error) for sign in signs)


def _is_limited() -> bool:
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _out_of_memory() -> str:
    try:
        from tracekit.containers.budget import advice
    except (MemoryError, OSError, ImportError, SystemError):
        return "Ran out of memory, at once." + (
            " Raise the limit on address space (ulimit -v)." if _is_limited() else ""
        )
    return f"Ran out of memory.{advice()}"


def _fail(message: str, status: int) -> int:
    print(f"tracekit: {message}", file=sys.stderr)
    return status
