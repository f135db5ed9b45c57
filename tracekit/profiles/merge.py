"""Profiles of several runs of one build, joined into one: `tracekit merge`, tracekit.merge."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracekit import progress
from tracekit.contexts.rules import explicit, rule_of, without_rule
from tracekit.formats.errors import TracekitError
from tracekit.modules import registry
from tracekit.modules.contract import CannotMergeError
from tracekit.profiles.profile import Profile
from tracekit.version import __version__

if TYPE_CHECKING:
    from tracekit.program.program import Program


def merge_files(files: Mapping[str, Sequence[Profile]]) -> list[Profile]:
    """The joined profile of each module; file name -> the profiles in it. Every file has those of the first.

    Raises TracekitError, which names the file, where profiles do not fit together.
    """
    first, *others = files
    merged = []
    for profile in files[first]:
        chosen = {first: profile}
        for name in others:
            same_module = [candidate for candidate in files[name] if candidate.module == profile.module]
            if not same_module:
                raise TracekitError(f"{name} holds no profile of {profile.module}, as {first} does.")
            chosen[name] = same_module[0]
        for name in others:
            surplus = {candidate.module for candidate in files[name]} - {candidate.module for candidate in files[first]}
            if surplus:
                raise TracekitError(f"{first} holds no profile of {min(surplus)}, as {name} does.")
        merged.append(merge(chosen))
    return merged


def merge(named: Mapping[str, Profile]) -> Profile:
    """Profiles of one module, of runs of one build with the same options, joined; name (for errors) -> profile.

    The result depends neither on the order of `named` nor on which were joined first. Raises TracekitError if they are
    not of one build, differ in options, or the module cannot join them.
    """
    for (name, profile), (other_name, other) in itertools.combinations(named.items(), 2):
        _check_pair(name, profile, other_name, other)
    profiles = sorted(named.values(), key=lambda profile: profile.traces)
    first = profiles[0]
    images = min(profile.images for profile in profiles)  # they differ in addresses alone
    program = _program(first.module, images)
    chosen = {"options": _options(first)} if "options" in first.report else {}
    objects = [dict(profile.report, **chosen, facts=profile.facts, evidence=profile.evidence) for profile in profiles]
    try:
        with progress.step(f"merging {first.module}"):
            joined = registry.load(first.module, files=False).merge(objects, program)
    except CannotMergeError as error:
        raise error.about(first.module) from None
    report: dict[str, Any] = {
        "tracekit": __version__,
        "module": first.module,
        "traces": sorted(trace for profile in profiles for trace in profile.traces),
    }
    if folders := shared_folders(profiles):
        report["folders"] = folders
    report |= {key: chosen.get(key, first.report[key]) for key in ("options", "window") if key in first.report}
    if any("windows" in profile.report for profile in profiles):
        report["windows"] = [window for profile in profiles for window in profile.report.get("windows", [])]
    if filters := sorted({each for profile in profiles for each in profile.report.get("filters", [])}):
        report["filters"] = filters
    report["result"] = joined["result"]
    return Profile(
        report,
        joined.get("facts", {}),
        all(profile.complete for profile in profiles),
        build=first.build,
        images=images,
        evidence=joined.get("evidence"),
        rules_broken=any(profile.rules_broken for profile in profiles),
    )


def shared_folders(profiles: Sequence[Profile]) -> dict[str, str]:
    """The folders of all these profiles: of one build in two places the names of files are equal, not their start."""
    first, *others = (profile.report.get("folders", {}) for profile in profiles)
    return {key: value for key, value in first.items() if all(folders.get(key) == value for folders in others)}


def _check_pair(name: str, profile: Profile, other_name: str, other: Profile) -> None:
    if profile.module != other.module:
        raise TracekitError(f"{name} is a profile of {profile.module}, {other_name} one of {other.module}.")
    for one, where in ((profile, name), (other, other_name)):
        if not one.build:
            raise TracekitError(
                f"{where} does not say what build it is of: it was printed; write it with `tracekit analyze -o FILE`."
            )
    twice = set(profile.traces) & set(other.traces)
    if twice:
        raise TracekitError(f"{name} and {other_name} are both of the trace {min(twice)}, which would count twice.")
    if profile.build != other.build:
        units, others = ({unit for image in one.build for unit in image} for one in (profile, other))
        what = "different builds"
        if set(profile.build) & set(other.build):
            what = "runs that did not load the same libraries, or of different builds of one"
        raise TracekitError(
            f"{name} and {other_name} are profiles of {what}: of {len(units)} and "
            f"{len(others)} units they share {len(units & others)}; `tracekit diff` compares them."
        )
    options = [_options(one) for one in (profile, other)]
    rules = [rule_of(one) for one in options]
    if rules[0] != rules[1]:
        raise TracekitError(
            f"{name} tells contexts apart by --contexts {rules[0]}, {other_name} by --contexts {rules[1]}; "
            "merging needs the same."
        )
    windows = [one.report.get("window") for one in (profile, other)]
    for mine, theirs in ([without_rule(one) for one in options], windows):
        if mine != theirs:
            raise TracekitError(
                f"{name} and {other_name} were made with other {_differences(mine, theirs)}; merging needs the same."
            )


def _options(profile: Profile) -> dict[str, Any]:
    return explicit(profile.report.get("options", {}), registry.load(profile.module, files=False).Options)


def _differences(mine: Mapping[str, Any] | None, theirs: Mapping[str, Any] | None) -> str:
    """`values of kinds (raw; war)`: the options that differ, and of each both values."""
    if mine is None or theirs is None:
        return "windows"
    names = sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))
    return "values of " + ", ".join(f"{name} ({_value(mine.get(name))}; {_value(theirs.get(name))})" for name in names)


def _value(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value)


def _program(module: str, images: Sequence[str]) -> Program | None:
    if not registry.load(module, files=False).merges_with_program:
        return None
    if not images:
        raise TracekitError(
            f"A profile of {module} lacks the program's image tables: write it with `tracekit analyze -o FILE`."
        )
    from tracekit.formats.kept_images import images_of
    from tracekit.program.program import Program

    return Program.from_images(images_of(images))
