"""The rows of a path profile, of one run and of several."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tracekit.formats.events import NONE
from tracekit.formats.image import BlockFlag
from tracekit.modules.merge_rows import add, join_rows
from tracekit.paths.chain import hot_chain
from tracekit.paths.counter import PathCounter
from tracekit.paths.kernels.layouts import BROKEN, BYTES, LOADS, PASSED, STORES
from tracekit.paths.lines import Lines, inlined_lines, own_lines, shown_steps
from tracekit.paths.sums import BACK_EDGE, CUT, TAIL_CALL, Path, PathSums
from tracekit.program.program import Program

Json = Mapping[str, Any]


class Names:
    """How functions, paths, edges and calls are shown."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.lines = Lines(program)
        self.function = lru_cache(maxsize=None)(self._function)

    def _function(self, function: int) -> dict[str, Any]:
        """A function: its id, name and place."""
        first = self.program.unit_first_function
        unit = int(np.searchsorted(first, function, side="right")) - 1
        return {
            "id": f"{self.program.unit_hashes[unit]}:{function - int(first[unit])}",
            "kind": "function",
            "function": self.program.function_name(function),
            **self.program.place(int(self.program.functions["location"][function])),
        }

    def _number(self, block: int) -> int:
        """The number of a block in its function."""
        function = int(self.program.blocks["function"][block])
        return block - int(self.program.functions["first_block"][function])

    def path(self, path: Path) -> dict[str, Any]:
        """A path: its function, lines and blocks."""
        function = self.function(int(self.program.blocks["function"][path.blocks[0]]))
        steps = self.lines.of_blocks(path.blocks)
        blocks = [self._number(block) for block in path.blocks]
        header = None if path.header == NONE else self._number(path.header)
        text = shown_steps(steps)
        if path.ends == BACK_EDGE:
            target = shown_steps(self.lines.of_block(path.header)[:1])
            text += f", back to {target}" if target else ", back"
        elif path.ends in (TAIL_CALL, CUT):
            text += f", {path.ends}"
        digest = hashlib.blake2b(repr((blocks, path.ends, header)).encode(), digest_size=8).hexdigest()
        flags = int(self.program.blocks["flags"][path.blocks[0]])
        begins = "entry" if flags & BlockFlag.ENTRY else "loop" if flags & BlockFlag.LOOP_HEADER else "inside"
        return {
            **function,
            "id": f"{function['id']}:{digest}",
            "kind": "path",
            "name": text,
            "lines": own_lines(steps),
            "inlined": inlined_lines(steps),
            "blocks": blocks,
            "begins": begins,
            "ends": path.ends,
            "back_to": header,
        }

    def edge(self, source: int, target: int) -> dict[str, Any]:
        """An edge: the place of its function, the lines at its ends."""
        function = self.function(int(self.program.blocks["function"][source]))
        ends = [self.lines.of_block(source)[-1:], self.lines.of_block(target)[:1]]
        text = " to ".join(shown_steps(end) or "?" for end in ends)
        blocks = [self._number(source), self._number(target)]
        identity = f"{function['id']}:{blocks[0]}>{blocks[1]}"
        return {**function, "id": identity, "kind": "edge", "name": text, "blocks": blocks}

    def call(self, block: int, callee: int) -> dict[str, Any]:
        """A call from a block to a function, or a function that nothing instrumented called."""
        called = self.function(callee)
        if block == NONE:
            root = {"kind": "call", "function": "", "file": "", "line": 0, "column": 0, "block": None, "caller": None}
            return {"id": f">{called['id']}", **root, "name": called["function"], "callee": called["id"]}
        caller = self.function(int(self.program.blocks["function"][block]))
        op = int(self.program.blocks["call"][block])
        place = self.program.instruction(op) if op != NONE else caller
        number = self._number(block)
        return {
            "id": f"{caller['id']}:{number}>{called['id']}",
            "kind": "call",
            "function": caller["function"],
            **{key: place[key] for key in ("file", "line", "column")},
            "name": called["function"],
            "block": number,
            "caller": caller["id"],
            "callee": called["id"],
        }


def profile(program: Program, counter: PathCounter) -> dict[str, Any]:
    """The profile of one run."""
    counter.finish()
    sums, names = PathSums(program, counter), Names(program)
    counts = sums.block_counts()
    paths = [
        {
            "path": names.path(path),
            "frequency": path.frequency,
            "loads": path.sums.loads,
            "stores": path.sums.stores,
            "bytes": path.sums.bytes,
            "inclusive": path.sums.loads + path.sums.stores + path.sums.inner,
        }
        for path in sums.paths()
    ]
    calls = [
        {"call": names.call(call.block, call.function), "count": call.times, "accesses": call.accesses}
        for call in sums.calls()
    ]
    edges = [{"edge": names.edge(source, target), "count": count} for (source, target), count in sums.edges().items()]
    functions = []
    first, blocks = program.functions["first_block"], program.functions["blocks"]
    for function in np.flatnonzero(program.linked & (blocks != 0)).tolist():
        own = counts[int(first[function]) : int(first[function]) + int(blocks[function])]
        functions.append({"function": names.function(function), "counts": own.tolist()})
    outside = {
        "loads": int(counter.scalars[LOADS]),
        "stores": int(counter.scalars[STORES]),
        "bytes": int(counter.scalars[BYTES]),
        "broken_records": int(counter.scalars[BROKEN]),
        "passed_records": int(counter.scalars[PASSED]),
    }
    return result_of(paths, edges, calls, functions, outside, names.lines.counts(counts))


def joined(results: Sequence[Json], program: Program) -> dict[str, Any]:
    """The profile of several runs of one build: all numbers add."""

    def table(name: str, key: str, *columns: str) -> list[dict[str, Any]]:
        return join_rows([result[name] for result in results], (key,), dict.fromkeys(columns, add))

    functions = join_rows(
        [result["functions"] for result in results],
        ("function",),
        {"counts": lambda one, other: [first + second for first, second in zip(one, other)]},
    )
    outside = {name: sum(result["outside"][name] for result in results) for name in results[0]["outside"]}
    return result_of(
        table("paths", "path", "frequency", "loads", "stores", "bytes", "inclusive"),
        table("edges", "edge", "count"),
        table("calls", "call", "count", "accesses"),
        functions,
        outside,
        Lines(program).counts(_block_counts(functions, program)),
    )


def _block_counts(functions: Sequence[Json], program: Program) -> Any:
    """How often each block ran, from the rows of functions."""
    names = Names(program)
    by_id = {row["function"]["id"]: row["counts"] for row in functions}
    counts = np.zeros(len(program.blocks), np.int64)
    for function in range(len(program.functions)):
        known = by_id.get(names.function(function)["id"])
        if known is not None:
            first = int(program.functions["first_block"][function])
            counts[first : first + len(known)] = known
    return counts


def result_of(
    paths: list[dict[str, Any]],
    edges: list[dict[str, Any]],
    calls: list[dict[str, Any]],
    functions: list[dict[str, Any]],
    outside: dict[str, int],
    lines: list[dict[str, Any]],
) -> dict[str, Any]:
    """The profile: rows sorted, functions with what follows from the other tables, and the sums."""
    paths.sort(key=lambda row: (*_place(row["path"]), row["path"]["blocks"], row["path"]["id"]))
    edges.sort(key=lambda row: (*_place(row["edge"]), row["edge"]["blocks"]))
    calls.sort(key=lambda row: (*_place(row["call"]), row["call"]["id"]))
    functions.sort(key=lambda row: (*_place(row["function"]), row["function"]["id"]))
    whole = _whole_functions(functions, paths, calls)
    return {
        "summary": _summary(paths, whole, lines, outside),
        "hot": hot_chain(paths, calls),
        "paths": paths,
        "functions": whole,
        "calls": calls,
        "edges": edges,
        "lines": lines,
        "outside": outside,
    }


def _whole_functions(functions: Sequence[Json], paths: Sequence[Json], calls: Sequence[Json]) -> list[dict[str, Any]]:
    """The rows of functions, with the sums over their paths and over the calls of them."""
    activations: dict[str, list[int]] = {}
    for row in calls:
        total = activations.setdefault(row["call"]["callee"], [0, 0])
        total[0] += row["count"]
        total[1] += row["accesses"]
    own: dict[str, list[int]] = {}
    for row in paths:
        total = own.setdefault(row["path"]["id"].rpartition(":")[0], [0, 0, 0, 0])
        for at, value in enumerate((1, row["loads"], row["stores"], row["bytes"])):
            total[at] += value
    whole = []
    for row in functions:
        identity = row["function"]["id"]
        taken, loads, stores, moved = own.get(identity, [0, 0, 0, 0])
        calls_of, inclusive = activations.get(identity, [0, 0])
        whole.append(
            {
                "function": row["function"],
                "calls": calls_of,
                "paths": taken,
                "loads": loads,
                "stores": stores,
                "bytes": moved,
                "inclusive": inclusive,
                "blocks": len(row["counts"]),
                "blocks_run": sum(count > 0 for count in row["counts"]),
                "counts": row["counts"],
            }
        )
    return whole


def _summary(
    paths: Sequence[Json], functions: Sequence[Json], lines: Sequence[Json], outside: Mapping[str, int]
) -> dict[str, int]:
    """Sums over the rows of the tables; accesses outside of paths are in them."""
    return {
        "paths": len(paths),
        "frequency": sum(row["frequency"] for row in paths),
        "loads": sum(row["loads"] for row in paths) + outside["loads"],
        "stores": sum(row["stores"] for row in paths) + outside["stores"],
        "bytes": sum(row["bytes"] for row in paths) + outside["bytes"],
        "functions": len(functions),
        "functions_run": sum(row["blocks_run"] > 0 for row in functions),
        "blocks": sum(row["blocks"] for row in functions),
        "blocks_run": sum(row["blocks_run"] for row in functions),
        "lines": len(lines),
        "lines_run": sum(row["count"] > 0 for row in lines),
    }


def _place(shown: Json) -> tuple[Any, ...]:
    return shown["file"], shown["line"], shown["column"], shown["function"]
