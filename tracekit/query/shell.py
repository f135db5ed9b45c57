"""`tracekit shell`: queries typed one after another, and commands that begin with a dot."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.formats.errors import TracekitError
from tracekit.query import listing
from tracekit.query.catalogue import ENTRIES
from tracekit.query.database import Database
from tracekit.query.output import FORMATS, table_text
from tracekit.query.splitting import split
from tracekit.render.text import Style

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

PROMPT = "tracekit> "
CONTINUED = "     ...> "

HELP = """\
SELECT ...;         a query, which may go over several lines; it ends with a semicolon
.tables             the tables
.schema [TABLE]     the columns of a table, or of all
.format NAME        what queries print: table, csv, json, jsonl, markdown
.limit N            rows that a table shows; 0 shows all
.help               this
.quit               leave, as Ctrl-D does
"""

KEYWORDS = (
    "SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT JOIN LEFT USING ON AS AND OR NOT NULL IS IN LIKE ILIKE BETWEEN "
    "DISTINCT DESC ASC CASE WHEN THEN ELSE END WITH UNION ALL EXCEPT EXCLUDE count sum avg min max round unnest list "
    "DESCRIBE SUMMARIZE PIVOT EXPLAIN"
).split()


class Shell:
    """The state of a session: what is typed so far, and how results are shown."""

    def __init__(
        self,
        database: Database,
        style: Style,
        say: Callable[[str], None],
        complain: Callable[[str], None],
        working: Callable[[], AbstractContextManager[None]],
        remarks: Callable[[], Iterable[str]],
    ) -> None:
        """`say` prints text as it is, `complain` a sentence; a query runs inside of `working`.

        `remarks`: what there is to say of the trace after a query, in sentences; each is said once.
        """
        self.database = database
        self.style = style
        self.say = say
        self.complain = complain
        self.working = working
        self.remarks = remarks
        self._remarked: set[str] = set()
        self.form = "table"
        self.limit = 30
        self.typed = ""
        """A query of which the end is still to come."""
        self.failed = False
        """Whether anything failed so far."""

    def run(self, lines: Iterable[str]) -> None:
        """Take lines until there are no more, or .quit; a query at the end needs no semicolon."""
        for line in lines:
            if not self.take(line):
                return
        query, self.typed = self.typed, ""
        if query.strip():
            self._query(query)

    def take(self, line: str) -> bool:
        """Do what a line asks for; False to leave."""
        if not self.typed.strip() and line.lstrip().startswith("."):
            return self._command(*line.split())
        queries, self.typed = split(self.typed + line + "\n")
        for query in queries:
            self._query(query)
        return True

    def _query(self, query: str) -> None:
        try:
            with self.working():
                result = self.database.query(query)
        except TracekitError as error:
            self._fail(str(error))
            return
        except KeyboardInterrupt:
            self._fail("Interrupted.")
            return
        for remark in self.remarks():
            if remark not in self._remarked:
                self._remarked.add(remark)
                self.complain(remark)
        if self.form == "table":
            self.say(table_text(result, self.limit, self.style, ".limit"))
        else:
            self.say(FORMATS[self.form](result))

    def _command(self, name: str, *words: str) -> bool:
        """A line that begins with a dot."""
        word = words[0] if words else None
        run = self.database.run
        if name in (".quit", ".exit"):
            return False
        if name == ".help":
            self.say(HELP)
        elif name == ".tables":
            self.say(listing.tables_text(run, self.style))
        elif name == ".schema" and (word is None or listing.is_table(word, run)):
            self.say(listing.columns_text(word, run, self.style))
        elif name == ".schema":
            self._fail(f"There is no table {word!r}; .tables lists them.")
        elif name == ".format" and word in ("table", *FORMATS):
            self.form = str(word)
        elif name == ".format":
            self._fail(f"A format is one of {', '.join(('table', *FORMATS))}.")
        elif name == ".limit" and word is not None and word.isdecimal():
            self.limit = int(word)
        elif name == ".limit":
            self._fail(".limit takes a number of rows.")
        else:
            self._fail(f"There is no command {name}; .help lists them.")
        return True

    def _fail(self, sentence: str) -> None:
        self.failed = True
        self.complain(sentence)


def prompted(shell: Shell) -> Iterator[str]:
    """Lines that a user types at a prompt, with history and completion, until Ctrl-D; Ctrl-C drops what is typed."""
    session = _session()
    while True:
        try:
            yield session.prompt(CONTINUED if shell.typed.strip() else PROMPT)
        except KeyboardInterrupt:
            shell.typed = ""
        except EOFError:
            return


def _session() -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    words = dict.fromkeys([*KEYWORDS, *completions()])
    completer = WordCompleter(list(words), ignore_case=True)
    path = history_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a"):
            pass
    except OSError:
        return PromptSession(history=InMemoryHistory(), completer=completer, complete_while_typing=False)
    return PromptSession(history=FileHistory(str(path)), completer=completer, complete_while_typing=False)


def completions() -> list[str]:
    """Names of tables and columns."""
    return [*ENTRIES, *(column.name for entry in ENTRIES.values() for column in entry.columns)]


def history_file() -> Path:
    """Where what was typed is kept."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(state) / "tracekit" / "shell-history"
