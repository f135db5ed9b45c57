"""One analysis of many traces: each by itself, in processes, then the profiles merged.

The result is that of ``tracekit merge`` of the profile files of all traces, byte for byte, whatever ends first.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracekit import progress
from tracekit.counted import counted
from tracekit.formats import remote
from tracekit.formats.errors import TracekitError
from tracekit.many.cluster import PROCESSES
from tracekit.many.paths import traces_of
from tracekit.many.processes import Processes
from tracekit.modules import registry
from tracekit.modules.contract import Analysis, CannotMergeError, Preset
from tracekit.modules.options import make_options
from tracekit.profiles import files
from tracekit.profiles.merge import merge_files
from tracekit.profiles.profile import Profile
from tracekit.segments.pool import Pool, Said, Task

AT_ONCE = 16
"""Profiles that are merged, and in memory, at once; of more, groups of these are merged first."""

BEFORE_DONE = 0.99
"""What counts of a trace as done, at most, before its profile is written."""


@dataclasses.dataclass
class Outcome:
    """What came of one trace."""

    trace: str
    size: int
    """Bytes of its file."""
    at: float = 0.0
    """The share that is done."""
    hash: str = ""
    build: Sequence[str] = ()
    """Digests of the images, which tell builds apart; none before the analysis has begun."""
    cautions: Sequence[str] = ()
    """What a reader has to know of the trace."""
    accesses_inside: int | None = None
    """Loads and stores inside the window; None without one."""
    explained: Sequence[str] = ()
    left_out: str = ""
    """Why its profile is not part of the result."""


@dataclasses.dataclass(frozen=True)
class Joined:
    """The profiles of many traces, and what came of each trace, in the order given."""

    profiles: Sequence[Profile]
    outcomes: Sequence[Outcome]


def analyze_many(
    traces: Sequence[str],
    options: Mapping[str, Any],
    jobs: int | None = None,
    *,
    window: Mapping[str, Any] | None = None,
    keep_going: bool = False,
    explain: bool = False,
    engine: str | None = None,
) -> Joined:
    """Analyse traces of runs of one build and merge their profiles; `options`: module -> an instance of its Options.

    `jobs` threads are shared by the processes, of which there are as many as traces, at most. With the `engine`
    ``dask`` the processes are those of a Dask cluster of `jobs` workers on this machine, with ``dask://HOST:PORT``
    those of a running one, whose workers find each trace where this process does.

    With `keep_going` a trace that cannot be analysed, is of another build than the first that can, or is there twice,
    is left out, and its Outcome says why. Raises TracekitError otherwise, and if nothing is left or the profiles do
    not merge.
    """
    if not traces:
        raise TracekitError("No trace is named.")
    for name in options if len(traces) > 1 else ():
        require_merging(name)
    outcomes = [Outcome(trace, remote.size_of(trace)) for trace in traces]
    with tempfile.TemporaryDirectory(prefix="tracekit-") as folder:
        task = {
            "options": {
                os.path.abspath(name) if registry.is_file(name) else name: dataclasses.asdict(chosen)
                for name, chosen in options.items()
            },
            "window": dict(window or {}),
            "explain": explain,
        }
        outputs = [os.path.join(folder, f"{number}.profile") for number in range(len(traces))]
        _Analyses(outcomes, outputs, task, keep_going).run(jobs or os.cpu_count() or 1, engine)
        leave_out_strangers(outcomes, keep_going)
        made = {
            outcome.trace: output for outcome, output in zip(outcomes, outputs, strict=True) if not outcome.left_out
        }
        if not made:
            raise TracekitError(f"None of the {len(traces)} traces could be analysed.{_reasons(outcomes)}")
        return Joined(_merged(made, folder), outcomes)


def analyze_each(
    paths: Sequence[str | os.PathLike[str]],
    module: str | type[Analysis],
    jobs: int | None,
    *,
    window: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Profile:
    """The merged profile of one module, as a program asks for it; a single trace is analysed in this process.

    Raises TracekitError for a class: the processes that analyse traces find modules by their names.
    """
    from tracekit import api

    traces = traces_of(paths)
    if len(traces) == 1:
        return api.analyze(traces[0], module, jobs, window=window, **options)
    if not isinstance(module, str):
        raise TracekitError(f"Several traces are analysed by a module with a name, not by the class {module.__name__}.")
    chosen = make_options(registry.load(module).Options, options)
    profiles = analyze_many(traces, {module: chosen}, jobs, window=window).profiles
    if len(profiles) > 1:
        raise TracekitError(f"{module} stands for several modules: name one of them.")
    return profiles[0]


def require_merging(name: str) -> None:
    """Raise TracekitError if profiles of a module are never merged: said before hours of analyses."""
    if registry.is_file(name):
        raise TracekitError(
            f"Profiles of {name} cannot be merged: the module is a file. Install it as a package, or analyse one "
            "trace at a time."
        )
    kind = registry.load(name)
    if issubclass(kind, Preset):
        return  # its members are modules of their own
    try:
        kind.merge((), None)
    except CannotMergeError as error:
        raise error.about(name) from None
    except Exception:  # it merges, if there is something to merge
        return


def _whole(trace: str) -> str:
    """Where processes in other folders find it, too."""
    return trace if remote.is_url(trace) else os.path.abspath(trace)


def _reasons(outcomes: Sequence[Outcome]) -> str:
    first = next((outcome for outcome in outcomes if outcome.left_out), None)
    return f" {first.trace}: {first.left_out}" if first else ""


class _Analyses:
    """The processes of one analysis, and what they say."""

    def __init__(
        self, outcomes: Sequence[Outcome], outputs: Sequence[str], task: Mapping[str, Any], keep_going: bool
    ) -> None:
        self.outcomes = outcomes
        self.outputs = outputs
        self.task = task
        self.keep_going = keep_going

    def run(self, threads: int, engine: str | None) -> None:
        """Analyse all traces. What found no memory, or was ended, beside others is done again alone."""
        from tracekit.containers.budget import overcommits

        total = sum(outcome.size for outcome in self.outcomes)
        with progress.step(f"analysing {counted(len(self.outcomes), 'trace')}", total or None, self._position):
            if engine is None or engine == PROCESSES:
                most = min(threads, len(self.outcomes)) if overcommits() else 1
                self._rounds(Processes, most, threads)
            else:
                from tracekit.many.cluster import Cluster, address_of

                with Cluster(address_of(engine), threads) as cluster:
                    self._rounds(cluster.tasks, len(self.outcomes), cluster.threads)

    def _position(self) -> int:
        return int(sum(outcome.size * outcome.at for outcome in self.outcomes))

    def _rounds(self, pool: Callable[[Sequence[Task], int], Pool], most: int, threads: int) -> None:
        longest_first = sorted(range(len(self.outcomes)), key=lambda number: -self.outcomes[number].size)
        again = self._round(pool, longest_first, most, threads, is_last=most == 1)
        if again:
            self._round(pool, again, 1, threads, is_last=True)

    def _round(
        self,
        pool: Callable[[Sequence[Task], int], Pool],
        numbers: Sequence[int],
        most: int,
        threads: int,
        is_last: bool,
    ) -> list[int]:
        """Run the tasks of these traces, `most` at once. Returns which may do better alone, but of the last."""
        again: list[int] = []
        tasks = [
            (
                number,
                {
                    **self.task,
                    "trace": _whole(self.outcomes[number].trace),
                    "output": self.outputs[number],
                    "threads": max(threads // most, 1),
                },
            )
            for number in numbers
        ]
        with pool(tasks, most) as running:
            for said in running.said():
                may_do_better = said.word == "starved" or (said.word == "broke" and said.content < 0)
                if may_do_better and not is_last:
                    self.outcomes[said.number].at = 0.0
                    again.append(said.number)
                else:
                    self._note(said)
        return again

    def _note(self, said: Said) -> None:
        outcome = self.outcomes[said.number]
        if said.word == "at":
            outcome.at = min(said.content, BEFORE_DONE)
        elif said.word == "began":
            outcome.hash, outcome.build = said.content["hash"], said.content["build"]
            if not self.keep_going:
                leave_out_strangers([one for one in self.outcomes if one.build], keep_going=False)
        elif said.word == "done":
            outcome.at = 1.0
            for key, value in said.content.items():
                setattr(outcome, key, value)
        else:
            outcome.at = 1.0
            outcome.left_out = said.content if said.word != "broke" else _ending(said.content)
            if not self.keep_going:
                raise TracekitError(_naming(outcome))


def _naming(outcome: Outcome) -> str:
    """The sentence, behind the trace's name if it does not name it."""
    return outcome.left_out if outcome.trace in outcome.left_out else f"{outcome.trace}: {outcome.left_out}"


def _ending(status: int) -> str:
    if status < 0:
        return f"Its analysis was ended by the signal {signal.Signals(-status).name}: the system may lack memory."
    return f"Its analysis broke off with exit status {status}."


def leave_out_strangers(outcomes: Sequence[Outcome], keep_going: bool) -> None:
    """Of the traces that are not left out: leave out those of another build than the first, and those there twice."""
    first: Outcome | None = None
    by_hash: dict[str, Outcome] = {}
    for outcome in outcomes:
        if outcome.left_out:
            continue
        first = first or outcome
        twin = by_hash.setdefault(outcome.hash, outcome)
        if outcome.build != first.build:
            outcome.left_out = _difference(outcome, first)
        elif twin is not outcome:
            outcome.left_out = f"It is the same trace as {twin.trace}, which would count twice."
        if outcome.left_out and not keep_going:
            raise TracekitError(f"{outcome.trace}: {outcome.left_out}")


def _difference(outcome: Outcome, first: Outcome) -> str:
    """Why runs cannot be merged: the whole program is another, or one of the libraries that it loads."""
    if set(outcome.build) & set(first.build):
        return (
            f"It did not load the same libraries as {first.trace} (or one of them, or the program, is of another "
            "build); merging needs runs that do."
        )
    return f"It is of another build than {first.trace}; merging needs runs of one build."


def _merged(made: Mapping[str, str], folder: str) -> list[Profile]:
    """The merged profiles of profile files, by the names that errors use; at most AT_ONCE files are loaded at once."""
    if len(made) == 1:
        return files.load(*made.values())
    level = 0
    while len(made) > AT_ONCE:
        names = list(made)
        groups = [names[begin : begin + AT_ONCE] for begin in range(0, len(names), AT_ONCE)]
        made = {group[0]: _saved(group, made, os.path.join(folder, f"{level}-{i}")) for i, group in enumerate(groups)}
        level += 1
    return merge_files({name: files.load(file) for name, file in made.items()})


def _saved(group: Sequence[str], made: Mapping[str, str], target: str) -> str:
    """One file in place of a group of files."""
    if len(group) == 1:
        return made[group[0]]
    files.save(target, merge_files({name: files.load(made[name]) for name in group}))
    return target
