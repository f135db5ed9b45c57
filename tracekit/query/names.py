"""Which tables a query reads, found before it is run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import duckdb

UNSEEN = ("query", "query_table")
"""Functions of DuckDB that read tables of names that are only made when the query runs."""

_UNSEEN_CALL = re.compile(rf'\b({"|".join(UNSEEN)})"?\s*\(', re.IGNORECASE)


class Named(NamedTuple):
    """What a query names, in lower case."""

    tables: set[str]
    """Names without a schema; there may be other words among them."""
    schemas: set[str]
    unseen: str | None
    """One of UNSEEN that it calls."""


def named(connection: duckdb.DuckDBPyConnection, sql: str) -> Named:
    """The tables of a query, by DuckDB's own parser; of PIVOT and EXPLAIN, which that does not show, all its words."""
    ((shown,),) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    tree = json.loads(shown)
    if tree.get("error", True):
        call = _UNSEEN_CALL.search(sql)
        return Named(set(re.findall(r"\w+", sql.lower())), set(), call[1].lower() if call else None)
    found = Named(set(), set(), None)
    for node in _nodes(tree):
        schema = str(node.get("schema_name") or "").lower()
        if node.get("type") == "BASE_TABLE" and schema not in ("", "main"):
            found.schemas.add(schema)
        elif node.get("type") == "BASE_TABLE":
            found.tables.add(str(node["table_name"]).lower())
        elif node.get("type") == "TABLE_FUNCTION":
            function = str(node["function"].get("function_name", "")).lower()
            found = found._replace(unseen=function) if function in UNSEEN else found
    return found


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """All objects in a JSON value."""
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            yield part
            stack.extend(part.values())
        elif isinstance(part, list):
            stack.extend(part)
