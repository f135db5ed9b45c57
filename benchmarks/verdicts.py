"""Are verdicts those of experts, and directives right? On programs whose authors annotated their parallel loops.

    python benchmarks/verdicts.py --fetch                    # the packages' sources, some 13 MB, from Debian
    python benchmarks/verdicts.py                            # recall at -O0, -O1 and -O2, each miss with its reason
    python benchmarks/verdicts.py --insert --order           # and runs of each directive, and of other orders
    python benchmarks/verdicts.py --only fasttree --levels -O1 --insert
    python benchmarks/verdicts.py --folder HPCCG --sources '{}/*.cpp' --arguments '8 8 8' --ignored Total --together

A loop counts if a `parallel for` or `for` pragma of OpenMP stands before it and some invocation ran two iterations; it
is *called* if its verdict is doall or doall-with. Programs are built without their pragmas.

``--insert`` puts each proposed directive into a copy of the source, one by one and then all together, compiles with gcc
and with clang and runs with 2, 3 and 8 threads, static and dynamic: the output has to be the serial program's, but for
the rounding of sums. ``--order`` runs the iterations of each such loop backwards and in two random orders.
Wanted beside tracekit's own needs: gcc and g++, libomp-19-dev, apt-get. Takes minutes without ``--insert``, about an
hour for all with it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fetch
import source_loops
from annotated import EVERYTHING, HERE, Annotated
from measure import ROOT, TRACEKIT

SECONDS = 300
THREADS = (2, 3, 8)
SCHEDULES = ("static", "dynamic,2")
ORDERS = (0, 1, 2, 7)
"""Of TRACEKIT_ORDER: as written (what differs there is the rewriting's own fault), backwards, at random."""
PARALLEL = ("-O1", "-fopenmp", "-U_OPENMP")
"""As which directives are tried: the serial program's code, but for what they say."""
CALLED = ("doall", "doall-with")
ENDS = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".tcc")


@dataclass(frozen=True)
class Loop:
    """A loop of the advice: a file below the package's folder, its place, and its row."""

    file: str
    line: int
    column: int
    row: dict[str, Any]

    @property
    def directive(self) -> str | None:
        return (self.row["openmp"] or {}).get("pragma")


class Tree:
    """A copy of a package's source without its pragmas, where it can be built and changed."""

    def __init__(self, program: Annotated, name: str) -> None:
        self.program = program
        self.folder = fetch.cache() / "annotated" / "trees" / program.package / name
        self.pragmas: dict[str, dict[int, str]] = {}
        self.tried: dict[tuple[str, ...], list[str]] = {}
        """What was wrong with each change that was tried; the same is not tried again for another level."""
        self.printed: dict[str, str] = {}
        """What the unchanged program prints, by the label of its build."""
        source = program.folder or fetch.annotated(program.package)
        if not self.folder.is_dir():
            shutil.copytree(source, self.folder, symlinks=True)
        for path in sorted(source.rglob("*")):
            if path.suffix in ENDS and path.is_file() and not path.is_symlink():
                self._strip(path, path.relative_to(source))

    def _strip(self, original: Path, name: Path) -> None:
        text = original.read_text("latin-1")
        if "omp" in text:
            self.pragmas[str(name)] = source_loops.annotated(text)
            text = source_loops.without_pragmas(text)
        self.write(str(name), text)  # others, too: a trial that was killed has left its directive there

    def read(self, name: str) -> str:
        """The text of a file."""
        return (self.folder / name).read_text("latin-1")

    def write(self, name: str, text: str) -> None:
        """Change a file, if it is not that already."""
        if self.read(name) != text:
            (self.folder / name).write_text(text, "latin-1")

    def expand(self, word: str) -> str:
        """A word of the program's description, with folders' names in it."""
        return word.replace("{here}", str(HERE)).replace("{}", str(self.folder))

    def output(self, built: Path, **environment: str) -> str:
        """What a run of the program prints, but for lines that differ each time."""
        printed = output_of(built, self.program.arguments(), **environment)
        if not self.program.ignored:
            return printed
        return "\n".join(line for line in printed.split("\n") if not re.search(self.program.ignored, line))

    def sources(self) -> list[Path]:
        """All files that are compiled."""
        found: list[Path] = []
        for word in map(self.expand, self.program.sources):
            found += sorted(Path("/").glob(word[1:])) if "*" in word else [Path(word)]
        return found

    def build(
        self, compiler: Sequence[str], options: Sequence[str], label: str, changed: Iterable[str] | None = None
    ) -> Path:
        """Compile and link. Raises NotBuilt.

        If only these files have `changed` since the build of that label, all else comes from there, and what is made is
        put elsewhere: the next one is not a build of what this one was tried with.
        """
        objects = self.folder.parent / f"objects-{label}"
        ours = objects if changed is None else objects / "changed"
        ours.mkdir(exist_ok=True)
        sources = self.sources()
        paths = None if changed is None else [str(self.folder / file) for file in changed]
        plus = any(source.suffix != ".c" for source in sources)
        flags = [*options, *map(self.expand, self.program.flags), "-w", "-g"]

        def compile_one(numbered: tuple[int, Path]) -> Path:
            number, source = numbered
            name = f"{number}-{source.stem}.o"
            if paths is not None:
                read = (objects / name).with_suffix(".d").read_text().split()
                if not any(os.path.normpath(path) in paths for path in read):
                    return objects / name
            driver = compiler[source.suffix != ".c"]
            _checked([*driver.split(), *flags, "-MMD", "-c", str(source), "-o", str(ours / name)])
            return ours / name

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = list(pool.map(compile_one, enumerate(sources)))
        program = ours / self.program.package
        _checked([*compiler[plus].split(), *options, *map(str, made), "-o", str(program), *self.program.libraries])
        return program


class NotBuilt(Exception):  # noqa: N818 - it is an answer
    """What a compiler said."""


def _checked(command: list[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace")
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
        raise NotBuilt("; ".join(said[:3]) or done.stderr[-300:] or f"status {done.returncode}")


def output_of(program: Path, arguments: Sequence[str], **environment: str) -> str:
    """What a run prints, or how it ended if that was not well."""
    try:
        done = subprocess.run(
            [str(program), *arguments],
            env={**os.environ, "MALLOC_PERTURB_": "85", **environment},  # some read what they never wrote (pfstools)
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {SECONDS} s"
    return done.stdout.decode("latin-1") if not done.returncode else f"status {done.returncode}"


def same(found: str, expected: str, tolerance: float) -> bool:
    """Are two outputs the same word for word, numbers with a point being near each other?"""
    if found == expected:
        return True
    pairs = list(zip(found.split(), expected.split()))
    return len(found.split()) == len(expected.split()) and all(_near(*pair, tolerance) for pair in pairs)


def _near(found: str, expected: str, tolerance: float) -> bool:
    if found == expected:
        return True
    try:
        return "." in expected and math.isclose(
            float(found), float(expected), rel_tol=tolerance, abs_tol=tolerance / 100
        )
    except ValueError:
        return False


# -- recall ----------------------------------------------------------------------------------------


def advice(tree: Tree, level: str) -> list[Loop]:
    """Every loop of the program that ran, as advise sees it in the program that was built at a level."""
    sys.path.insert(0, str(ROOT))
    from tracekit.recorder import toolchain

    clang = toolchain.find_clang()
    kept = f"{level}-{toolchain.pass_folder_name(clang)}-{toolchain.runtime_folder_name()}"
    trace = tree.folder.parent / f"{kept}.zst"
    if not trace.exists():
        tracekit = " ".join(TRACEKIT)
        program = tree.build((f"{tracekit} cc", f"{tracekit} c++"), (level,), f"tracekit{level}")
        _checked([*TRACEKIT, "record", "-f", "-o", f"{trace}.part", "--", str(program), *tree.program.arguments()])
        os.rename(f"{trace}.part", trace)
    command = [*TRACEKIT, "analyze", "-m", "advise", "--top", "0", "--min-share", "0", "--json", str(trace)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    rows = json.loads(done.stdout)["result"]["loops"]
    folder = str(tree.folder)
    return [
        Loop(os.path.relpath(row["loop"]["file"], folder), row["loop"]["line"], row["loop"]["column"], row)
        for row in rows
        if os.path.abspath(row["loop"]["file"]).startswith(folder + "/")
    ]


def reasons(row: dict[str, Any]) -> list[str]:
    """Why a loop is not called, each kind of obstacle with what it names."""
    found = []
    for case in row["cases"]:
        for blocker in case["blocked_by"]:
            source = blocker["source"] or {}
            what = {
                "dependence": lambda b: f"{'/'.join(b['kinds'])} on {_objects(b)}",
                "exit": lambda b: f"exit at {b['source'].get('line')}",
                "recurrence": lambda b: f"recurrence {b['source'].get('name')!r}",
                "external": lambda b: f"call of {b.get('callee')}",
            }[blocker["reason"]](blocker)
            found.append(f"{what} ({source.get('line')})")
    return list(dict.fromkeys(found))


def _objects(blocker: dict[str, Any]) -> str:
    return ", ".join(thing.get("name") or thing["kind"] for thing in blocker["objects"] or [{"kind": "many"}])


def recall(tree: Tree, level: str, loops: Sequence[Loop]) -> Counter[str]:
    """Print what became of the annotated loops; how many there were, were called and were missed for each reason.

    All loops are counted that have a directive, annotated or not.
    """
    program = tree.program
    counts: Counter[str] = Counter()
    by_place: dict[tuple[str, int], list[Loop]] = {}
    for loop in loops:
        by_place.setdefault((loop.file, loop.line), []).append(loop)
    for file, lines in tree.pragmas.items():
        for line, pragma in lines.items():
            for loop in by_place.get((file, line), ())[:1]:
                counts["annotated"] += 1
                verdict = loop.row["verdict"]
                if verdict in CALLED:
                    counts["called"] += 1
                    missing = (loop.row["openmp"] or {}).get("missing")
                    counts["with directive"] += not missing
                    if missing:
                        print(f"    no directive {file}:{line} {verdict}: {missing}")
                    continue
                why = reasons(loop.row)
                kinds = {case["reason"] for each in loop.row["cases"] for case in each["blocked_by"]}
                counts["missed: " + "+".join(sorted(kinds))] += 1
                print(f"    miss {file}:{line} {verdict}: {'; '.join(why[:6])}\n         {pragma}")
    counts["directives"] = sum(1 for loop in loops if loop.directive)
    print(f"{program.package} {level}: {counts['called']} of {counts['annotated']} called, {dict(counts)}", flush=True)
    return counts


# -- runs of directives ----------------------------------------------------------------------------


def compilers() -> list[tuple[str, str]]:
    """The C and the C++ compiler of each family."""
    sys.path.insert(0, str(ROOT))
    from tracekit.recorder.toolchain import find_clang

    clang = find_clang().path
    return [("gcc", "g++"), (clang, f"{clang} --driver-mode=g++")]


@dataclass
class Trial:
    """One change of the source, and what its runs came to."""

    what: str
    wrong: list[str]


def serial(tree: Tree, compiler: Sequence[str], options: Sequence[str], label: str) -> str:
    """What the program prints without directives; it is built for the first level that is tried."""
    if label not in tree.printed:
        program = tree.build(compiler, options, label)
        tree.printed[label] = tree.output(program)
        if tree.output(program) != tree.printed[label]:
            print(f"    {tree.program.package} prints something else each time: its runs say nothing")
    return tree.printed[label]


def insert(tree: Tree, loops: Iterable[Loop], level: str, threads: Sequence[int], *, each: bool) -> list[Trial]:
    """Run all directives together, and each in its place (if not `each`, only where all together are wrong)."""
    chosen = [loop for loop in loops if loop.directive]
    trials = {id(loop): Trial(f"{loop.file}:{loop.line} {loop.directive}", []) for loop in chosen}
    together = Trial("all together", [])
    for compiler in compilers():
        name = Path(compiler[0].split()[0]).name
        expected = serial(tree, compiler, PARALLEL, name)
        everything: dict[str, dict[int, str]] = {}
        columns: dict[str, dict[int, int]] = {}
        for loop in chosen:
            everything.setdefault(loop.file, {})[loop.line] = str(loop.directive)
            columns.setdefault(loop.file, {})[loop.line] = loop.column
        if chosen:
            _try(tree, compiler, expected, everything, together, threads, columns)
        for loop in chosen if each or together.wrong else ():
            one = {loop.file: {loop.line: str(loop.directive)}}
            _try(tree, compiler, expected, one, trials[id(loop)], threads, columns)
    found = [*trials.values(), together]
    how = "one by one and together" if each or together.wrong else "together"
    report(f"{tree.program.package} {level}: {len(chosen)} directives, {how}", found)
    return found


def _try(
    tree: Tree,
    compiler: tuple[str, str],
    expected: str,
    directives: dict[str, dict[int, str]],
    trial: Trial,
    numbers: Sequence[int],
    columns: dict[str, dict[int, int]],
) -> None:
    """Build and run a copy with these directives, and bring the source back."""
    name = Path(compiler[0].split()[0]).name
    key = (name, *(f"{file}:{line} {each}" for file, lines in directives.items() for line, each in lines.items()))
    if key in tree.tried:
        trial.wrong += tree.tried[key]
        return
    found_wrong: list[str] = []
    kept = {file: tree.read(file) for file in directives}
    try:
        for file, lines in directives.items():
            tree.write(file, source_loops.with_directives(kept[file], lines, columns=columns.get(file)))
        program = tree.build(compiler, PARALLEL, name, directives)
        for threads in numbers:
            for schedule in SCHEDULES:
                environment = {"OMP_NUM_THREADS": str(threads), "OMP_SCHEDULE": schedule, "OMP_WAIT_POLICY": "passive"}
                found = tree.output(program, **environment)
                if not same(found, expected, tree.program.tolerance):
                    found_wrong.append(f"{name}, {threads} threads, {schedule}: {_difference(found, expected)}")
    except NotBuilt as said:
        found_wrong.append(f"{name} does not compile it: {said}")
    finally:
        for file, text in kept.items():
            tree.write(file, text)
    tree.tried[key] = found_wrong
    trial.wrong += found_wrong


def _difference(found: str, expected: str) -> str:
    for got, wanted in zip(found.split(), expected.split()):
        if got != wanted:
            return f"{got} for {wanted}"
    return found[-40:]


def reorder(tree: Tree, loops: Iterable[Loop], level: str) -> list[Trial]:
    """Run the loops that have a directive in other orders; those whose head cannot be rewritten are counted."""
    compiler = compilers()[1]
    expected = serial(tree, compiler, ("-O1",), "order")
    trials, left = [], 0
    for loop in loops:
        if not loop.directive:
            continue
        text = tree.read(loop.file)
        try:
            keep = "lastprivate" in loop.directive
            changed = source_loops.in_another_order(text, loop.line, loop.column, keep_last=keep)
        except source_loops.NotRewritable:
            left += 1
            continue
        trial = Trial(f"{loop.file}:{loop.line} in another order", [])
        trials.append(trial)
        key = ("in another order", loop.file, str(loop.line), str(keep))
        if key in tree.tried:
            trial.wrong += tree.tried[key]
            continue
        try:
            tree.write(loop.file, f'{source_loops.ORDER}#line 1 "{loop.file}"\n{changed}')
            program = tree.build(compiler, ("-O1",), "order", [loop.file])
            for order in ORDERS:
                found = tree.output(program, TRACEKIT_ORDER=str(order))
                if not same(found, expected, tree.program.tolerance):
                    trial.wrong.append(f"order {order}: {_difference(found, expected)}")
        except NotBuilt as said:
            trial.wrong.append(f"the rewritten loop does not compile: {said}")
        finally:
            tree.write(loop.file, text)
        tree.tried[key] = trial.wrong
    report(
        f"{tree.program.package} {level}: {len(trials)} loops in other orders ({left} could not be rewritten)", trials
    )
    return trials


def report(what: str, trials: Sequence[Trial]) -> None:
    """Print what was wrong."""
    wrong = [trial for trial in trials if trial.wrong]
    print(f"{what}: {len(wrong)} wrong")
    for trial in wrong:
        print(f"    WRONG {trial.what}: {len(trial.wrong)} runs; {trial.wrong[0]}")
    sys.stdout.flush()


def of_folder(asked: argparse.Namespace) -> Annotated:
    """The program that the options describe."""
    folder = asked.folder.resolve()
    return Annotated(
        folder.name,
        "",
        tuple(asked.sources or ("{}/*.c", "{}/*.cpp")),
        tuple(shlex.split(asked.flags)),
        tuple(shlex.split(asked.libraries)),
        lambda: shlex.split(asked.arguments),
        folder=folder,
        ignored=asked.ignored,
    )


def main() -> None:
    """Judge the programs that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fetch", action="store_true", help="fetch the sources that are missing")
    parser.add_argument("--only", nargs="+", default=list(EVERYTHING), choices=list(EVERYTHING), metavar="PACKAGE")
    parser.add_argument("--levels", nargs="+", default=["-O0", "-O1", "-O2"], help="levels, as 0 1 2")
    parser.add_argument("--native", action="store_true", help="only build and run them, natively")
    parser.add_argument("--insert", action="store_true", help="run each directive")
    parser.add_argument(
        "--together", action="store_true", help="run all directives at once, each only if that is wrong"
    )
    parser.add_argument("--threads", nargs="+", type=int, default=list(THREADS), help="for runs of directives (2 3 8)")
    parser.add_argument("--order", action="store_true", help="run loops in other orders")
    parser.add_argument("--folder", type=Path, help="judge the program whose source, with its pragmas, is there")
    parser.add_argument("--sources", nargs="+", help="its files, or patterns of them; {} stands for the folder's copy")
    parser.add_argument("--flags", default="", help="options of the compiler for it")
    parser.add_argument("--libraries", default="-lm", help="options of the linker for it")
    parser.add_argument("--arguments", default="", help="what it is run with")
    parser.add_argument(
        "--ignored", default="", metavar="PATTERN", help="lines that it prints, and that differ each time"
    )
    asked = parser.parse_args()
    programs = EVERYTHING
    if asked.folder:
        program = of_folder(asked)
        programs = {program.package: program}
        asked.only = list(programs)
    if asked.fetch:
        fetch.fetch_annotated(asked.only)
    totals: dict[str, Counter[str]] = {}
    trials: list[Trial] = []
    for name in asked.only:
        tree = Tree(programs[name], "tree")
        if asked.native:
            program = tree.build(compilers()[1], ("-O1",), "native")
            print(name, tree.output(program)[-1000:])
            continue
        for level in (f"-O{each.removeprefix('-O')}" for each in asked.levels):
            try:
                loops = advice(tree, level)
            except NotBuilt as said:
                print(f"{name} {level}: not built: {said}")
                continue
            totals.setdefault(level, Counter()).update(recall(tree, level, loops))
            if asked.insert or asked.together:
                trials += insert(tree, loops, level, asked.threads, each=asked.insert)
            trials += reorder(tree, loops, level) if asked.order else []
    for level, counts in totals.items():
        share = 100 * counts["called"] / max(counts["annotated"], 1)
        print(f"\nall at {level}: {counts['called']} of {counts['annotated']} called: {share:.1f} %, {dict(counts)}")
    if trials:
        print(f"{sum(bool(trial.wrong) for trial in trials)} of {len(trials)} trials wrong")


if __name__ == "__main__":
    main()
