"""What differs between two profiles: of made-up ones, so that each rule is seen alone."""

from __future__ import annotations

from typing import Any

from tracekit.profiles.diff import compare, differ
from tracekit.profiles.profile import Profile

BUILD = (("unit",),)


def profile(result: dict[str, Any], build: tuple[tuple[str, ...], ...] = ()) -> Profile:
    return Profile({"module": "x", "options": {}, "result": result}, {}, True, build=build)


def place(line: int, file: str = "a.c", **more: Any) -> dict[str, Any]:
    return {"file": file, "line": line, "column": 1, "function": "f", "kind": "load", **more}


def compared(before: list[Any], after: list[Any], build: tuple[tuple[str, ...], ...] = ()) -> dict[str, Any]:
    """The only table's comparison."""
    (table,) = compare(profile({"rows": before}, build), profile({"rows": after}, build))["tables"].values()
    assert isinstance(table, dict)
    return table


def test_equal_profiles_do_not_differ_and_each_kind_of_difference_counts() -> None:
    rows = [{"instruction": place(1), "count": 1}]
    more = [*rows, {"instruction": place(2), "count": 1}]
    assert not differ(compare(profile({"rows": rows, "sum": 1}), profile({"rows": rows, "sum": 1})))
    assert differ(compare(profile({"rows": rows, "sum": 1}), profile({"rows": rows, "sum": 2})))
    assert differ(compare(profile({"rows": rows}), profile({"rows": more})))
    assert differ(compare(profile({"rows": more}), profile({"rows": rows})))
    assert differ(compare(profile({"rows": rows}), profile({"rows": [{**rows[0], "count": 2}]})))


def test_a_table_that_one_profile_lacks_is_new_or_gone() -> None:
    rows = [{"instruction": place(1), "count": 1}]
    (table,) = compare(profile({}), profile({"rows": rows}))["tables"].values()
    assert (table["new"], table["gone"], table["same"]) == (rows, [], 0)
    (table,) = compare(profile({"rows": rows}), profile({}))["tables"].values()
    assert (table["new"], table["gone"], table["same"]) == ([], rows, 0)


def test_an_empty_table_is_compared() -> None:
    found = compare(profile({"rows": []}), profile({"rows": []}))
    assert found["not_compared"] == [] and found["tables"]["rows"]["same"] == 0


def test_of_one_build_ids_match_rows_and_of_two_builds_places_do() -> None:
    before = [{"instruction": place(1, id="u:1"), "count": 1}]
    after = [{"instruction": place(9, id="u:1"), "count": 1}]
    assert compared(before, after, BUILD)["same"] == 1
    table = compared(before, after)
    assert (table["new"], table["gone"], table["same"]) == (after, before, 0)
    assert compare(profile({}, BUILD), profile({}, BUILD))["matched_by"] == "id"
    assert compare(profile({}, BUILD), profile({}, (("other",),)))["matched_by"] == "place"
    assert compare(profile({}), profile({}))["matched_by"] == "place", "two builds that are not known are not one"


def test_code_that_was_inlined_at_another_place_is_other_code() -> None:
    before = [{"instruction": place(1, inlined_at=[place(5)]), "count": 1}]
    assert compared(before, [{"instruction": place(1, inlined_at=[place(5, "moved/a.c")]), "count": 1}])["same"] == 1
    assert compared(before, [{"instruction": place(1, inlined_at=[place(6)]), "count": 1}])["same"] == 0


def test_rows_of_one_place_are_one_row_whose_numbers_add() -> None:
    rows = [
        {"loop": place(1), "count": 1, "share": True, "carried": {"RAW": 1}, "lives": [1], "name_of": "a"},
        {"loop": place(1), "count": 2, "share": True, "carried": {"RAW": 2, "WAW": 1}, "lives": [2], "name_of": "a"},
    ]
    one = {
        "loop": place(1),
        "count": 3,
        "share": True,
        "carried": {"RAW": 3, "WAW": 1},
        "lives": [1, 2],
        "name_of": "a",
    }
    table = compared(rows, [one])
    assert (table["same"], table["changed"]) == (1, [])


def test_of_a_dependence_the_loops_that_carry_it_and_the_reach_of_its_distances_are_compared() -> None:
    def row(*levels: tuple[int, bool, int, int]) -> dict[str, Any]:
        return {
            "source": place(1),
            "destination": place(2),
            "levels": [
                {"loop": place(line), "inter": inter, "min_distance": low, "max_distance": high}
                for line, inter, low, high in levels
            ],
        }

    before = row((10, True, 2, 5), (20, True, 1, 3), (30, False, 0, 0))
    assert compared([before], [row((20, True, 1, 3), (10, True, 2, 5))])["changed"] == [], "order, and what is inside"
    (changed,) = compared([before], [row((10, True, 2, 7))])["changed"]
    change = changed["changes"]
    assert change["distance"] == {"before": [1, 5], "after": [2, 7]}
    assert [len(change["carried_by"][side]) for side in ("before", "after")] == [2, 1]
    (changed,) = compared([before], [row((30, False, 0, 0))])["changed"]
    change = changed["changes"]
    assert change["distance"]["after"] is None and change["carried_by"]["after"] == []


def test_only_numbers_have_a_factor_and_from_zero_there_is_none() -> None:
    def change(old: Any, new: Any) -> Any:
        return compare(profile({"v": old}), profile({"v": new}))["values"].get("v")

    assert change(2, 5) == {"before": 2, "after": 5, "factor": 2.5}
    assert change(0, 5) == {"before": 0, "after": 5, "factor": None}
    assert change(False, True) == {"before": False, "after": True}
    assert change(1, None) == {"before": 1, "after": None}
    assert change("a", "b") == {"before": "a", "after": "b"}
    assert change(3, 3) is None


def test_the_traces_of_both_sides_are_named_also_of_merged_profiles() -> None:
    def of(**report: Any) -> Profile:
        return Profile({"module": "x", "options": {}, "result": {}, **report}, {}, True)

    found = compare(of(trace="1"), of(traces=["2", "3"]))
    assert (found["before"], found["after"]) == (["1"], ["2", "3"])


def test_a_place_is_one_value_and_what_is_none_is_compared_part_by_part() -> None:
    def changes(old: Any, new: Any) -> Any:
        (changed,) = compared([{"loop": place(1), "part": old}], [{"loop": place(1), "part": new}])["changed"]
        return changed["changes"]

    assert list(changes(place(2), place(3))) == ["part"]
    assert list(changes({"line": 2}, {"line": 3})) == ["part.line"], "a line alone is a number"
    assert list(changes({"function": 2}, {"function": 3})) == ["part.function"]
