"""Makes the state of kernels/roles.py, and names what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.contexts.kernels.roles import MAIN, ROLE_FIELDS, WRAPPER, Roles
from tracekit.program.program import Program

if TYPE_CHECKING:
    from tracekit.contexts.table import ContextTable

MOST_STREAMS = 1 << 24
LIBRARY = ("std::", "__gnu_cxx::", "_GLOBAL__sub_I", "__cxx_global_var_init")


def kinds_of(program: Program) -> NDArray[np.uint8]:
    """By function WRAPPER, MAIN or 0, one row at least."""
    kinds = np.zeros(max(len(program.functions), 1), np.uint8)
    for function in range(len(program.functions)):
        name = program.function_name(function)
        own = name.partition("(")[0].partition("<")[0].rpartition(" ")[2]
        if own == "main":
            kinds[function] = MAIN
        elif own.startswith(LIBRARY):
            kinds[function] = WRAPPER
    return kinds


def empty_roles(program: Program) -> Roles:
    """No thread has begun."""
    return Roles(hash_table(ROLE_FIELDS, rows=MOST_STREAMS), kinds_of(program))


def functions_of(program: Program, roles: Roles) -> dict[int, str]:
    """By stream the name of the function that it began with, where that is known."""
    rows = used_rows(roles.rows)[1:]
    return {int(row["key"]): program.function_name(int(row["function"]) - 1) for row in rows if row["function"] > 0}


def roles_of(program: Program, roles: Roles, contexts: ContextTable | None) -> dict[int, dict[str, Any]]:
    """By stream what its thread is for: ``function`` (empty: not known), and the context where it was ``created``.

    That is None for the first thread, and where contexts are not told apart.
    """
    functions = functions_of(program, roles)
    named = {}
    for row in used_rows(roles.rows)[1:]:
        place = int(row["context"]) - 1
        known = contexts is not None and place >= 0
        made = contexts.describe(int(contexts.rows(np.array([place]))[0])) if contexts is not None and known else None
        named[int(row["key"])] = {"function": functions.get(int(row["key"]), ""), "created": made}
    return named
