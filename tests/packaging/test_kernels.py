"""Kernels take arrays and scalars only: they know of nothing that is not compiled."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import tracekit

ROOT = Path(tracekit.__file__).parent
ALLOWED = re.compile(r"tracekit\.(\w+\.)*kernels(\.|$)|tracekit\.(jit|formats)(\.|$)|tracekit\.containers\.maps$")
"""Maps are compiled, too, and authors of callbacks import them by this name."""


@pytest.mark.parametrize("path", sorted(ROOT.glob("*/kernels/*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_kernels_import_only_kernels_jit_and_formats(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {
        f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if node.module == "tracekit.containers"
    }
    imported -= {"tracekit.containers"}
    ours = {name for name in imported if name.split(".")[0] == "tracekit"}
    assert {name for name in ours if not ALLOWED.match(name)} == set()
