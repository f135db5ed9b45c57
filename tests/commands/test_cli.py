"""The command line as a whole: help, version, what each failure looks like, what is imported when."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tracekit import __main__ as entry_point
from tracekit import __version__, cli
from tracekit.formats.errors import TracekitError


def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tracekit", *words], capture_output=True, text=True, **options)  # type: ignore[call-overload, no-any-return]


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object], int], None]:
    """Make the command line's `check` a command that runs the given function."""

    def define(body: Callable[[], object], failure: int = 1) -> None:
        module = types.ModuleType("tracekit_test_verb")
        module.command = click.command("check")(body)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(cli.COMMANDS, "check", cli.Verb(module.__name__, "", failure=failure, usage=failure + 1))

    return define


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"tracekit {__version__}\n")


def test_help_lists_every_command_and_imports_none() -> None:
    probe = """
        import sys
        from tracekit import cli
        assert cli.main(["--help"]) == 0
        heavy = {"numba", "numpy", "zstandard", "llvmlite"} & set(sys.modules)
        commands = [name for name in sys.modules if name.startswith("tracekit.commands")]
        assert not heavy and not commands, (heavy, commands)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(probe)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    commands = done.stdout[done.stdout.index(f"{next(iter(cli.SECTIONS.values()))}:") :].splitlines()
    assert [line.split()[0] for line in commands if line.startswith("  ")] == list(cli.COMMANDS)
    assert [line.rstrip(":") for line in commands if line and line[0] != " "] == list(cli.SECTIONS.values())
    columns = {re.match(r"  \S+ +", line).end() for line in commands if line.startswith("  ")}  # type: ignore[union-attr]
    assert len(columns) == 1, "helps begin in one column"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_listed_command_exists(name: str) -> None:
    command = cli.group.get_command(click.Context(cli.group), name)
    assert isinstance(command, click.Command)
    assert command.name == name


@pytest.mark.parametrize("words", [["--no-such-option"], ["no-such-command"], ["check", "--no-such-option"]])
def test_usage_errors_exit_2(words: list[str]) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert "no-such" in done.stderr
    assert "Traceback" not in done.stderr


def test_usage_errors_of_record_exit_125() -> None:
    assert run("record", "--no-such-option").returncode == 125


def test_user_errors_are_one_line_on_stderr(verb: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    def body() -> None:
        raise TracekitError("x.zst is not a trace")

    verb(body)
    assert cli.main(["check"]) == 1
    assert capsys.readouterr() == ("", "tracekit: x.zst is not a trace\n")
    verb(body, failure=125)
    assert cli.main(["check"]) == 125


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_undecodable_names_are_shown_with_their_bytes(tmp_path: Path, errors: str) -> None:
    """As in all locales: those of C are lenient with stdout, the others are strict."""
    environment = {**os.environ, "PYTHONIOENCODING": f"utf-8:{errors}"}
    trace = next((Path(__file__).parents[2] / "fixtures" / "traces").glob("*.zst"))
    name = os.fsdecode(b"caf\xe9.zst")
    os.symlink(trace, tmp_path / name)
    done = run("check", name, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(r"caf\xe9.zst: ")
    done = run("check", f"no {name}", cwd=tmp_path, env=environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tracekit: Cannot read no caf\\xe9.zst: No such file or directory.\n"
    done = run("cc", "x.c", env={**environment, "TRACEKIT_CLANG": name})
    assert done.returncode == 1 and r"caf\xe9.zst" in done.stderr


def test_status_is_what_the_command_returns_or_exits_with(verb: Callable[..., None]) -> None:
    verb(lambda: 3)
    assert cli.main(["check"]) == 3
    verb(lambda: click.get_current_context().exit(4))
    assert cli.main(["check"]) == 4
    verb(lambda: None)
    assert cli.main(["check"]) == 0


def test_interrupt_exits_130(verb: Callable[..., None]) -> None:
    def body() -> None:
        raise KeyboardInterrupt

    verb(body)
    assert cli.main(["check"]) == 130


def test_a_reader_that_leaves_is_no_error() -> None:
    program = """
        import sys, types, click
        from tracekit import cli
        module = types.ModuleType("verb")
        @click.command("check")
        def command():
            for number in range(100000):
                print(number)
        module.command = command
        sys.modules["verb"] = module
        cli.COMMANDS["check"] = cli.Verb("verb", "")
        sys.exit(cli.main(["check"]))
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stderr
    process.stdout.readline()
    process.stdout.close()
    assert (process.wait(), process.stderr.read()) == (cli.BROKEN_PIPE, "")


@pytest.mark.parametrize("arguments", [["modules"], ["--help"]])
def test_output_without_room_is_one_sentence(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "tracekit", *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert run.returncode == 1
    assert run.stderr == "tracekit: Cannot write the output: No space left on device.\n"


@pytest.mark.parametrize("arguments", [["modules"], ["--version"], ["export", "din", "TRACE"], ["info", "TRACE"]])
def test_closed_output_is_one_sentence_if_something_is_written(arguments: list[str], tmp_path: Path) -> None:
    trace = next((Path(__file__).parents[2] / "fixtures" / "traces").glob("*.zst"))
    words = [sys.executable, "-m", "tracekit", *(str(trace) if word == "TRACE" else word for word in arguments)]
    run = subprocess.run(["bash", "-c", '"$@" >&-', "-", *words], stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr == "tracekit: Cannot write the output: Bad file descriptor.\n"
    into_a_file = [*words[:3], "export", "din", str(trace), "-o", str(tmp_path / "app.din")]
    run = subprocess.run(["bash", "-c", '"$@" >&-', "-", *into_a_file], stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert (tmp_path / "app.din").stat().st_size > 0


def test_a_command_that_is_misspelt_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["analyse", "trace.zst"]) == 2
    assert "No such command 'analyse'. (Did you mean 'analyze'?)" in capsys.readouterr().err
    assert cli.main(["quux"]) == 2
    assert "No such command 'quux'." in capsys.readouterr().err


def test_a_library_without_room_is_one_sentence() -> None:
    """LLVM's does not fit into 260 MiB of address space."""
    trace = next((Path(__file__).parents[2] / "fixtures" / "traces").glob("*.zst"))
    command = [sys.executable, "-m", "tracekit", "analyze", "-m", "camp", str(trace)]
    done = subprocess.run(
        ["bash", "-c", f'ulimit -v {260 << 10}; exec "$0" "$@"', *command], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tracekit: Ran out of memory. ") and done.stderr.count("\n") == 1
    assert "`ulimit -v unlimited`" in done.stderr


def test_other_failures_of_the_system_are_bugs(verb: Callable[[Callable[[], object], int], None]) -> None:
    def fail() -> None:
        raise OSError("nobody expected this")

    verb(fail, 1)
    with pytest.raises(OSError, match="nobody"):
        cli.main(["check"])


@pytest.mark.parametrize(
    "error",
    [
        OSError("Could not find/load shared object file"),
        OSError(errno.ENOMEM, "Cannot allocate memory", "kernel.nbi"),
        ImportError("failed to map segment from shared object"),
        SystemError("<function _find_and_load> returned NULL without setting an exception"),
        RuntimeError("Failed to materialize symbols: { (kernel, { f }) }"),
        RuntimeError("can't start new thread"),
    ],
)
def test_each_librarys_words_for_no_room_are_known(
    error: Exception,
    verb: Callable[[Callable[[], object], int], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What the oldest and the newest packages raise, each at another limit on the address space."""

    def fail() -> None:
        raise error

    verb(fail, 1)
    with pytest.raises(type(error)):
        cli.main(["check"])
    monkeypatch.setattr(cli, "_is_limited", lambda: True)
    assert cli.main(["check"]) == 1
    assert capsys.readouterr().err.startswith("tracekit: Ran out of memory.")


@pytest.mark.parametrize("error", [FileNotFoundError(errno.ENOENT, "gone"), RuntimeError("nobody expected this")])
def test_a_limit_on_memory_hides_no_bug(
    error: Exception, verb: Callable[[Callable[[], object], int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise error

    verb(fail, 1)
    monkeypatch.setattr(cli, "_is_limited", lambda: True)
    with pytest.raises(type(error)):
        cli.main(["check"])


def test_ctrl_c_while_modules_are_imported_shows_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tracekit.environment.fill_standard_streams", interrupted)
    assert entry_point.main() == cli.INTERRUPTED
