"""Data races as text: both ends, where they are called, what they hold."""

from __future__ import annotations

from collections.abc import Mapping

from tracekit.counted import counted
from tracekit.render.objects import object_name
from tracekit.render.places import code_text, without_folder
from tracekit.render.text import Json, Style, more, traces_text

NOTES = {
    "unordered_atomics": (
        "{} ran whose order is not in the trace (compile with `tracekit cc --threads`): not all of this need be races",
        "atomic instruction",
    ),
    "old_barriers": ("{} recorded by an older tracekit, which does not say enough: record again", "wait at a barrier"),
    "mingled_tasks": ("{} took the place of others that need not come before: races of these may be missed", "task"),
    "reused_descriptors": (
        "{} got the number of one that another thread had closed (for data that is kept by number: --descriptor-order)",
        "descriptor",
    ),
    "accesses_of_no_thread": ("{} of signal handlers or of threads of no known beginning left out", "access"),
}

LOCK_ORDERS = {
    "try": "lock that was tried in vain, or loop of OpenMP that hands out its iterations",
    "fork": "fork",
    "task": "task of OpenMP",
    "simd": "SIMD loop of OpenMP",
    "room": "thread, or turn of a lock, of which there was no room to keep it",
}
"""What stopped the look for other orders of locks; but for a race and unordered atomics, which the text tells."""

PLURALS = {"access": "accesses", "wait at a barrier": "waits at barriers"}


def has_races(report: Json) -> bool:
    """Whether there is a race."""
    return bool(report["result"]["races"])


def races_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """One paragraph for each race."""
    result = report["result"]
    summary = result["summary"]
    shown, folder = without_folder(
        {"races": result["races"][: limit or None], "threads": result["threads"], "tasks": result.get("tasks", [])},
        report,
    )
    threads = {thread["thread"]: thread_name(thread) for thread in shown["threads"]}
    below = f", files below {folder}" if folder else ""
    left_out = f", {summary['suppressed']:,} suppressed" if summary["suppressed"] else ""
    lines = [
        f"{report['module']}, {traces_text(report)}{below}",
        "",
        style(f"{counted(summary['races'], 'race')}{left_out}", "bold"),
    ]
    for row in shown["races"]:
        lines += ["", f"{style('race', 'bold')} on {object_text(row)}"]
        for end in (row["first"], row["second"]):
            lines += end_lines(end, threads, style)
        lines += one_thread_lines(row)
        lines += lock_order_lines(row)
    lines += more(len(result["races"]), len(shown["races"]), "race")
    if shown["threads"]:
        lines += ["", style("threads", "bold")]
        lines += [f"  {threads[thread['thread']]}{origin(thread)}" for thread in shown["threads"]]
    if shown["tasks"]:
        lines += ["", style("tasks", "bold"), *map(task_line, shown["tasks"])]
    for name, (text, what) in NOTES.items():
        if summary.get(name) and (shown["races"] or name != "reused_descriptors"):
            plural = PLURALS.get(what, "")
            lines += ["", "note: " + text.format(counted(summary[name], what, plural)) + "."]
    if stop := LOCK_ORDERS.get(summary.get("lock_orders_until", "")):
        lines += ["", f"note: other orders of locks were looked for up to the first {stop}."]
    return "\n".join(lines) + "\n"


def object_text(row: Json) -> str:
    """What the bytes are of, and which."""
    if row["object"]["kind"] == "descriptor":
        return f"file descriptor {row['number']}"
    if row["object"]["kind"] == "unknown":
        return f"address {row['offset']:#x}"
    return f"{object_name(row['object'])}, byte {row['offset']:,}" + (
        f" of object {row['number']:,}" if row["number"] else ""
    )


def end_lines(end: Json, threads: Mapping[int, str], style: Style) -> list[str]:
    """An access: where, by which threads, with which locks, in which context."""
    instruction = end["instruction"]
    place = code_text(instruction)
    sets = [" + ".join(map(lock_name, locks)) or "nothing" for locks in end["locks"]]
    held = " or ".join(
        [*sets[:LOCK_SETS], *[f"{len(sets) - LOCK_SETS:,} other sets of locks"][: len(sets) > LOCK_SETS]]
    )
    names = [threads[stream] for stream in end["threads"]]
    by = ", ".join(names[:THREADS]) + (f" and {len(names) - THREADS:,} more" if len(names) > THREADS else "")
    path = " > ".join([end["context"]["root"], *end["context"]["path"]])
    if end.get("tasks"):
        by = "task " + ", ".join(map(str, end["tasks"])) + f" on {by}"
    return [f"  {end['access']:<12} {place}", f"    by {by}, holding {held}", style(f"    in {path}", "dim")]


def one_thread_lines(row: Json) -> list[str]:
    """Why two accesses of one thread are a race, if they are."""
    shared = row.get("one_thread")
    if not shared:
        return []
    loop = f"the loop at {code_text(shared['loop'])}" if shared["loop"] else ""
    if shared["region"] == "loop":
        parts = f"iterations of {loop}"
    else:
        parts = f"{loop} and the single region behind it" if loop else "a single region and in front of it"
    return [f"    one thread ran both, in {parts}: another one could have run either"]


def lock_order_lines(row: Json) -> list[str]:
    """That a race needs another order of locks, if it does."""
    lock = row.get("other_lock_order")
    if not lock:
        return []
    name = lock_name({**lock, "shared": False})
    return [f"    in this run {name} ordered the two, by who happened to take it first: in another order they race"]


def lock_name(lock: Json) -> str:
    """A global variable's name, or what the memory is where it lies."""
    shown, offset = lock["object"], lock["offset"]
    if shown["kind"] == "unknown":
        name, offset = hex(offset), 0
    else:
        name = shown["name"] if shown["kind"] == "global" else object_name(shown)
    return name + (f" + {offset}" if offset else "") + (" (shared)" if lock["shared"] else "")


THREADS = 4
"""So many threads of an end are named."""

LOCK_SETS = 3
"""So many sets of locks that an end held are named: of an array of locks each element makes one."""


def thread_name(thread: Json) -> str:
    """`thread 2 worker`."""
    return f"thread {thread['thread']} {thread['function']}".rstrip()


def task_line(task: Json) -> str:
    """`  task 2, explicit, created by app.c:12:1 work in main > work`; `  task 2, lanes of the SIMD loop at ...`."""
    context = task["created_in"]
    path = " > ".join([context["root"], *context["path"]])
    if task["kind"] == "lane":
        return f"  task {task['task']}, lanes of the SIMD loop at {code_text(task['loop'])} in {path}"
    place = code_text(task["instruction"])
    return f"  task {task['task']}, {task['kind']}, created at {place} in {path}"


def origin(thread: Json) -> str:
    """`, created by thread 0 in main`, or nothing for what began with the process."""
    if "creator" not in thread:
        return ""
    context = thread["created_in"]
    return f", created by thread {thread['creator']} in {' > '.join([context['root'], *context['path']])}"
