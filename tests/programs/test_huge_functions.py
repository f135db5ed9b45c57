"""Functions of thousands of blocks, whose addresses stay where they are used: they record what others do."""

from __future__ import annotations

from pathlib import Path

import tracekit
from tests.programs.running import TRACEKIT, compile_program, record, run

BRANCHES, ROUNDS, WORD = 1400, 3, 1 << 32


def source() -> str:
    """A loop of so many branches, one behind the other, with a load on one side and a store on the other."""
    body = "\n".join(
        f"if (state >> {k % 29} & 1) seen += cells[{k}]; else cells[{k}] = state;"
        f" state = state * {2 * k + 5} + {k % 97};"
        for k in range(BRANCHES)
    )
    return f"""
        #include <stdio.h>
        static unsigned cells[{BRANCHES}];
        int main(void)
        {{
            unsigned state = 1, seen = 0;
            for (int i = 0; i < {ROUNDS}; i++) {{
                {body}
            }}
            printf("%u %u\\n", state, seen);
        }}
    """


def expected() -> tuple[str, int, int]:
    """What the program prints, and how often it loads and stores a cell."""
    state, seen, loads, stores = 1, 0, 0, 0
    cells = [0] * BRANCHES
    for _ in range(ROUNDS):
        for k in range(BRANCHES):
            if state >> k % 29 & 1:
                seen, loads = (seen + cells[k]) % WORD, loads + 1
            else:
                cells[k], stores = state, stores + 1
            state = (state * (2 * k + 5) + k % 97) % WORD
    return f"{state} {seen}\n", loads, stores


def test_they_record_what_they_do(tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text(source())
    recorded = record(compile_program([tmp_path / "app.c"], tmp_path / "app", ["-g", "-O1"], instrumented=True))
    printed, loads, stores = expected()
    assert recorded.outcome.stdout.decode() == printed
    rows = tracekit.analyze(recorded.trace, "accesses", 1).result["instructions"]
    of_cells = [row for row in rows if row["instruction"]["kind"] in ("load", "store")]
    assert (sum(row["loads"] for row in of_cells), sum(row["stores"] for row in of_cells)) == (loads, stores)


def test_addresses_are_no_values_that_move_in_front_of_the_loop(tmp_path: Path) -> None:
    """There are thousands of them, which would live in each block of the loop: compiling takes minutes then."""
    (tmp_path / "app.c").write_text(source())
    run([*TRACEKIT, "cc", "-O1", "-S", "-emit-llvm", tmp_path / "app.c", "-o", tmp_path / "app.ll"])
    text = (tmp_path / "app.ll").read_text()
    assert text.count('call ptr asm sideeffect "", "=r,0') > 100 and "@llvm.threadlocal.address" not in text


COMPARED = 40


def compares() -> str:
    """A loop of so many calls of the C library's memcmp, whose interceptor writes records and may fill a buffer."""
    body = "\n".join(
        f'if (memcmp(text + {k}, "abc", length) == 0) seen += {k}; else others[{k}]++;' for k in range(BRANCHES)
    )
    return f"""
        #include <stdio.h>
        #include <string.h>
        static char text[{BRANCHES + 3}], others[{BRANCHES}];
        int main(int count, char **arguments)
        {{
            unsigned seen = 0;
            size_t length = count + 2;
            strcpy(text + 7, "abcabc");
            for (int i = 0; i < {COMPARED}; i++) {{
                {body}
                text[i]++;
            }}
            printf("%u %d\\n", seen, others[20]);
        }}
    """


def test_what_was_known_of_a_library_function_is_forgotten_once_it_writes_records(tmp_path: Path) -> None:
    """That memcmp stores nothing, clang knows from before: the position behind a call would be that before it."""
    (tmp_path / "app.c").write_text(compares())
    recorded = record(compile_program([tmp_path / "app.c"], tmp_path / "app", ["-g", "-O1"], instrumented=True))
    assert recorded.outcome.stdout.decode() == f"{8 * 7 + 11 * 10} {COMPARED}\n"
    rows = tracekit.analyze(recorded.trace, "accesses", 1).result["instructions"]
    calls = [row["loads"] for row in rows if row["instruction"]["kind"] == "library" and row["loads"] > 1]
    assert calls == [2 * COMPARED] * BRANCHES
