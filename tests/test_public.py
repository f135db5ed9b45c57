"""What is public: documented, importable as such, and enough for those who write modules and renderers."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tracekit

ROOT = Path(tracekit.__file__).resolve().parents[1]
PUBLIC = ("tracekit", "tracekit.module", "tracekit.render", "tracekit.render.html")
API = (ROOT / "docs/python-api.md").read_text()
BLOCK = re.compile(r"^```(?:python|pycon)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def file_of(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def definition(module: str, name: str) -> tuple[ast.Module, int]:
    """The parsed file that defines a name of a module, and the index of the statement; imports are followed."""
    tree = ast.parse(file_of(module).read_text())
    for number, statement in enumerate(tree.body):
        if isinstance(statement, ast.ImportFrom) and statement.module and statement.module.startswith("tracekit"):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    inner = f"{statement.module}.{alias.name}"
                    if file_of(inner).exists():
                        return ast.parse(file_of(inner).read_text()), -1
                    return definition(statement.module, alias.name)
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if getattr(statement, "name", None) == name or any(
            isinstance(node, ast.Name) and node.id == name for target in targets if target for node in ast.walk(target)
        ):
            return tree, number
    raise AssertionError(f"{module} does not define {name}")


def documentation(module: str, name: str) -> str | None:
    tree, number = definition(module, name)
    if number < 0:
        return ast.get_docstring(tree)
    statement = tree.body[number]
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return ast.get_docstring(statement)
    following = tree.body[number + 1] if number + 1 < len(tree.body) else None
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        return str(following.value.value)
    return None


def names() -> Iterator[tuple[str, str]]:
    for module in PUBLIC:
        for name in importlib.import_module(module).__all__:
            yield module, name


@pytest.mark.parametrize(("module", "name"), list(names()))
def test_every_public_name_is_documented(module: str, name: str) -> None:
    assert documentation(module, name), f"{module}.{name} has no docstring where it is defined"
    assert re.search(rf"`{name}`", API), f"docs/python-api.md does not mention {name}"


def imported(source: str) -> set[str]:
    """The modules of tracekit that a source imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            exported = getattr(sys.modules.get(node.module), "__all__", None)
            for alias in node.names:  # a name that is not public counts as an import of its own
                hidden = node.module in PUBLIC and exported is not None and alias.name not in exported
                found.add(f"{node.module}.{alias.name}" if hidden else node.module)
    return {name for name in found if name.partition(".")[0] == "tracekit"}


def code(page: str) -> str:
    """All Python of a page, whether it is a block of code or typed at a prompt."""
    lines = []
    for block in BLOCK.findall(page):
        prompted = [line[4:] for line in block.splitlines() if line.startswith((">>> ", "... "))]
        lines += [line for line in prompted or block.splitlines() if re.match(r"(from|import) ", line)]
    return "\n".join(lines)


def sources() -> dict[str, str]:
    """Everything written for authors, and by them."""
    files = [*(ROOT / "tests/packaging/external").glob("*.py"), *(ROOT / "tracekit/template").glob("*template_name.py")]
    found = {str(path.relative_to(ROOT)): path.read_text() for path in files}
    return found | {page: code((ROOT / page).read_text()) for page in ("docs/writing-modules.md", "docs/python-api.md")}


@pytest.mark.parametrize("where", sources())
def test_authors_import_what_is_public_and_nothing_else(where: str) -> None:
    for module in PUBLIC:
        importlib.import_module(module)
    found = imported(sources()[where].replace("tracekit.template.", ""))
    below = {name for name in found if name not in PUBLIC}
    assert not below
    assert found


def test_the_check_of_imports_sees_what_is_hidden() -> None:

    assert imported("from tracekit.module import maps, np") == {"tracekit.module", "tracekit.module.np"}
    assert imported("def f():\n    import tracekit.replay.engine") == {"tracekit.replay.engine"}


def test_importing_what_authors_need_imports_no_numba() -> None:
    program = "import sys, tracekit.module, tracekit.render.html; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_importing_tracekit_imports_next_to_nothing() -> None:
    program = "import sys, tracekit; print(*sorted(name for name in sys.modules if name.startswith('tracekit')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"tracekit", "tracekit.formats", "tracekit.formats.errors", "tracekit.version"}
