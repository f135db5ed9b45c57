"""Values that the rows of a profile share, in profile files: each is written once, and named by its number.

Of the dependences of a large program half a million rows name some ten thousand contexts, of up to hundreds of calls
each: spelled out, the profile is a hundred times as long. So a column that is an object or a list, and not short, is
``{"shared": N}``: the N-th value, from 0, of the list ``shared`` behind the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

KEY = "shared"
"""The key of the list in a profile, and the only one of what stands for a value of it."""

SHORT = 40
"""Characters of a value that is written where it is: what names a value has about half of them."""


class DanglingReference(Exception):  # noqa: N818 - the file's fault, told by whoever knows its name
    """A row names a value that the list lacks."""


class SharedTexts:
    """The texts of shared values, in the order in which rows first have them."""

    def __init__(self, dump: Callable[[Any], str]) -> None:
        self._dump = dump
        self._numbers: dict[str, int] = {}

    def dump(self, value: Any) -> str:
        """The JSON of a row's column: of the value, or of what stands for it."""
        text = self._dump(value)
        if not isinstance(value, (dict, list)) or (len(text) < SHORT and not _is_reference(value)):
            return text
        number = self._numbers.setdefault(text, len(self._numbers))
        return f'{{"{KEY}": {number}}}'

    def texts(self) -> Sequence[str]:
        """The JSON of each shared value."""
        return list(self._numbers)


def resolve(result: Mapping[str, Any], values: Sequence[Any]) -> None:
    """Put the values into the rows of a result's tables. Raises DanglingReference."""
    for row in _rows(result):
        for column, value in row.items():
            if type(value) is dict and len(value) == 1 and KEY in value:  # `_is_reference`: millions of columns
                number = value[KEY]
                if type(number) is not int or not 0 <= number < len(values):
                    raise DanglingReference
                row[column] = values[number]


def _rows(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for table in result.values():
        if isinstance(table, list):
            yield from (row for row in table if isinstance(row, dict))


def _is_reference(value: Any) -> bool:
    return type(value) is dict and len(value) == 1 and KEY in value
