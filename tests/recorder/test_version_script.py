"""Version scripts that hide everything must leave the runtime's state exported."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tracekit.recorder.version_script import add_global, export_state

SCRIPTS = [
    "{ global: f; local: *; };",
    "{ f; };",
    "{ local: *; };",
    "/* { not this } */ V1 { # nor { this\n global: f;\n local: *; };\n V2 { global: g; } V1;",
    'V1 { global: extern "C" { f; }; local: *; };',
    "V1 { };",
]


@pytest.fixture(params=SCRIPTS)
def script(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "script.map"
    path.write_text(request.param)
    return path


def test_the_linker_keeps_the_symbol(script: Path, tmp_path: Path) -> None:
    source = tmp_path / "lib.c"
    source.write_text(
        "int __tk_state, __tk_activations, hidden; int f(void) { return hidden; } int g(void) { return 1; }"
    )

    def exported(*options: str) -> set[str]:
        library = tmp_path / "lib.so"
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library, *options], check=True)
        symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
        return {line.split()[-1].partition("@")[0] for line in symbols.stdout.splitlines()}

    before = exported(f"-Wl,--version-script={script}")
    after = exported(*export_state([f"-Wl,--version-script={script}"]))
    assert after == before | {"__tk_state", "__tk_activations"}


@pytest.mark.parametrize(
    "words",
    [
        ["-Wl,--version-script=S"],
        ["-Wl,-soname,x,--version-script,S,-z,now"],
        ["-Wl,-version-script", "-Wl,S"],
        ["-Xlinker", "--version-script=S"],
        ["-Xlinker", "--version-script", "-Xlinker", "S"],
    ],
)
def test_every_way_to_name_it(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "script.map"
    path.write_text(SCRIPTS[0])
    given = [word.replace("S", str(path)) for word in words]
    result = export_state(given)
    (copy,) = (tmp_path / "cache/tracekit").iterdir()
    assert [word.replace(str(copy), str(path)) for word in result] == given
    assert str(copy) in ",".join(result)
    assert copy.read_text() == add_global(SCRIPTS[0], "__tk_state; __tk_activations")


def test_what_is_not_for_the_linker_stays() -> None:
    words = ["--version-script=x", "-o", "-Wl,-z,now", "a.o", "-Wl,--version-script=/no/such/file"]
    assert export_state(words) == words
