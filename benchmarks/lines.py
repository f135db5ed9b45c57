"""Lines of code of the modules beside those that PROMPT counts for its own (Tables 3 to 6).

    python benchmarks/lines.py

Counted as cloc does: no blank lines, comments or docstrings. *lines*: the file in analyzers/ alone. *with its kernels*:
and the files of tracekit/ that serve this module, or this one and its sisters (dependence, camp and lamp;
object_lifetime, points_to and privateer). What all share (shadow memory, maps, contexts, live objects) is tracekit's,
as PROMPT's backend is PROMPT's.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]

HISTORY = [
    "dependence/state",
    "dependence/result",
    "dependence/kernels/dependence",
    "dependence/kernels/load_history",
    "dependence/kernels/dependence_table",
    "dependence/kernels/executions",
]
"""What dependence, camp and lamp have in common."""

OBJECTS = ["objects/profile", "objects/module"]
"""What object_lifetime, points_to and privateer have in common."""

MODULES: list[tuple[str, list[str], int, str]] = [
    (
        "dependence",
        ["dependence/carried", "dependence/kernels/carried", "dependence/pairs", *HISTORY],
        136,
        "memory dependence, Table 6",
    ),
    ("value_pattern", ["program/values"], 69, "value pattern, Table 6"),
    ("object_lifetime", ["contexts/scopes", "contexts/kernels/scopes", *OBJECTS], 117, "object lifetime, Table 6"),
    ("points_to", OBJECTS, 248, "points-to, Table 6"),
    ("perspective", [], 570, "all four of Table 6"),
    ("privateer", OBJECTS, 1505, "Privateer, Table 4"),
    ("lamp", ["verdicts/module", *HISTORY], 911, "LAMP, Table 3"),
]
"""Module, the files of tracekit/, PROMPT's lines, where they stand. PROMPT's dependence module is flow alone."""


def code_lines(path: Path) -> int:
    """Lines with code: neither blank, nor comment, nor docstring."""
    text = path.read_text(encoding="utf-8")
    lines = {
        row
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type
        not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
        for row in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        for inner in getattr(node, "body", []) if not isinstance(node, (ast.Lambda, ast.IfExp)) else []:
            if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant):
                lines -= set(range(inner.lineno, (inner.end_lineno or inner.lineno) + 1))
    return len(lines)


def main() -> None:
    """Print the table."""
    print("| module | lines | with its kernels | PROMPT | |\n|---|---|---|---|---|")
    for name, own, theirs, where in MODULES:
        alone = code_lines(ROOT / "analyzers" / f"{name}.py")
        whole = alone + sum(code_lines(ROOT / "tracekit" / f"{file}.py") for file in own)
        if name == "perspective":
            whole = alone + sum(code_lines(ROOT / "analyzers" / f"{each[0]}.py") for each in MODULES[:4])
        print(f"| {name} | {alone} | {whole} | {theirs} | {where} |")


if __name__ == "__main__":
    main()
