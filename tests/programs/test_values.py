"""Programs built with --values and --pointers: the bits in the trace are those that were in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.generator import program as random_program
from tests.naive.reader import read
from tests.programs.memory import Memory, Valued
from tests.programs.running import FIXTURES, Recording, build_flags, compile_program, opened, record, run, tracekit
from tests.programs.test_programs import CASES, Case
from tracekit.formats.image import OpFlag

HERE = Path(__file__).parent
ONE_THREAD = [
    case
    for case in CASES
    if case.source
    not in {
        "threads.c",
        "signals.c",
        "siglongjmp.c",
        "fork.c",
        "endings.c",
        "dlopen.c",
        "tail_calls.c",
        "recursion.c",
        "long_block.c",
    }
]


def _recorded(source: Path, folder: Path, flags: Sequence[str], case: Case | None = None) -> Recording:
    """Build with tracekit's own options in `flags`, run natively and recorded, and check the trace."""
    native = [flag for flag in flags if not flag.startswith("--")]
    arguments, stdin = (case.arguments, case.stdin) if case else ((), b"")
    expected = run([compile_program([source], folder / "native", native, instrumented=False), *arguments], stdin)
    recording = record(compile_program([source], folder / "recorded", flags, instrumented=True), arguments, stdin)
    assert (recording.outcome.stdout, recording.outcome.status) == (expected.stdout, expected.status)
    tracekit("check", recording.trace)
    return recording


def _events(trace: Path) -> list[Valued]:
    """All events with their values, by the naive reader."""
    process = read(trace.read_bytes()).process()
    return [(*event, value) for event, value in zip(process.events, process.values)]


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("recorder", ["paths", "both"])
def test_bits_of_every_type(level: int, recorder: str, tmp_path: Path) -> None:
    """values.c prints the bytes that each function of values.ll moved; loads and stores have exactly those."""
    sources = [HERE / "values.c", HERE / "values.ll"]
    flags = [f"-O{level}", f"--record={recorder}", "--values"]
    recording = record(compile_program(sources, tmp_path / "values", flags, instrumented=True))
    assert recording.outcome.status == 0
    tracekit("check", recording.trace)
    moved = Counter[tuple[str, int, int, int]]()
    with opened(recording.trace) as (program, _):
        inside = {
            row
            for row in range(len(program.ops))
            if program.op_function[row] != 0xFFFFFFFF
            and program.function_name(int(program.op_function[row])).startswith("move_")
        }
    for _, name, subject, address, size, value in _events(recording.trace):
        if name in ("load", "store") and subject in inside:
            assert (value is None) == (size > 64)
            moved[name, address, size, value or 0] += 1
    lines = [line.split() for line in recording.outcome.stdout.decode().splitlines()]
    expected = Counter[tuple[str, int, int, int]]()
    for name, source, target, bytes_, text in lines:
        whole, size = int(text, 16), int(bytes_)
        for offset, part in _parts(name, size):
            value = whole >> 8 * offset & ((1 << 8 * part) - 1) if size <= 64 else 0
            expected["load", int(source, 16) + offset, part, value] += 1
            expected["store", int(target, 16) + offset, part, value] += 1
    assert moved == expected


def _parts(name: str, size: int) -> list[tuple[int, int]]:
    """(offset, size) of the accesses of one move."""
    return {"masked": [(0, 4), (8, 4), (12, 4)], "packed": [(0, 2), (2, 2), (4, 2)], "scattered": [(0, 8), (8, 8)]}.get(
        name, [(0, size)]
    )


@pytest.mark.parametrize("level", [0, 2, 3])
@pytest.mark.parametrize("case", ONE_THREAD, ids=str)
def test_loads_find_what_was_stored(case: Case, level: int, tmp_path: Path) -> None:
    """At -O3 with vectorisers, where the pass comes last."""
    source = FIXTURES / case.source
    flags = [
        f"-O{level}",
        "--values",
        "--pointers",
        *(["--at=machine", "-mavx2"] if level == 3 else []),
        *build_flags(source),
    ]
    recording = _recorded(source, tmp_path, flags, case)
    memory = _followed(recording.trace)
    assert memory.wrong == []
    assert memory.compared > 10


def _followed(trace: Path) -> Memory:
    with opened(trace) as (program, _):
        memory = Memory(program)
    memory.feed(_events(trace))
    return memory


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in CASES
        if case not in ONE_THREAD and case.source != "dlopen.c" and case.arguments in ((), ("kill",), ("fault",))
    ],
    ids=str,
)
def test_threads_signals_and_endings(case: Case, tmp_path: Path) -> None:
    source = FIXTURES / case.source
    _recorded(source, tmp_path, ["-O2", "--record=both", "--values", "--pointers", *build_flags(source)], case)


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed: int, tmp_path: Path) -> None:
    source = tmp_path / "random.c"
    source.write_text(random_program(seed))
    recorder = ("--record=paths", "--record=both", "--record=blocks")[seed % 3]
    recording = _recorded(source, tmp_path, [f"-O{seed % 4}", recorder, "--values", "--pointers"])
    memory = _followed(recording.trace)
    assert memory.wrong == [] and memory.compared > 0


@pytest.mark.parametrize(
    ("option", "loads", "stores"), [("--values=loads", True, False), ("--values=stores", False, True)]
)
def test_only_what_was_asked_for(option: str, loads: bool, stores: bool, tmp_path: Path) -> None:
    recording = _recorded(FIXTURES / "atomics.c", tmp_path, ["-O1", option, *build_flags(FIXTURES / "atomics.c")])
    with opened(recording.trace) as (program, _):
        for kind, wanted in ((1, loads), (2, stores), (3, True)):
            flags = program.ops["flags"][program.ops["kind"] == kind]
            assert len(flags) and bool((flags & OpFlag.VALUE != 0).all()) == wanted


@pytest.mark.parametrize("recorder", ["paths", "blocks", "both"])
@pytest.mark.parametrize("level", [0, 2])
def test_pointers_come_from_memory_calls_and_numbers(recorder: str, level: int, tmp_path: Path) -> None:
    source = tmp_path / "pointers.c"
    source.write_text(POINTERS)
    flags = [f"-O{level}", f"--record={recorder}", "--pointers", "--values=loads"]
    recording = record(compile_program([source], tmp_path / "pointers", flags, instrumented=True))
    tracekit("check", recording.trace)
    with opened(recording.trace) as (program, _):
        line = {row: program.instruction(row)["line"] for row in range(len(program.ops))}
    text = recording.outcome.stdout.decode().split()
    created = Counter(
        (line[subject], address)
        for _, name, subject, address, _, _ in _events(recording.trace)
        if name == "pointer_creation"
    )
    first, second, number = (int(word, 16) for word in text)
    wanted = {
        "allocate": [first, second],
        "call": [first, second],
        "load": [second, first],
        "number": [number],
        "exchange": [first],
    }
    lines = {mark: [k + 1 for k, row in enumerate(POINTERS.splitlines()) if f"// {mark}" in row] for mark in wanted}
    marked = {at for rows in lines.values() for at in rows}
    assert Counter({key: count for key, count in created.items() if key[0] in marked}) == Counter(
        (at, address) for mark, addresses in wanted.items() for at in lines[mark] for address in addresses
    )
    unmarked = {key for key in created if key[0] not in marked}
    assert all("all[" in POINTERS.splitlines()[at - 1] and address in (first, second) for at, address in unmarked)


POINTERS = """\
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; int value; };
static struct node *volatile head;
static _Atomic(struct node *) shared;
__attribute__((noinline)) static struct node *make(int value)
{
    struct node *made = malloc(sizeof *made); // allocate
    made->value = value;
    return made;
}
int main(void)
{
    struct node *all[2];
    for (int i = 0; i < 2; i++) {
        struct node *made = make(i); // call
        all[i] = made;
        __asm__ volatile("" : : "r"(made));
    }
    for (int i = 1; i >= 0; i--) {
        head = all[i] + 0;
        struct node *again = head; // load
        again->value += i;
        struct node *inside = &again[1] - 1;
        inside->value += 1;
    }
    volatile uintptr_t number = (uintptr_t)all[0] + 8;
    int *made = (int *)number; // number
    *made += 1;
    shared = all[0];
    struct node *old = __c11_atomic_exchange(&shared, (struct node *)0, __ATOMIC_SEQ_CST); // exchange
    old->value += 1;
    printf("%p %p %p\\n", (void *)all[0], (void *)all[1], (void *)made);
    return 0;
}
"""
