"""The terminal's side of `tracekit top`, by Textual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import DataTable, Footer, Input, Static

from tracekit.counted import counted
from tracekit.profiles.annotation import VERDICTS
from tracekit.program.sources import plain_path
from tracekit.render.annotation import HEADER
from tracekit.render.dependence import VERDICT_COLOUR
from tracekit.top.view import DEPENDENCE_HEADER, LOOP_HEADER, ORDERS, Json, View

MOST = 500
"""Dependences that a pane has."""

SOURCE_HEADER = [HEADER[column] for column in (4, 0, 1, 3, 5, 2)]
"""The text before what may be long."""

COLOUR = {**VERDICT_COLOUR, "not-exercised": "bright_black"}


class Top(App[None]):
    """Loops at the left; the source of the chosen one and its dependences at the right."""

    CSS = """
    #left { width: 2fr; }
    #right { width: 3fr; }
    DataTable { height: 1fr; }
    #source { height: 3fr; }
    #dependences { height: 2fr; }
    .title { background: $panel; text-style: bold; height: 1; }
    #details { height: auto; max-height: 8; }
    #search { display: none; }
    #search.asked { display: block; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("slash", "search", "Search"),
        Binding("v", "verdict", "Verdict"),
        Binding("s", "sort", "Sort"),
        Binding("escape", "leave_search", "All", show=False),
        Binding("tab", "app.focus_next", "Next pane"),
    ]

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, view: View, title: str) -> None:
        super().__init__()
        self.view = view
        self.name_of_run = title
        self.order = next(iter(ORDERS))
        self.words = ""
        self.verdict = ""
        self.rows: Sequence[Json] = ()
        self.found: Sequence[Json] = ()
        """The dependences of the chosen loop."""
        self.shown_file = ""
        self.first_line = 1
        self.ends = 0
        """How many ends of the chosen dependence were gone to: source and destination in turns."""

    def compose(self) -> ComposeResult:
        """The panes."""
        with Horizontal():
            with Vertical(id="left"):
                yield Static(classes="title", id="heading", markup=False)
                yield Input(placeholder="words of loops; Enter keeps them, Escape drops them", id="search")
                yield DataTable(cursor_type="row", id="loops")
                yield Static(id="details", markup=False)
            with Vertical(id="right"):
                yield Static(classes="title", id="file", markup=False)
                yield DataTable(cursor_type="row", id="source")
                yield Static(classes="title", id="carried", markup=False)
                yield DataTable(cursor_type="row", id="dependences")
        yield Footer()

    def on_mount(self) -> None:
        """Fill the panes."""
        self.table("loops").add_columns(*LOOP_HEADER)
        self.table("source").add_columns(*SOURCE_HEADER)
        self.table("dependences").add_columns(*DEPENDENCE_HEADER)
        self.show_loops()
        self.table("loops").focus()

    def table(self, name: str) -> DataTable[Text]:
        """A pane."""
        found: DataTable[Text] = self.query_one(f"#{name}", DataTable)
        return found

    # -- panes -------------------------------------------------------------------------------------

    def show_loops(self) -> None:
        """The loops that are chosen, and what belongs to the first."""
        self.rows = self.view.loops(self.order, self.words, self.verdict)
        rows = []
        for row in self.rows:
            verdict, *cells = self.view.loop_cells(row)
            loop, share, iterations, carried = cells
            counts = (Text(share, justify="right"), Text(iterations, justify="right"))
            rows.append((Text(verdict, COLOUR[verdict]), Text(loop), *counts, Text(carried)))
        _fill(self.table("loops"), rows)
        chosen = f"{len(self.rows):,} of {counted(self.view.count, 'loop')} by {self.order}"
        only = "".join(f", {word}" for word in (self.verdict, self.words) if word)
        self.query_one("#heading", Static).update(f"{self.name_of_run}: {chosen}{only}")
        self.show_loop(0)

    def show_loop(self, number: int) -> None:
        """The source and the dependences of a loop."""
        source, dependences = self.table("source"), self.table("dependences")
        self.found, self.ends = (), 0
        if number >= len(self.rows):
            source.clear()
            dependences.clear()
            self.shown_file = ""
            for name in ("details", "file", "carried"):
                self.query_one(f"#{name}", Static).update("")
            return
        row = self.rows[number]
        self.query_one("#details", Static).update("\n".join(self.view.details(row)))
        self.show_line(row["loop"]["file"], row["loop"]["line"])
        self.found = self.view.dependences(row)
        cells = (self.view.dependence_cells(each, row) for each in self.found[:MOST])
        _fill(dependences, [tuple(map(Text, each)) for each in cells])
        text = f"{counted(len(self.found), 'dependence')} inside, those that it carries first"
        more = f"; the first {MOST}" if len(self.found) > MOST else ""
        self.query_one("#carried", Static).update(text + more)

    def show_line(self, file: str, line: int) -> None:
        """The source with the cursor on a line."""
        table = self.table("source")
        inside = file == self.shown_file and self.first_line <= line < self.first_line + table.row_count
        if not inside:
            lines = self.view.source(file, line)
            self.shown_file, self.first_line = file, lines.first
            self.query_one("#file", Static).update(plain_path(file) if lines.rows else lines.missing)
            rows = []
            for loads, stores, carried, verdict, number, text in lines.rows:
                colour = COLOUR[verdict.split()[0]] if verdict else ""
                counts = (Text(cell, justify="right") for cell in (number, loads, stores))
                rows.append((*counts, Text(verdict, colour), Text(text), Text(carried)))
            _fill(table, rows)
        if table.row_count:
            row = max(line - self.first_line, 0)
            table.move_cursor(row=row)
            self.call_after_refresh(self._centre, row)

    def _centre(self, row: int) -> None:
        """Have a line of the source in the middle of its pane."""
        table = self.table("source")
        table.scroll_to(y=max(row - table.size.height // 2, 0), animate=False)

    # -- what a user does --------------------------------------------------------------------------

    @on(DataTable.RowHighlighted, "#loops")
    def _loop_chosen(self, event: Any) -> None:
        self.show_loop(event.cursor_row)

    @on(DataTable.RowHighlighted, "#dependences")
    def _dependence_chosen(self, event: Any) -> None:
        self.ends = 0

    @on(DataTable.RowSelected, "#dependences")
    def _follow(self, event: Any) -> None:
        """Enter: to the source of a dependence, then to its destination, and so on."""
        each = self.found[event.cursor_row]
        end = each["destination" if self.ends % 2 else "source"]
        self.ends += 1
        self.show_line(end["file"], end["line"])

    def action_sort(self) -> None:
        """By the next order."""
        self.order = _next(list(ORDERS), self.order)
        self.show_loops()

    def action_verdict(self) -> None:
        """Loops of the next verdict alone; after the last one all."""
        self.verdict = _next(["", *reversed(VERDICTS)], self.verdict)
        self.show_loops()

    def action_search(self) -> None:
        """Ask for words."""
        asked = self.query_one("#search", Input)
        asked.add_class("asked")
        asked.focus()

    @on(Input.Changed, "#search")
    def _typed(self, event: Any) -> None:
        self.words = event.value
        self.show_loops()

    @on(Input.Submitted, "#search")
    def _entered(self) -> None:
        self._end_search()

    def action_leave_search(self) -> None:
        """All loops again."""
        self.query_one("#search", Input).value = ""
        self.verdict = ""
        self.words = ""
        self.show_loops()
        self._end_search()

    def _end_search(self) -> None:
        self.query_one("#search", Input).remove_class("asked")
        self.table("loops").focus()


def _next(choices: Sequence[str], chosen: str) -> str:
    return choices[(choices.index(chosen) + 1) % len(choices)]


def _fill(table: DataTable[Text], rows: Sequence[Sequence[Text]]) -> None:
    """Rows in place of all others. Their columns are wide enough at once.

    Textual measures new cells only when nothing else is to be done. A cell that it has to draw before is cut to the
    width of the cells before it, and stays so, for what it has drawn is found again without its width.
    """
    table.clear()
    for row in rows:
        table.add_row(*row)
    for column, cells in zip(table.ordered_columns, zip(*rows)):
        column.content_width = max(column.content_width, *(cell.cell_len for cell in cells))
