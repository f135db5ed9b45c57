"""What the driver reads from a compiler's command line."""

from __future__ import annotations

import shlex
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.recorder import command_line
from tracekit.recorder.command_line import read


@pytest.mark.parametrize(
    ("words", "compiles", "links"),
    [
        ("-c a.c", True, False),
        ("a.c b.cc -o app", True, True),
        ("a.o libx.a -o app", False, True),
        ("a.c b.o -o app", True, True),
        ("-E a.c", False, False),
        ("-M a.c", False, False),
        ("-MD -MF a.d -c a.c", True, False),
        ("-S a.c", True, False),
        ("-S -emit-llvm a.c -o a.ll", True, False),
        ("-c a.ll", True, False),
        ("a.bc -o app", True, True),
        ("-c a.s", False, False),
        ("a.S -o app", False, True),
        ("-x c -c -", True, False),
        ("-xc++ -c source.txt", True, False),
        ("-x assembler -c a.c", False, False),
        ("-x c a -x none b.o", True, True),
        ("-x c-header all.h", False, False),
        ("all.h", False, False),
        ("-fsyntax-only a.c", False, False),
        ("--version", False, False),
        ("-v", False, False),
        ("-print-search-dirs", False, False),
        ("-o a.c", False, False),
        ("-I a.c -D b.c -include c.h", False, False),
        ("-lfoo -o app", False, True),
        ("-- a.c", True, True),
        ("", False, False),
    ],
)
def test_phases(words: str, compiles: bool, links: bool) -> None:
    wanted = read(shlex.split(words))
    assert (wanted.compiles, wanted.links) == (compiles, links)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("a.o -o app", ""),
        ("-shared a.o -o liba.so", "shared"),
        ("-Wl,-shared a.o", "shared"),
        ("-Xlinker -shared a.o", "shared"),
        ("-static a.o", "static"),
        ("-static-pie a.o", "static"),
        ("-r a.o b.o -o ab.o", "relocatable"),
        ("-Wl,-r -nostdlib a.o", "relocatable"),
        ("-Wl,--relocatable a.o", "relocatable"),
        ("-Xlinker --relocatable a.o", "relocatable"),
        ("-Wl,-rpath,/x a.o", ""),
    ],
)
def test_kind_of_link(words: str, kind: str) -> None:
    wanted = read(shlex.split(words))
    kinds = {"shared": wanted.shared, "static": wanted.static, "relocatable": wanted.relocatable}
    assert [name for name, there in kinds.items() if there] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("words", "debug"),
    [
        ("", False),
        ("-g", True),
        ("-g3", True),
        ("-g0", False),
        ("-g -g0", False),
        ("-g0 -g1", True),
        ("-ggdb3", True),
        ("-gdwarf-4", True),
        ("-gmlt", True),
        ("-gz", False),
        ("-gsplit-dwarf", False),
        ("-gno-column-info", False),
        ("-MF -g", False),
    ],
)
def test_debug_information(words: str, debug: bool) -> None:
    assert read([*words.split(), "-c", "a.c"]).debug is debug


def test_last_tail_call_option_counts() -> None:
    assert not read(["a.c"]).tail_recursion
    assert read(["-fno-optimize-sibling-calls", "-foptimize-sibling-calls", "a.c"]).tail_recursion
    assert not read(["-foptimize-sibling-calls", "-fno-optimize-sibling-calls", "a.c"]).tail_recursion


def test_llvm_options_are_known_by_name() -> None:
    wanted = read(["-mllvm", "-unswitch-threshold=50", "-mllvm", "--disable-loop-idiom-all", "a.c"])
    assert wanted.llvm_options == {"unswitch-threshold", "disable-loop-idiom-all"}


def test_response_files_count_and_may_nest(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.write_text("-c 'a b.c'\n")
    outer = tmp_path / "outer"
    outer.write_text(f"-g '@{inner}'")
    wanted = read([f"@{outer}"])
    assert (wanted.compiles, wanted.links, wanted.debug) == (True, False, True)


def test_response_file_that_names_itself_ends(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.write_text(f"a.c '@{loop}'")
    assert read([f"@{loop}"]).compiles


def test_missing_response_file_is_a_word() -> None:
    assert list(command_line.expand(["@/no/such/file"])) == ["@/no/such/file"]


@given(st.lists(st.text(st.sampled_from("ab \t\n'\"\\-=é"), min_size=1), max_size=6))
def test_quoted_words_survive_a_response_file(words: list[str]) -> None:
    quoted = " ".join("".join("\\" + c for c in word) for word in words)
    assert command_line.split_response(quoted) == words


def test_response_words_are_those_of_clang(tmp_path: Path) -> None:
    text = "-DA=1 '-DB=x y' \"-DC=\\\"q\\\"\" -DD=a\\ b -DE=\\\\\n  -DF\\\nG -DH='un\\'quoted'"
    response = tmp_path / "words"
    response.write_text(text)
    clang = ["clang-19", "-###", f"@{response}", "-c", "-xc", "/dev/null"]
    shown = command_line.split_response(subprocess.run(clang, capture_output=True, text=True).stderr)
    defined = [value for option, value in pairwise(shown) if option == "-D"]
    ours = [word.removeprefix("-D") for word in command_line.split_response(text) if word.startswith("-D")]
    assert defined == ours
