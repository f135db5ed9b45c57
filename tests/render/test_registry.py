"""How a module's file names what shows its profiles, and what happens where that goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tracekit.formats.errors import TracekitError
from tracekit.modules import registry
from tracekit.modules.display import Display
from tracekit.render.registry import as_text
from tracekit.render.text import Style

PLAIN = Style(colour=False)


def report(module: str, rows: list[Any]) -> dict[str, Any]:
    return {"tracekit": "0", "module": module, "trace": "ab", "options": {}, "result": {"rows": rows}}


ROWS = [{"name": "few", "times": 1}, {"name": "many", "times": 9}]


def declared(folder: Path, declaration: str, more: str = "") -> str:
    """A module's file with a declaration; it cannot be run, only read."""
    path = folder / "odd.py"
    path.write_text(f'"""Odd."""\n\nraise SystemExit("read, not run")\n{more}\n{declaration}\n')
    return str(path)


def test_rows_are_in_the_order_that_the_module_names(tmp_path: Path) -> None:
    display = registry.display(declared(tmp_path, 'DISPLAY = Display(greatest="times")'), files=True)
    assert display == Display(greatest="times")
    lines = as_text(report("odd", ROWS), {}, 0, PLAIN, display).splitlines()
    assert [line.split()[0] for line in lines[-2:]] == ["many", "few"]


def test_what_is_not_installed_is_shown_as_any_module() -> None:
    lines = as_text(report("nowhere", ROWS), {}, 0, PLAIN).splitlines()
    assert [line.split()[0] for line in lines[-2:]] == ["few", "many"]


def test_a_profile_cannot_name_a_file_to_be_read(tmp_path: Path) -> None:
    path = declared(tmp_path, 'DISPLAY = Display(text=":text")')
    assert registry.display(path) == Display()
    assert as_text(report(path, ROWS), {}, 0, PLAIN).startswith(path)


@pytest.mark.parametrize(
    ("declaration", "reason"),
    [
        ('DISPLAY = Display(txt="a:b")', "unexpected keyword argument 'txt'"),
        ('DISPLAY = Display("a:b")', "named arguments"),
        ("DISPLAY = [Display()]", "it is Display(...) with named arguments"),
        ("DISPLAY = Display(text=NAME)", "its arguments are literals"),
        ('DISPLAY = Display(text="no reference")', "text is a reference as package.file:function, not 'no reference'"),
        ('DISPLAY: object = Display(notes="tunes")', "notes is one of accesses, loops, not 'tunes'"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_a_sentence_with_its_line(
    declaration: str, reason: str, tmp_path: Path
) -> None:
    path = declared(tmp_path, declaration)
    with pytest.raises(TracekitError) as caught:
        registry.display(path, files=True)
    assert f"DISPLAY in {path}, line 5" in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("odd_display:fails", "KeyError: 'nothing' (.*odd_display.py, line 2: return report"),
        ("odd_display:missing", "odd_display:missing does not load: module 'odd_display' has no attribute 'missing'"),
        ("odd_display:CONSTANT", "odd_display:CONSTANT is no function"),
        ("no_such_file:text", "no_such_file:text does not load: No module named 'no_such_file'"),
    ],
)
def test_a_renderer_that_fails_is_a_sentence(
    reference: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd_display.py").write_text(
        "def fails(report, facts, limit, style):\n    return report['nothing']\n\n\nCONSTANT = 1\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "odd_display", raising=False)
    with pytest.raises(TracekitError) as caught:
        as_text(report("odd", ROWS), {}, 0, PLAIN, Display(text=reference))
    beginning, _, end = sentence.partition("(.*")
    assert str(caught.value).startswith(f"Module 'odd' cannot be shown: {beginning}")
    assert end in str(caught.value)


def test_a_file_has_its_text_in_itself(tmp_path: Path) -> None:
    path = tmp_path / "shouting.py"
    path.write_text(
        '"""Shouts."""\n'
        "from tracekit.module import Display, Module\n\n\n"
        "class Shouting(Module):\n    pass\n\n\n"
        "def text(report, facts, limit, style):\n    return report['module'].upper() + '\\n'\n\n\n"
        'DISPLAY = Display(text=":text")\nMODULE = Shouting\n'
    )
    registry.load(str(path))
    assert as_text(report("shouting", ROWS), {}, 0, PLAIN, registry.display(str(path), files=True)) == "SHOUTING\n"


def test_printing_a_profile_imports_its_renderer_and_neither_modules_nor_numba() -> None:
    program = (
        "import json, sys\n"
        "from tracekit.render.registry import as_text\n"
        "from tracekit.render.text import Style\n"
        "report = json.loads(sys.argv[1])\n"
        "print(as_text(report, {}, 0, Style(False)))\n"
        "print(sorted(name for name in sys.modules if name.startswith(('tracekit.render.', 'tracekit.analyzers'))))\n"
        "assert not {'numba', 'numpy'} & set(sys.modules)"
    )
    empty = report("value_pattern", [])
    empty["result"] = {"instructions": []}
    done = subprocess.run([sys.executable, "-c", program, json.dumps(empty)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    imported = done.stdout.splitlines()[-1]
    assert "tracekit.render.objects" in imported
    assert "tracekit.render.advise" not in imported and "analyzers" not in imported


def test_every_reference_of_ours_is_a_function() -> None:
    from tracekit.modules.display import REFERENCES
    from tracekit.render.registry import _resolved

    displays = registry.displays()
    references = [(name, getattr(display, field)) for name, display in displays.items() for field in REFERENCES]
    found = [_resolved(name, reference) for name, reference in references if reference]
    assert len(found) > 10
    assert [name for name, display in displays.items() if display.on_page] == [
        "camp",
        "heatmap",
        "accesses",
        "object_lifetime",
    ]


def test_numbers_in_percent_say_so() -> None:
    shown = {"summary": {"captured": 46.5, "accesses": 42_000, "whole": None}, "rows": [{"captured": 46.5}]}
    display = Display(percent="captured whole")
    lines = as_text({**report("odd", []), "result": shown}, {}, 0, PLAIN, display).splitlines()
    assert "captured  46.5%" in lines and "accesses  42,000" in lines and "whole     -" in lines
    assert lines[-1].strip() == "46.5"  # a column has its unit in its name
