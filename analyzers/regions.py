"""Address space: what each region of it is for and how large it is, over the run, from `record --snapshots`."""

from __future__ import annotations

from typing import Any, ClassVar

from tracekit.module import BatchModule, Display

_OWN = ("first", "end", "protection", "use", "name")


class Regions(BatchModule):
    """Tables of snapshots, with bytes by use, and of regions, with the snapshots from and to which each was there."""

    events: ClassVar[dict[str, tuple[str, ...]]] = {}
    wants_address_space = True

    @classmethod
    def accesses_suffice(cls, options: Any) -> bool:
        """A trace from another tool has no snapshots."""
        return False

    def feed(self, batch: Any) -> None:
        """Nothing: snapshots tell it all."""

    def result(self) -> dict[str, Any]:
        """Both tables; times in seconds since the program's start, sizes in bytes."""
        snapshots = [
            {"time": each["time"], "resident": each["resident"], "proportional": each["proportional"]}
            | {"swapped": each["swapped"], **each["bytes"]}
            for each in self.address_space
        ]
        found: dict[tuple[Any, ...], dict[str, Any]] = {}
        for each in self.address_space:
            for region in each["regions"]:
                row = found.setdefault(
                    tuple(region[name] for name in _OWN), {"from": each["time"], **region, "thread": 0}
                )
                row |= {"to": each["time"], "thread": region.get("thread", 0) or row["thread"]}
        rows = sorted(found.values(), key=lambda row: (row["first"], row["end"], row["from"], row["protection"]))
        return {"snapshots": snapshots, "regions": rows}


DISPLAY = Display(
    text="tracekit.render.regions:regions_text",
    section="tracekit.render.html.regions:section",
    image="tracekit.render.regions:write_image",
    heading="Address space",
    columns={
        "snapshots": "time resident proportional swapped heap stack image file anonymous kernel tracekit",
        "regions": "from first end bytes protection use name thread to",
    },
)
MODULE = Regions
