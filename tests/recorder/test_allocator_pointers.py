"""Calls through pointers that lead to the C library's allocator are calls of its functions by name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.recorder.instrumented import Tables, compile_unit
from tests.recorder.recording import build, events, record

SOURCE = """
#include <stddef.h>
struct shape { const struct { void (*draw)(void *); } *methods; };
void *get(void *(*by)(size_t), size_t size) { return by(size); }
void *zeroed(void *(*by)(size_t, size_t), size_t size) { return by(4, size); }
void *resized(void *(*by)(void *, size_t), void *block, size_t size) { return by(block, size); }
void give_back(void (*by)(void *), void *block) { by(block); }
void draw(struct shape *shape) { shape->methods->draw(shape); }
void *other(void *(*by)(size_t, int)) { return by(4, 4); }
int also(int (*by)(size_t)) { return by(4); }
"""
LEVELS = pytest.mark.parametrize("level", ["-O0", "-O2"])


def calls_of(tables: Tables) -> dict[str, list[str]]:
    """The functions that each function calls, "" for a call through a pointer."""
    found: dict[str, list[str]] = {row["name"]: [] for row in tables["functions"]}
    for call in tables["calls"]:
        function = tables["blocks"][call["block"]]["function"]
        found[tables["functions"][function]["name"]].append(call["callee"])
    return {name: sorted(callees) for name, callees in found.items()}


@LEVELS
def test_a_pointer_of_an_allocators_type_may_be_it(level: str, tmp_path: Path) -> None:
    assert calls_of(compile_unit(tmp_path, SOURCE, level)) == {
        "get": ["", "malloc"],
        "zeroed": ["", "calloc"],
        "resized": ["", "realloc"],
        "give_back": ["", "free"],
        "draw": [""],
        "other": [""],
        "also": [""],
    }


@LEVELS
def test_a_virtual_function_is_none(level: str, tmp_path: Path) -> None:
    source = "struct shape { virtual void draw(); }; void draw(shape *each) { each->draw(); }"
    assert list(calls_of(compile_unit(tmp_path, source, level, suffix=".cpp")).values()) == [[""]]


@LEVELS
def test_a_function_of_the_module_with_that_name_is_called_as_it_is(level: str, tmp_path: Path) -> None:
    tables = compile_unit(tmp_path, SOURCE + "void *malloc(size_t size) { return (void *)size; }", level)
    assert calls_of(tables)["get"] == [""]


@LEVELS
def test_there_may_be_no_c_library(level: str, tmp_path: Path) -> None:
    compile_unit(tmp_path, SOURCE, level)
    symbols = subprocess.run(["nm", tmp_path / "snippet.o"], capture_output=True, text=True, check=True).stdout
    assert {line.split()[0] for line in symbols.splitlines() if line.endswith((" malloc", " free"))} == {"w"}


RUNS = """
#include <stdio.h>
#include <stdlib.h>
static char pool[64];
static void *from_pool(size_t size) { return pool + 64 - size; }
static void keep(void *block) { *(char *)block = 7; }
static void *(*volatile get)(size_t);
static void (*volatile give_back)(void *);
int main(void) {
    for (int k = 0; k < 4; k++) {
        get = k % 2 ? malloc : from_pool;
        give_back = k % 2 ? free : keep;
        char *block = get(16);
        block[1] = k;
        give_back(block);
    }
    return pool[48] + pool[49];
}
"""


@LEVELS
def test_each_call_reaches_what_its_pointer_says(level: str, tmp_path: Path) -> None:
    done = record(tmp_path, build(tmp_path, RUNS, level))
    assert done.returncode == 9
    assert len(events(tmp_path / "trace.zst", "heap_alloc")) == 2
    assert len(events(tmp_path / "trace.zst", "heap_free")) == 2
