"""Profiles for a view of a run, from a trace (analysed now) or from a profile file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tracekit.api import analyze_all
from tracekit.formats.errors import TracekitError
from tracekit.formats.unit import Unit
from tracekit.modules.options import said
from tracekit.profiles import files
from tracekit.profiles.profile import Profile
from tracekit.program.sources import whole_path


@dataclass(frozen=True)
class Gathered:
    """Profiles of one run, and what the trace says beside them."""

    profiles: Sequence[Profile]
    embedded: Mapping[str, bytes] = field(default_factory=dict)
    """Source files that the trace carries."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """MD5, in hex, of source files as they were compiled, by their whole paths."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """What the trace says of the run: command, compiler, start."""

    @property
    def folders(self) -> Mapping[str, str]:
        """Where the names of source files start, and the folder that they are in (tracekit.profiles)."""
        folders: Mapping[str, str] = self.profiles[0].report.get("folders", {})
        return folders


def gather(
    path: str,
    modules: Sequence[str],
    jobs: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    window: Mapping[str, Any] | None = None,
) -> Gathered:
    """The profiles in a profile file; of a trace, or a window on it, those of `modules`, with `options`, in one pass.

    Of an imported trace these are the ones that loads and stores suffice for, if there are any. Raises TracekitError if
    `path` is neither.
    """
    if files.is_profile(path):
        return Gathered(files.load(path))
    from tracekit.formats.reader import TraceReader
    from tracekit.modules import registry
    from tracekit.modules.options import make_options

    with TraceReader(path) as trace:
        embedded, meta, units = trace.sources(), trace.meta, [unit for image in trace.images() for unit in image.units]
    chosen = {name: make_options(registry.load(name).Options, (options or {}).get(name, {})) for name in modules}
    if "imported" in meta:
        chosen = {name: each for name, each in chosen.items() if registry.load(name).accesses_suffice(each)} or chosen
    return Gathered(analyze_all(path, chosen, jobs, window=window), embedded, _digests(units), meta)


def gather_advice(path: str, options: Any, jobs: int | None = None) -> Gathered:
    """One profile of `advise` with these options (AdviseOptions), from a trace or a profile file.

    A profile file of `camp` or `advise` has what the advice follows from. Raises TracekitError if it is another's.
    """
    if not files.is_profile(path):
        return gather(path, ["advise"], jobs, {"advise": asdict(options)})
    found = [profile for profile in files.load(path) if profile.module in ("advise", "camp")]
    if not found:
        raise TracekitError(f"{path} holds no profile of camp or advise.")
    known = max(found, key=lambda profile: profile.module == "camp" and profile.evidence is not None)
    if known.evidence is None:
        raise TracekitError(f"{path} was printed, not written: make it with `tracekit analyze -m advise -o FILE`.")
    if options.threads and "between_threads" not in known.result:
        raise TracekitError(f"{path} was made without --threads: dependences between threads are not in it.")
    from tracekit.formats.kept_images import images_of
    from tracekit.profiles.merge import merge

    report = {
        **known.report,
        "module": "advise",
        "options": said(options),
        "result": {
            "runs": [run for profile in found for run in profile.result.get("runs", ())],
            **({"between_threads": known.result["between_threads"]} if options.threads else {}),
        },
    }
    merged = merge({path: replace(known, report=report)})
    units = [unit for image in images_of(known.images) for unit in image.units]
    return Gathered([replace(merged, report={**merged.report, **_which(known)})], {}, _digests(units))


def _which(profile: Profile) -> dict[str, Any]:
    return {key: profile.report[key] for key in ("trace", "traces") if key in profile.report}


def _digests(units: Sequence[Unit]) -> dict[str, str]:
    rows = ((unit, row) for unit in units for row in unit.tables["sources"])
    return {whole_path(unit.text(int(row["path"])), unit.folder): unit.text(int(row["md5"])) for unit, row in rows}
