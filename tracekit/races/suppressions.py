"""Which races are left out: by patterns of functions and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

KINDS = ("function", "file")


@dataclass(frozen=True)
class Suppressions:
    """Pairs of a kind and a pattern of the shell's."""

    patterns: Sequence[tuple[str, str]]

    @classmethod
    def of(cls, text: str) -> Suppressions:
        """Those of an option, ``function:PATTERN,file:PATTERN``, or of a file ``@NAME``, one a line.

        Raises ValueError, with a sentence, for what is neither.
        """
        parts = text.split(",")
        if text.startswith("@"):
            try:
                lines = Path(text[1:]).read_text().splitlines()
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "is no text"
                raise ValueError(f"suppressions cannot be read: {text[1:]}: {reason}.") from None
            parts = [line.partition("#")[0] for line in lines]
        patterns = []
        for part in filter(None, map(str.strip, parts)):
            kind, colon, pattern = part.partition(":")
            if kind not in KINDS or not colon or not pattern:
                raise ValueError(f"a suppression is function:PATTERN or file:PATTERN, not {part!r}.")
            patterns.append((kind, pattern))
        return cls(patterns)

    def match(self, end: Mapping[str, Any]) -> bool:
        """Whether an end of a race is left out: its instruction, what that was inlined into, or a caller."""
        instruction = end["instruction"]
        places = [instruction, *instruction.get("inlined_at", ())]
        callers = [
            step.partition(":")[0] for step in end["context"]["path"] if not step.startswith(("loop ", "recurs"))
        ]
        names = {
            "function": [*(place["function"] for place in places), end["context"]["root"], *callers],
            "file": [place["file"] for place in places],
        }
        return any(fnmatchcase(name, pattern) for kind, pattern in self.patterns for name in names[kind])
