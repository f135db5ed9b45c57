"""Streams of libstdc++: what they read and write of the program's memory, and what a trace says of it."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.programs.running import compile_program, record
from tracekit.api import analyze
from tracekit.formats.library_functions import STREAMS
from tracekit.recorder.toolchain import RUNTIME_SOURCES, find_clang

SOURCE = Path(RUNTIME_SOURCES) / "interceptors_streams.c"
LINKED = [["-O0"], ["-O2"], ["-O2", "-static"]]

READS = r"""#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
static int found;
__attribute__((noinline)) static void count() { found++; }
template <class T> static void look(const T *block, int at, T wanted) { if (block[at] == wanted) count(); }
int main(int argc, char **argv) {
    // What indirect calls write, as that of what(), and one that the first std::endl makes, nobody knows.
    try {
        throw std::runtime_error(std::string(40, 's'));
    } catch (std::exception &error) { look(error.what(), 2, 's'); }
    std::cout << std::endl;
    std::istringstream in("12 2.5 word x some more of the text\nline\nlast line of all, which is long enough\n");
    int *number = (int *)operator new(2 * sizeof(int));
    double *real = (double *)operator new(2 * sizeof(double));
    char *text = (char *)operator new(64);
    std::string *word = new std::string;
    in >> *number >> *real >> *word >> text[0];
    look(number, 0, 12), look(real, 0, 2.5), look(text, 0, 'x');
    in.get(text[1]), in.get(text + 2, 8), in.read(text + 10, 4), in.getline(text + 20, 30);
    look(text, 1, ' '), look(text, 2, 's'), look(text, 8, 'e'), look(text, 10, ' '), look(text, 13, 't');
    look(text, 20, 'h'), look(text, 20 + (int)in.gcount() - 1, '\0');
    std::getline(in, *word);
    if (*word == "line") count();
    std::getline(in, *word);
    if ((*word)[word->size() - 1] == 'h') count();
    std::ostringstream out;
    for (int k = 0; k < 900; k++) out.put('a' + k % 7);
    out << *word << ' ' << *number << "\n";
    out.write(text, 8);
    std::string made = out.str();
    for (unsigned k = 0; k < made.size(); k++) look(&made[0], k, 'c');
    std::ofstream file(argv[1]);
    file << made << std::endl;
    file.close();
    std::ifstream again(argv[1]);
    while (std::getline(again, made)) if (made.size() && made[made.size() / 2] == 'd') count();
    try {
        again.exceptions(std::ios::failbit);
        again.read(text + 50, 1);
    } catch (std::ios_base::failure &) { count(); }
    int *bare = (int *)operator new(2 * sizeof(int));
    std::cout << found << " " << *word << std::endl;
    look(bare, 1, 7), look(number, 1, 7), look(text, 51, 'x'); // these were not written
    operator delete(bare), operator delete(number), operator delete(real), operator delete(text);
    delete word;
}
"""


@pytest.mark.parametrize("flags", LINKED, ids=" ".join)
def test_what_streams_write_is_written_and_all_else_is_not(flags: list[str], tmp_path: Path) -> None:
    source = tmp_path / "app.cpp"
    source.write_text(READS)
    app = compile_program([source], tmp_path / "app", ["-g", *flags], instrumented=True)
    made = record(app, [tmp_path / "file"])
    assert made.outcome.stdout.startswith(b"\n140 last line") and made.outcome.status == 0, made.outcome.stdout
    result = analyze(made.trace, "memory_errors", jobs=1).result
    assert sorted(row["object_size"] for row in result["errors"]) == [8, 8, 64]
    assert {row["kind"] for row in result["errors"]} == {"unwritten_read"}
    assert result["summary"]["undecided"]["unknown_effects"] == 0


CALLED_BACK = r"""#include <cstdio>
#include <sstream>
#include <string>
void (std::string::*volatile reserving)(size_t) = &std::string::reserve; // which the library calls then, too
int main() {
    std::string other;
    (other.*reserving)(600);
    std::ostringstream out;
    for (int i = 0; i < 2000; i++) out.put('a' + i % 7);
    std::string text = out.str();
    int found = 0;
    for (unsigned i = 0; i < text.size(); i++) if (text[i] == 'b') found++;
    printf("%d", found);
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_a_library_writes_into_what_the_program_allocates_for_it(level: str, tmp_path: Path) -> None:
    """A string stream has the program's `reserve` make its buffer, and puts characters there itself."""
    source = tmp_path / "app.cpp"
    source.write_text(CALLED_BACK)
    made = record(compile_program([source], tmp_path / "app", ["-g", level], instrumented=True))
    assert made.outcome.stdout == b"286"
    result = analyze(made.trace, "memory_errors", jobs=1).result
    assert result["errors"] == []


LEFT = r"""#include <climits>
#include <cstdio>
#include <iostream>
#include <sstream>
struct Counter : std::streambuf { // looks at none of the characters
    long total = 0;
    std::streamsize xsputn(const char *, std::streamsize size) override { total += size > 99 ? 1 : size; return size; }
};
static int found;
template <class T> __attribute__((noinline)) static void look(const T *block, int at, T wanted) {
    if (block[at] == wanted) found++;
}
int main() {
    Counter counter;
    std::ostream out(&counter);
    char *text = (char *)operator new(16);
    out.write(text, 40).write(nullptr, LONG_MAX);
    out.setstate(std::ios::failbit);
    std::ostringstream failed;
    failed.setstate(std::ios::failbit);
    failed.write(text, 40);
    std::istringstream in("x"), none(" "), thrower("y");
    int *number = (int *)operator new(5 * sizeof(int));
    number[2] = 5;
    in >> number[0]; // 0, since there is no number
    none >> number[1]; // nothing, since there is no text
    none.clear(), none >> number[2];
    look(number, 0, 0), look(number, 2, 5);
    try {
        thrower.exceptions(std::ios::failbit);
        thrower.read(text, 16);
    } catch (std::ios_base::failure &) { found++; }
    snprintf(text, 16, "%d%d%d%d%d", 1, 2, 3, 4, number[2]);
    look(text, 4, '5');
    printf("%d %ld\n", found, counter.total);
    look(number, 1, 7); // which was not written
    operator delete(text), operator delete(number);
}
"""


@pytest.mark.parametrize("flags", LINKED[:2], ids=" ".join)
def test_what_streams_leave_alone(flags: list[str], tmp_path: Path) -> None:
    """A buffer of the program's, a stream that is at fault, one that ends in front of a number, and one that throws."""
    source = tmp_path / "app.cpp"
    source.write_text(LEFT)
    made = record(compile_program([source], tmp_path / "app", ["-g", *flags], instrumented=True))
    assert made.outcome.stdout == b"4 41\n" and made.outcome.status == 0, made.outcome.stdout
    result = analyze(made.trace, "memory_errors", jobs=1).result
    assert [(row["kind"], row["object_size"], row["offset"]) for row in result["errors"]] == [("unwritten_read", 20, 4)]


WRONG = r"""#include <iostream>
#include <sstream>
#include <string>
int main(int argc, char **argv) {
    char *block = (char *)operator new(20);
    for (int k = 0; k < 20; k++) block[k] = 'a' + k;
    std::ostringstream out;
    std::cout.write(block, 20);
    std::cout.write(block + 1, 20); // one behind
    out.write(block + 2, 20); // two
    std::string *word = new std::string("a word that is too long to be in the object itself");
    const char *text = word->c_str();
    delete word;
    out << text; // of a block that was freed
    operator delete(block);
}
"""


@pytest.mark.parametrize("flags", LINKED, ids=" ".join)
def test_errors_in_what_is_printed(flags: list[str], tmp_path: Path) -> None:
    source = tmp_path / "app.cpp"
    source.write_text(WRONG)
    app = compile_program([source], tmp_path / "app", ["-g", *flags], instrumented=True)
    result = analyze(record(app).trace, "memory_errors", jobs=1).result
    errors = [(row["kind"], place_of(row["instruction"]), row["count"], row["size"]) for row in result["errors"]]
    assert [error for error in errors if error[1] != 14] == [
        ("read_out_of_bounds", 9, 1, 20),
        ("read_out_of_bounds", 10, 1, 20),
    ]
    assert {error[0] for error in errors if error[1] == 14} == {"read_after_free"}


def place_of(instruction: Any) -> int:
    """The line of the program, in which a header's code may have been inlined."""
    return int([instruction, *instruction.get("inlined_at", [])][-1]["line"])


SIZES = "#include <fstream>\n#include <sstream>\n#include <stdexcept>\n" + "".join(
    f'static_assert(sizeof(std::{name}) == {size}, "");\n'
    for name, size in re.findall(r"^WRAP_(?:STRING|FILE)_STREAM\(\d+basic_(\w+), (\d+)\)", SOURCE.read_text(), re.M)
)


def test_streams_are_as_large_as_they_are_said_to_be(tmp_path: Path) -> None:
    assert SIZES.count("static_assert") == 6
    (tmp_path / "sizes.cpp").write_text(SIZES + 'static_assert(sizeof(std::runtime_error) == 16, "");\n')
    done = subprocess.run(
        [find_clang().path, "-fsyntax-only", "sizes.cpp"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_list_is_what_the_runtime_records(tmp_path: Path) -> None:
    """And libstdc++ has each of them."""
    command = [find_clang().path, "-E", "-P", str(SOURCE), "-I", str(RUNTIME_SOURCES)]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    assert set(re.findall(r"\b(_Z\w+) ?\(", text)) == set(STREAMS) and len(STREAMS) == len(set(STREAMS))
    library = ctypes.CDLL("libstdc++.so.6")
    for name in STREAMS:
        assert getattr(library, name), name
