"""Every file and every dotted name that documents, docstrings and comments mention exists."""

from __future__ import annotations

import ast
import re
import subprocess
import tokenize
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

import tracekit

ROOT = Path(tracekit.__file__).resolve().parents[1]

HISTORY = ("docs/notes/",)
"""Written once and not mended: they name files as they were."""

EXAMPLES = {
    # of programs that a reader might have
    "a.c", "after.c", "app.c", "app.cc", "b.c", "before.c",
    "insert.c", "lines.c", "list.c", "main.c", "main.cpp", "memory.c", "orders.c", "ring.c",
    "search.cc", "y.c",
    # of modules and scripts that a reader might write
    "FILE.py", "FORMAT.py", "NAME.py", "mine.py", "naive_NAME.py", "test_FORMAT.py", "test_NAME.py",
    # of what commands write
    "both.html", "report.html",
}  # fmt: skip
"""Names that stand for a reader's own files; of paths the last part counts."""

ELSEWHERE = {
    "aaccoder_twoloop.h", "aacpsy.c", "bignum.c", "catcache.c", "ffmpeg_opt.c",
    "adapt.c", "precond.c", "FIRST_MIN-OMP.cpp", "HJM_Securities.cpp",
    "HTContainer.h", "Solver.cc", "TDStretch.cpp", "bits/stl_algo.h", "bits/stl_vector.h", "common/trace_entry.h",
    "cpu_subroutines.cpp", "csf.c", "deflate.c", "dht_demosaic.cpp", "dynmat.c", "fasttree.c", "field_summary.f90",
    "inflate.c",
    "kautodiff.c", "kmeans.c", "libimagequant.c", "ljumptab.h",
    "mediancut.c", "misc_demosaic.cpp", "mpi.h", "mttkrp.c", "omp-tools.h", "open.cpp", "par_coarsen.c", "parse_date.c",
    "pcre2_match.c", "phono3py.c",
    "pthread.h", "pzfft1d.c",
    "raw2image.cpp", "solver.c", "sqlite3.c", "src/utils/open.cpp", "stdio.h", "stdlib.h", "stream.c", "string.h",
    "util/decode_packet_trace.py", "zfft1d.c",
}  # fmt: skip
"""Files of the system, of LLVM and of programs that benchmarks build."""

FILE = re.compile(r"(?<![\w./*:-])((?:[\w.*-]+/)*[\w.*-]*\w\.(?:py|c|cc|cpp|h|md|js|css|html|toml|f90))(?![\w/]|\.\w)")
NAME = re.compile(r"(?<![\w./-])(tracekit(?:\.\w+)+)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
URL = re.compile(r"https?://\S+")


@cache
def tracked() -> tuple[str, ...]:
    """The files of the repository."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(name for name in listed.stdout.splitlines() if (ROOT / name).is_file())


@cache
def is_file(word: str) -> bool:
    """Whether a file of the repository ends with this path; `word` may be a pattern."""
    word = word.removeprefix("./")
    return any(fnmatch(name, word) or fnmatch(name, f"*/{word}") for name in tracked())


def is_name(name: str) -> bool:
    """Whether a dotted name is a folder of Python files, a file of them, or something defined in one."""
    first, *parts = name.split(".")
    assert first == "tracekit"
    place = ROOT / "tracekit"
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    if parts and (place / f"{parts[0]}.py").is_file():
        return defines(place / f"{parts[0]}.py", tuple(parts[1:]))
    return defines(place / "__init__.py", tuple(parts))


@cache
def defines(file: Path, parts: tuple[str, ...]) -> bool:
    """Whether a file defines or imports the name; of a class, whether its body does."""
    body: list[ast.stmt] = ast.parse(file.read_text()).body
    for number, part in enumerate(parts):
        found = [statement for statement in flat(body) if part in names_of(statement)]
        if not found:
            return False
        if not isinstance(found[0], ast.ClassDef):
            return number == len(parts) - 1 or not isinstance(found[0], ast.FunctionDef)
        body = found[0].body
    return True


def flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, those under an `if` or `try` among them."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try)):
            yield from flat(statement.body)


def names_of(statement: ast.stmt) -> set[str]:
    """What a statement gives a name to."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name for alias in statement.names}
    if isinstance(statement, ast.Assign):
        return {node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return {statement.target.id}
    return set()


def prose_of_python(path: Path) -> str:
    """Docstrings, those of attributes too, and comments."""
    said = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            said.append(node.value.value)
    with tokenize.open(path) as file:
        said += [token.string for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.COMMENT]
    return "\n".join(said)


def prose_of_c(path: Path) -> str:
    """Comments."""
    return "\n".join(re.findall(r"/\*.*?\*/|//[^\n]*", path.read_text(), re.DOTALL))


def prose(name: str) -> str:
    """What a file says to its readers."""
    path = ROOT / name
    if name.endswith(".py"):
        text = prose_of_python(path)
    elif name.endswith(".md"):
        text = LINK.sub("]", path.read_text())
    else:
        text = prose_of_c(path)
    return URL.sub("", text)


def missing(name: str) -> list[str]:
    """The files and names that a file mentions and that there are not."""
    text = prose(name)
    # The blocks of a page that is executed are files of its own: ```python cache.py
    own = set(re.findall(r"^```\w+ (\S+)$", text, re.MULTILINE))
    allowed = EXAMPLES | ELSEWHERE | own
    words = {word for word in FILE.findall(text) if word not in allowed and Path(word).name not in EXAMPLES | own}
    # tracekit.render.html is a folder of code, not a page
    gone = [word for word in sorted(words) if not (is_file(word) or (NAME.fullmatch(word) and is_name(word)))]
    names = {word.rstrip(".") for word in NAME.findall(text)} - {
        f"tracekit.{end}" for end in ("c", "h", "py", "modules")
    }
    return gone + [word for word in sorted(names) if not is_name(word)]


SPEAKING = [
    name
    for name in tracked()
    if name.endswith((".py", ".md", ".c", ".h", ".cpp"))
    and not name.startswith(HISTORY)
    and name.split("/")[0] != "fixtures"
]


def test_what_is_mentioned_exists() -> None:
    gone = {name: words for name in SPEAKING if (words := missing(name))}
    assert not gone, "\n".join(f"{name}: {', '.join(words)}" for name, words in gone.items())


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and others make them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", [name for name in tracked() if name.endswith(".md")])
def test_links_lead_somewhere(name: str) -> None:
    """To a file or folder beside the page, and to a heading of it."""
    text = re.sub(r"^```.*?^```", "", (ROOT / name).read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in LINK.findall(text):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize(
    "text, gone",
    [
        ("see tracekit/nowhere.py", ["tracekit/nowhere.py"]),
        ("see `jit/kernel.py`, kernel.py and tests/naive/*.py", []),
        ("see nowhere.md (old).", ["nowhere.md"]),
        ("``tracekit.module.Module.state`` and tracekit.analyze", []),
        ("tracekit.module.Modul and tracekit.diff", ["tracekit.diff", "tracekit.module.Modul"]),
        ("your app.c and https://example.org/nothing.html", []),
    ],
)
def test_the_test_sees_what_is_gone(text: str, gone: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.prose", lambda name: URL.sub("", text))
    assert missing("any") == gone
