"""What merging profiles does whatever the module: of made-up ones, with a module that only says what it was handed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tracekit.formats.errors import TracekitError
from tracekit.modules import registry
from tracekit.modules.options import option
from tracekit.profiles.merge import merge, merge_files
from tracekit.profiles.profile import Profile

BUILD = (("unit",),)
STATIC = {"top": 5, "contexts": "static"}


class Adds:
    """A module that adds one number, and keeps what it was handed."""

    merges_with_program = False
    handed: Sequence[Mapping[str, Any]] = ()

    @dataclass(frozen=True)
    class Options:
        """Two options, of which the second came with a later version."""

        top: int = option(10, "Rows.", "N")
        contexts: str = option("dynamic", "The rule.", "RULE")

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: None) -> dict[str, Any]:
        cls.handed = profiles
        return {"result": {"sum": sum(profile["result"]["sum"] for profile in profiles)}}


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "load", lambda name, files: Adds)


def profile(trace: str, number: int, build: tuple[tuple[str, ...], ...] = BUILD, **report: Any) -> Profile:
    made = {"module": "adds", "trace": trace, "options": {}, "result": {"sum": number}, **report}
    return Profile(made, {}, True, build=build)


def test_profiles_of_a_version_with_one_rule_of_contexts_are_of_that_rule() -> None:
    joined = merge({"a": profile("1", 1, options={"top": 5}), "b": profile("2", 2, options=STATIC)})
    assert joined.report["options"] == STATIC
    assert [each["options"] for each in Adds.handed] == [STATIC] * 2
    message = r"^a tells contexts apart by --contexts static, b by --contexts dynamic; merging needs the same\.$"
    with pytest.raises(TracekitError, match=message):
        merge({"a": profile("1", 1), "b": profile("2", 2, options={"contexts": "dynamic"})})


def test_profiles_without_options_are_merged_to_one_without() -> None:
    parts = [profile("1", 1), profile("2", 2)]
    for part in parts:
        del part.report["options"]
    assert "options" not in merge({"a": parts[0], "b": parts[1]}).report
    assert not any("options" in each for each in Adds.handed)


def test_the_order_does_not_matter() -> None:
    traces = ["4", "1", "3", "5", "2"]
    parts = {
        name: profile(trace, number, windows=[trace], filters=[f"only {name}", "without x"])
        for number, (name, trace) in enumerate(zip("abcde", traces))
    }
    reports = [merge(dict(order)).report for order in itertools.permutations(parts.items())]
    assert all(report == reports[0] for report in reports)
    assert reports[0]["traces"] == sorted(traces) and reports[0]["result"] == {"sum": 10}
    assert reports[0]["windows"] == sorted(traces), "in the order of the traces"
    assert reports[0]["filters"] == [*(f"only {name}" for name in "abcde"), "without x"]


def test_what_was_merged_is_merged_again() -> None:
    parts = [profile(str(number), number) for number in range(1, 4)]
    half = merge({"a": parts[0], "b": parts[1]})
    assert merge({"half": half, "c": parts[2]}).report["traces"] == ["1", "2", "3"]
    with pytest.raises(TracekitError, match=r"^half and a are both of the trace 1, which would count twice\.$"):
        merge({"half": half, "a": parts[0]})


@pytest.mark.parametrize(
    "other, message",
    [
        (profile("2", 2, module="camp"), "a is a profile of adds, b one of camp."),
        (profile("2", 2, ()), "b does not say what build it is of: it was printed; write it with `tracekit analyze -o"),
        (
            profile("2", 2, (("unit", "more"),)),
            "a and b are profiles of different builds: of 1 and 2 units they share 1;",
        ),
        (
            profile("2", 2, (("unit",), ("more",))),
            "a and b are profiles of runs that did not load the same libraries, or of different builds of one: of 1",
        ),
        (
            profile("2", 2, options={"top": 2}),
            "a and b were made with other values of top (null; 2); merging needs the same",
        ),
        (profile("2", 2, window={"from": 1}), "a and b were made with other windows; merging needs the same."),
    ],
)
def test_what_is_not_of_one_kind_is_refused(other: Profile, message: str) -> None:
    with pytest.raises(TracekitError) as error:
        merge({"a": profile("1", 1), "b": other})
    assert str(error.value).startswith(message)


def test_files_have_to_hold_profiles_of_the_same_modules() -> None:
    one, other = profile("1", 1), profile("2", 2)
    more = profile("2", 2, module="camp")
    assert [joined.result["sum"] for joined in merge_files({"a": [one], "b": [other]})] == [3]
    with pytest.raises(TracekitError, match=r"^b holds no profile of adds, as a does\.$"):
        merge_files({"a": [one], "b": [more]})
    with pytest.raises(TracekitError, match=r"^a holds no profile of camp, as b does\.$"):
        merge_files({"a": [one], "b": [other, more]})
