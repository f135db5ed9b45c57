"""Schedule: when and on which processors threads ran, by the times at which they handed over full buffers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tracekit.module import Display, RecordModule, option

if TYPE_CHECKING:
    from tracekit.schedule.hand_overs import HandOvers


@dataclass(frozen=True)
class ScheduleOptions:
    """How fine the time line is."""

    slices: int = option(200, "Slices of the run.", "N")

    def __post_init__(self) -> None:
        if not 1 <= self.slices <= 100_000:
            raise ValueError(f"slices is 1 to 100,000, not {self.slices}.")


class Schedule(RecordModule):
    """Tables of threads, with what they did in each slice of the run, of processors, of stretches on one of them."""

    Options = ScheduleOptions

    @cached_property
    def _hand_overs(self) -> HandOvers:
        from tracekit.schedule.hand_overs import HandOvers

        return HandOvers(self.program)

    def feed(self, stream: int, ids: Any, words: Any) -> None:
        """Take records."""
        self._hand_overs.add(stream, ids, words)

    def result(self) -> dict[str, Any]:
        """All tables."""
        from tracekit.schedule.rows import result_of

        return result_of(self.program, self._hand_overs.streams, self.options.slices)


DISPLAY = Display(
    text="tracekit.render.schedule:schedule_text",
    section="tracekit.render.html.schedule:section",
    image="tracekit.render.schedule:write_image",
    heading="Schedule",
    columns={
        "threads": "thread role accesses hand_overs begin end processors migrations slices on",
        "processors": "processor accesses nanoseconds",
        "stretches": "thread begin end processor accesses",
    },
)
MODULE = Schedule
