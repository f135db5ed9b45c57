"""Where the instructions of an analysis go: callgrind's account of one replay, by kernel and by compiled function.

    python -m benchmarks.instructions [--paths] [--module NAME] TRACE      # needs valgrind

Instructions for each access of the trace, of a replay whose kernels are compiled and which makes no result. With
--paths, by compiled paths, all of which are there from the first record on. Code is compiled for a Haswell processor,
which valgrind knows, into a cache of its own.

Valgrind has too little address space for the table of a shadow's pages, so they are found by hashing here, which no
other machine does: `find_far` (containers/kernels/shadow.py), 47 instructions for each word that an access touches.
"""

from __future__ import annotations

import argparse
import bisect
import io
import json
import os
import re
import resource
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import fetch

FEATURES = frozenset(
    "64bit avx avx2 bmi bmi2 cmov cx16 cx8 f16c fma fxsr lzcnt mmx popcnt sse sse2 sse3 sse4.1 sse4.2 ssse3".split()
)
ADDRESS_SPACE = 100 << 30
"""What arenas are made to fit into: valgrind gives 128 GiB."""
APART = ("find_far",)
"""Functions inside kernels that are listed by themselves, if LLVM has not made them a part of their callers."""
FARTHEST = 1 << 18
"""No function is longer."""


def _features() -> str:
    """What to compile for, as LLVM writes it."""
    import llvmlite.binding as llvm

    return ",".join(("+" if name in FEATURES else "-") + name for name in sorted(llvm.get_host_cpu_features()))


def _child(module: str, trace_path: str, with_paths: bool, found: Path | None) -> None:
    """Replay the trace; with `found`, count its instructions, and write there where functions lie."""
    from benchmarks import compiled_paths
    from tracekit.formats.reader import TraceReader
    from tracekit.jit import machine_code, native
    from tracekit.program.program import Program

    functions: list[tuple[int, str]] = []
    load, find = machine_code.Loaded.__init__, native.NativeKernel._find
    kernel = ""

    def noting_load(self: Any, code: bytes, *given: Any) -> None:
        load(self, code, *given)
        names = {name: name if name != native.RUN else kernel for name in self.functions}
        functions.extend((address, names[name]) for name, address in self.functions.items())
        if native.RUN in names:
            functions.extend(_parts(code, self.functions[native.RUN], native.RUN, kernel))

    def noting_find(self: Any, *given: Any) -> Any:
        nonlocal kernel
        kernel = self._kernel.function.__qualname__
        return find(self, *given)

    machine_code.Loaded.__init__, native.NativeKernel._find = noting_load, noting_find  # type: ignore[method-assign]
    with TraceReader(trace_path) as trace:
        program = Program.from_images(trace.images())
        make = compiled_paths.with_paths if with_paths else compiled_paths.prepared
        compiled_paths.seconds(*compiled_paths.prepared(trace, program, module))
        replay = make(trace, program, module)
        _instrument("on", found)
        compiled_paths.seconds(*replay)
        _instrument("off", found)
    if found:
        found.write_text(json.dumps(sorted(functions)))


def _parts(code: bytes, address: int, entry: str, kernel: str) -> Iterator[tuple[int, str]]:
    """Where the functions of APART lie in a kernel's code, and where the kernel goes on; `entry` lies at `address`."""
    from elftools.elf.elffile import ELFFile

    symbols = ELFFile(io.BytesIO(code)).get_section_by_name(".symtab")
    begin = symbols.get_symbol_by_name(entry)[0]
    for symbol in symbols.iter_symbols():
        for name in APART:
            if name in symbol.name and symbol["st_shndx"] == begin["st_shndx"]:
                at = address + symbol["st_value"] - begin["st_value"]
                yield at, name
                yield at + symbol["st_size"], kernel


def _instrument(state: str, found: Path | None) -> None:
    if found:
        subprocess.run(["callgrind_control", "-i", state, str(os.getpid())], check=True, capture_output=True)


def _costs(out: Path) -> Iterator[tuple[int, str, int]]:
    """The address, the object's file and the count of each instruction, from callgrind's file."""
    at, file, of_call = 0, "", False
    names: dict[str, str] = {}
    for line in out.read_text().splitlines():
        if line.startswith(("ob=", "cob=")):
            number, _, name = line.partition("=")[2].partition(" ")
            names.setdefault(number, name)
            file = names[number] if line.startswith("ob=") else file
        elif line.startswith("calls="):
            of_call = True  # what it took stands in the next line, and again where it was taken
        elif match := re.fullmatch(r"(\*|[+-]\d+|0x[0-9a-f]+) \S+ (\d+)", line):
            place = match[1]
            at = at if place == "*" else at + int(place) if place[0] in "+-" else int(place, 16)
            if not of_call:
                yield at, file, int(match[2])
            of_call = False


def _account(out: Path, functions: list[tuple[int, str]]) -> dict[str, int]:
    """Instructions by function of ours, and all others by the file of their object."""
    begins = [address for address, _ in functions]
    account: dict[str, int] = defaultdict(int)
    for address, file, count in _costs(out):
        number = bisect.bisect(begins, address) - 1
        if number >= 0 and address - begins[number] < FARTHEST:
            name = functions[number][1]
            account["paths" if name.startswith("path_") else name] += count
        else:
            account[Path(file).name or "other code"] += count
    return account


def main() -> None:
    """Count, and print the account."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--module", default="dependence")
    parser.add_argument("--paths", action="store_true")
    parser.add_argument("--child", choices=["compile", "count"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = fetch.cache() / "instructions"
    found, out = folder / "functions.json", folder / "callgrind.out"
    if options.child:
        _child(options.module, options.trace, options.paths, found if options.child == "count" else None)
        return
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": _features(),
        "XDG_CACHE_HOME": str(folder),
        "TRACEKIT_COMPILE_PATHS": "always",
        "TRACEKIT_BENCH": str(fetch.cache()),
    }
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    own = [sys.executable, "-m", "benchmarks.instructions", options.trace, "--module", options.module]
    own += ["--paths"] * options.paths
    subprocess.run([*own, "--child", "compile"], check=True)
    valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--dump-instr=yes", "--quiet"]
    subprocess.run([*valgrind, f"--callgrind-out-file={out}", *own, "--child", "count"], check=True)
    account = _account(out, [(address, name) for address, name in json.loads(found.read_text())])
    from benchmarks.modules import accesses_of

    accesses = accesses_of(Path(options.trace))
    for name, count in [("all", sum(account.values())), *sorted(account.items(), key=lambda item: -item[1])]:
        if count >= accesses:  # one for each
            print(f"{count / accesses:8.1f}  {name}")


if __name__ == "__main__":
    main()
