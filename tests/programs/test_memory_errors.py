"""fixtures/memory_errors: the errors that are there, none that is not, and memcheck on the same programs."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tracekit
from tests.needs import needs
from tests.programs.running import FIXTURES, compile_program, record, run_here
from tracekit.formats import library_functions

FOLDER = FIXTURES / "memory_errors"
SOURCES = sorted(path for path in FOLDER.iterdir() if path.suffix in (".c", ".cpp"))
LIBRARIES = ("-pthread", "-lm")

Found = set[tuple[int, str]]
"""Line, kind of error."""


def said(source: Path, *words: str) -> Found:
    """The errors that the comments of a fixture tell of; `words`: ERROR, OURS, MEMCHECK, SUM."""
    lines = enumerate(source.read_text().splitlines(), 1)
    return {
        (number, kind) for number, line in lines for word, kind in re.findall(r"(\w+) (\w+_\w+)", line) if word in words
    }


def analysed(source: Path, folder: Path, level: str) -> Any:
    program = compile_program([source], folder / "app", ["-g", level, *LIBRARIES], instrumented=True)
    return tracekit.analyze(record(program).trace, "memory_errors", 1).result


def errors_in(result: Any) -> Found:
    return {(row["instruction"]["line"], row["kind"]) for row in result["errors"]}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_the_errors_of_each_line(source: Path, tmp_path: Path) -> None:
    """ERROR: of both tools, OURS, MEMCHECK: of one; SUM: of optimised code."""
    result = analysed(source, tmp_path, "-O0")
    assert errors_in(result) == said(source, "ERROR", "OURS")
    assert result["summary"]["ended"]


OWN_MALLOC = """
    #include <stddef.h>
    static _Alignas(16) char heap[1 << 16];
    static size_t used;
    void *malloc(size_t size) { void *block = heap + used; used += (size + 15) / 16 * 16; %s return block; }
    void free(void *block) { (void)block; }
    int main(void) { char *volatile block = malloc(8); block[1] = 1; free(block); return block[1]; }
"""


def test_a_malloc_of_the_program_has_blocks(tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text(OWN_MALLOC % "")
    program = compile_program([tmp_path / "app.c"], tmp_path / "app", ["-g", "-O0"], instrumented=True)
    result = tracekit.analyze(record(program).trace, "memory_errors", 1).result
    assert [(row["kind"], row["object"]["kind"]) for row in result["errors"]] == [("read_after_free", "heap")]
    assert not result["summary"]["own_malloc"]


def test_a_malloc_of_the_program_that_cannot_be_surrounded_has_none(tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text(OWN_MALLOC % "static void *volatile at; at = &&here; goto *at; here:")
    program = compile_program([tmp_path / "app.c"], tmp_path / "app", ["-g", "-O0"], instrumented=True)
    trace = record(program).trace
    assert tracekit.analyze(trace, "memory_errors", 1).result["summary"]["own_malloc"]
    text = run_here("analyze", "-m", "memory_errors", trace).stdout.decode()
    assert "no error" in text and "the program defines malloc itself" in text and "no heap block was left" not in text


@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3"])
def test_what_looks_like_an_error_is_none_in_optimised_code(level: str, tmp_path: Path) -> None:
    result = analysed(FOLDER / "clean.c", tmp_path, level)
    assert result["errors"] == []
    assert result["summary"]["undecided"]["unknown_effects"] > 0


def test_a_sum_of_what_was_not_written_is_told_where_it_is_loaded(tmp_path: Path) -> None:
    source = FOLDER / "unwritten.c"
    assert said(source, "SUM") <= errors_in(analysed(source, tmp_path, "-O1"))


ANOTHER_NAME = """
    struct Counter { Counter(int *); ~Counter(); int *at; };
    #ifdef MAIN
    int main() {
        int *block = new int[2];
        { Counter counter(block); }
        if (block[1]) return 3;
        delete[] block;
    }
    #else
    Counter::Counter(int *at) : at(at) { *at = 1; }
    Counter::~Counter() { ++*at; }
    #endif
"""


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
def test_a_constructor_by_another_name_is_the_programs(level: str, tmp_path: Path) -> None:
    """Where it is defined, clang makes that of whole objects, which others call, a second name of that of bases."""
    (tmp_path / "main.cpp").write_text("#define MAIN" + ANOTHER_NAME)
    (tmp_path / "counter.cpp").write_text(ANOTHER_NAME)
    sources = [tmp_path / "main.cpp", tmp_path / "counter.cpp"]
    trace = record(compile_program(sources, tmp_path / "app", ["-g", level], instrumented=True)).trace
    result = tracekit.analyze(trace, "memory_errors", 1).result
    assert [row["kind"] for row in result["errors"]] == ["unwritten_read"]


USED_AGAIN = """
    #include <stdlib.h>
    int main(void) {
        char *volatile block = malloc(64);
        free(block);
        block = malloc(59);
        block[59] = 1;
        int last = *(int *)(block + 56);
        free(block);
        return last == 1;
    }
"""


def test_behind_a_block_is_what_was_another_blocks_before(tmp_path: Path) -> None:
    """The error is to pass the end of the block that lives, whatever was freed there, as memcheck says."""
    (tmp_path / "app.c").write_text(USED_AGAIN)
    program = compile_program([tmp_path / "app.c"], tmp_path / "app", ["-g", "-O0"], instrumented=True)
    errors = tracekit.analyze(record(program).trace, "memory_errors", 1).result["errors"]
    found = [(row["kind"], row["offset"], row["object_size"]) for row in errors]
    assert found == [("read_out_of_bounds", 56, 59), ("write_out_of_bounds", 59, 59)]


ASKS_FOR_A_SIZE = """
    #include <stdlib.h>
    #include <sys/stat.h>
    static struct stat file;
    int main(void) { char *volatile block = malloc(8); fstat(0, &file); if (block[1]) abort(); }
"""


def test_what_an_older_recorder_did_not_record_may_have_been_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fstat, which 0.1.0 did not know: there it may have written the block."""
    (tmp_path / "app.c").write_text(ASKS_FOR_A_SIZE)
    trace = record(compile_program([tmp_path / "app.c"], tmp_path / "app", ["-g", "-O0"], instrumented=True)).trace
    result = tracekit.analyze(trace, "memory_errors", 1).result
    assert [row["kind"] for row in result["errors"]] == ["unwritten_read"]
    monkeypatch.setattr(library_functions, "KEY", "not there, as in a trace of 0.1.0")
    result = tracekit.analyze(trace, "memory_errors", 1).result
    assert result["errors"] == [] and result["summary"]["undecided"]["unknown_effects"] == 1


ASKS_THE_SYSTEM = """
    #include <poll.h>
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/select.h>
    #include <sys/socket.h>
    #include <sys/wait.h>
    #include <unistd.h>
    #include <wchar.h>
    int main(void)
    {
        int *unwritten = malloc(sizeof *unwritten), *status = malloc(sizeof *status), *ends = malloc(2 * sizeof *ends);
        struct pollfd *files = malloc(sizeof *files);
        wchar_t *wide = malloc(9 * sizeof *wide);
        mbstate_t *state = calloc(1, sizeof *state);
        sigset_t *set = malloc(sizeof *set);
        socklen_t *length = malloc(sizeof *length);
        int *value = malloc(sizeof *value);
        pid_t child = fork();
        if (child == 0)
            _exit(3);
        if (waitpid(child, status, 0) != child || !WIFEXITED(*status) || WEXITSTATUS(*status) != 3)
            puts("status");
        if (pipe(ends) || write(ends[1], "x", 1) != 1)
            puts("pipe");
        files->fd = ends[0];
        files->events = POLLIN;
        if (poll(files, 1, 0) != 1 || !(files->revents & POLLIN))
            puts("poll");
        if (mbrtowc(wide, "x", 1, state) != 1 || wide[0] != 'x' || mbstowcs(wide, "abc", 9) != 3 || wide[2] != 'c')
            puts("wide");
        sigemptyset(set);
        if (sigprocmask(SIG_BLOCK, NULL, set) || sigismember(set, SIGINT))
            puts("signals");
        *length = sizeof *value;
        if (getsockopt(socket(AF_INET, SOCK_STREAM, 0), SOL_SOCKET, SO_TYPE, value, length) || *value != SOCK_STREAM)
            puts("socket");
        if (*unwritten == 7)
            puts("seven");
        return 0;
    }
"""


@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_what_the_system_and_conversions_write_is_known(level: str, tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text(ASKS_THE_SYSTEM)
    result = analysed(tmp_path / "app.c", tmp_path, level)
    line = next(number for number, text in enumerate(ASKS_THE_SYSTEM.splitlines(), 1) if "*unwritten ==" in text)
    assert errors_in(result) == {(line, "unwritten_read")}
    assert not any(result["summary"]["undecided"].values())


WAITS_FOR_A_THREAD = """
    #include <pthread.h>
    #include <stdio.h>
    #include <stdlib.h>
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
    static int is_done;
    static void *run(void *given)
    {
        pthread_mutex_lock(&lock);
        is_done = 1;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
        return given;
    }
    int main(void)
    {
        int *unwritten = malloc(sizeof *unwritten);
        pthread_t *handle = malloc(sizeof *handle);
        void **result = malloc(sizeof *result);
        if (pthread_create(handle, NULL, run, unwritten) || *handle == 0)
            puts("handle");
        pthread_mutex_lock(&lock);
        while (!is_done)
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        if (pthread_join(*handle, result) || *result != unwritten)
            puts("result");
        if (*unwritten == 7)
            puts("seven");
        return 0;
    }
"""


@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_what_threads_are_made_and_waited_for_with_is_known(level: str, tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text(WAITS_FOR_A_THREAD)
    result = analysed(tmp_path / "app.c", tmp_path, level)
    line = next(number for number, text in enumerate(WAITS_FOR_A_THREAD.splitlines(), 1) if "*unwritten ==" in text)
    assert errors_in(result) == {(line, "unwritten_read")}
    assert not any(result["summary"]["undecided"].values())


HANDED_OVER = """
    #include <pthread.h>
    #include <stdatomic.h>
    #include <stdlib.h>
    static _Atomic(int *) given;
    static atomic_int done;
    static int sum;
    static void *take(void *unused)
    {
        for (int i = 0; i < 200; i++) {
            int *block;
            while ((block = atomic_exchange(&given, NULL)) == NULL)
                continue;
            sum += *block;
            free(block);
            atomic_fetch_add(&done, 1);
            if (i == 199)
                sum += *block; /* freed */
        }
        return unused;
    }
    int main(void)
    {
        pthread_t thread;
        pthread_create(&thread, NULL, take, NULL);
        for (int i = 0; i < 200; i++) {
            int *block = malloc(sizeof *block);
            *block = i;
            atomic_store(&given, block);
            while (atomic_load(&done) <= i)
                continue;
        }
        pthread_join(thread, NULL);
        return sum == 0;
    }"""


@pytest.mark.parametrize("options", [[], ["--threads"]])
def test_atomic_operations_have_an_order_if_they_are_recorded(options: list[str], tmp_path: Path) -> None:
    """Then an error behind them is one; else it is not decided."""
    source = tmp_path / "handed.c"
    source.write_text(HANDED_OVER)
    program = compile_program([source], tmp_path / "app", ["-g", "-O0", *options, *LIBRARIES], instrumented=True)
    result = tracekit.analyze(record(program).trace, "memory_errors", 1).result
    line = next(number for number, text in enumerate(HANDED_OVER.splitlines(), 1) if "freed" in text)
    assert errors_in(result) == ({(line, "read_after_free")} if options else set())
    assert (result["summary"]["undecided"]["unknown_order"] == 0) == bool(options)


def test_leaks_have_the_context_that_allocated_them(tmp_path: Path) -> None:
    result = analysed(FOLDER / "leaks.c", tmp_path, "-O0")
    rows = [row for row in result["leaks"] if row["allocated_by"] == "program"]
    assert [(row["blocks"], row["bytes"]) for row in rows] == [(5, 60), (1, 400)]
    assert any("loop" in step for step in rows[0]["object"]["context"]["path"])


OF_THE_C_LIBRARY = [
    'error(0, 2, "told")',
    'mbstowcs(wide, "told", 5)',
    "ctime(&then)",
    "gmtime(&then)",
    "gmtime_r(&then, &parts)",
    "timegm(&parts)",
    "ctime_r(&then, text)",
]


@pytest.mark.parametrize("call", OF_THE_C_LIBRARY)
def test_what_the_c_library_keeps_is_its_own(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")  # in which the library looks for translations, and converts
    source = tmp_path / "told.c"
    source.write_text(
        "#include <error.h>\n#include <locale.h>\n#include <stdlib.h>\n#include <time.h>\n"
        "wchar_t wide[5]; char text[40]; time_t then; struct tm parts;\n"
        f'int main(void) {{ setlocale(LC_ALL, ""); {call}; return 0; }}\n'
    )
    assert analysed(source, tmp_path, "-O0")["leaks"] == []


@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_the_buffers_behind_the_streams_of_c_plus_plus_are_the_c_library_s(level: str, tmp_path: Path) -> None:
    source = tmp_path / "streams.cpp"
    source.write_text("""
#include <iostream>
#include <sstream>
#include <string>
int main()
{
    int number;
    std::string word;
    std::cin >> number >> word;
    std::cout << number << word << std::endl;
    std::cout << 5 << '\\n';
    auto *lost = new std::ostringstream;
    *lost << std::string(600, 'x');
    return 0;
}
""")
    program = compile_program([source], tmp_path / "app", ["-g", level], instrumented=True)
    result = tracekit.analyze(record(program, stdin=b"5 words\n").trace, "memory_errors", 1).result
    assert result["summary"]["released"]["blocks"] == 2
    assert sorted(row["bytes"] for row in result["leaks"]) == [376, 1025]  # of the lost stream, and of what it has


@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_what_the_c_library_keeps_of_a_locale_is_its_own(level: str, tmp_path: Path) -> None:
    """Of one that there is, and of one that there is not."""
    source = tmp_path / "locales.cpp"
    source.write_text("""
#include <locale>
#include <stdexcept>
int main()
{
    std::locale there("C.UTF-8"), *lost = new std::locale("C");
    try {
        std::locale none(std::string("xx_YY.ISO-8859-1"));
    } catch (const std::runtime_error &) {
        return lost == nullptr;
    }
    return 2;
}
""")
    program = compile_program([source], tmp_path / "app", ["-g", level], instrumented=True)
    result = tracekit.analyze(record(program).trace, "memory_errors", 1).result
    assert result["summary"]["released"]["blocks"] >= 2
    assert [row["bytes"] for row in result["leaks"]] == [8]


@needs("libomp")
@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_what_openmp_s_library_allocates_is_its_own(level: str, tmp_path: Path) -> None:
    source = tmp_path / "shared.c"
    source.write_text("""
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    int *kept = NULL, sum = 0;
    #pragma omp parallel for num_threads(3) schedule(dynamic, 2) reduction(+:sum)
    for (int i = 0; i < 20; i++) {
        if (i == 5)
            kept = malloc(24);
        sum += i;
    }
    #pragma omp parallel num_threads(3)
    #pragma omp single
    for (int i = 0; i < 9; i++) {
        #pragma omp task firstprivate(i)
        if (i == 3)
            kept[0] = i;
    }
    fprintf(stderr, "%d %d\\n", sum, kept[0]);
    return 0;
}
""")
    program = compile_program([source], tmp_path / "app", ["-g", level, "-fopenmp"], instrumented=True)
    result = tracekit.analyze(record(program).trace, "memory_errors", 1).result
    assert [(row["blocks"], row["bytes"]) for row in result["leaks"]] == [(1, 24)]
    assert result["summary"]["released"]["blocks"] > 0


@needs("valgrind")
def test_an_instrumented_program_runs_under_memcheck(tmp_path: Path) -> None:
    source = tmp_path / "plain.c"
    source.write_text("int main(void) { return 0; }\n")
    program = compile_program([source], tmp_path / "app", ["-g", "-O0"], instrumented=True)
    told = subprocess.run(["valgrind", "--error-exitcode=1", program], capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr


def test_an_object_has_where_it_was_made_and_freed(tmp_path: Path) -> None:
    result = analysed(FOLDER / "after_free.c", tmp_path, "-O0")
    row = next(row for row in result["errors"] if row["kind"] == "read_after_free" and row["count"] == 3)
    lines = (FOLDER / "after_free.c").read_text().splitlines()
    assert "free(list)" in lines[row["freed"]["instruction"]["line"] - 1]
    assert "malloc" in lines[row["object"]["site"]["line"] - 1]
    assert (row["offset"], row["object_size"]) == (None, None)


def memcheck(source: Path, folder: Path) -> Found:
    """What memcheck says of a program that was built without tracekit."""
    flags = ["-gdwarf-4", "-O0", *LIBRARIES]
    program = compile_program([source], folder / "plain", flags, instrumented=False)
    log = folder / "memcheck.xml"
    subprocess.run(["valgrind", "--xml=yes", f"--xml-file={log}", program], check=True, capture_output=True)
    found = set()
    for error in ElementTree.parse(log).getroot().findall("error"):
        kind, what = str(error.findtext("kind")), " ".join(str(each.text) for each in error.findall("auxwhat"))
        frames = error.findall("stack")[0].findall("frame")
        lines = [int(str(each.findtext("line"))) for each in frames if each.findtext("file") == source.name]
        if not kind.startswith("Leak"):
            found.add((lines[0], kind_of(kind, what)))
    return found


def kind_of(kind: str, what: str) -> str:
    if kind.startswith("Invalid") and kind != "InvalidFree":
        where = "after_free" if "free'd" in what else "out_of_bounds"
        return f"{kind.removeprefix('Invalid').lower()}_{where}"
    names = {"MismatchedFree": "mismatched_free", "InvalidFree": "invalid_free"}
    return names.get(kind, "unwritten_read")


@needs("valgrind")
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_memcheck_says_the_same(source: Path, tmp_path: Path) -> None:
    assert memcheck(source, tmp_path) == said(source, "ERROR", "MEMCHECK")


def test_the_exit_status_tells_of_errors(tmp_path: Path) -> None:
    trace = record(compile_program([FOLDER / "bounds.c"], tmp_path / "app", ["-g", "-O0"], instrumented=True)).trace
    analyze = ("analyze", "-m", "memory_errors", trace, "--exit-code")
    assert run_here(*analyze).status == 1
    assert run_here(*analyze[:-1]).status == 0
    quiet = run_here(*analyze, "--suppress", "main,at", "--json")
    assert quiet.status == 0
    (profile,) = json.loads(quiet.stdout)["profiles"] if b'"profiles"' in quiet.stdout else [json.loads(quiet.stdout)]
    assert profile["result"]["summary"]["suppressed"] > 0
    misused = run_here("analyze", "-m", "accesses", trace, "--exit-code")
    assert misused.status == 2
    assert b"add -m memory_errors" in misused.stderr


def test_text_and_page_tell_of_each_error(tmp_path: Path) -> None:
    trace = record(compile_program([FOLDER / "after_free.c"], tmp_path / "app", ["-g", "-O0"], instrumented=True)).trace
    text = run_here("analyze", "-m", "memory_errors", trace).stdout.decode()
    assert "read after free" in text and "write after free" in text and "freed by" in text
    profile, page = tmp_path / "errors.profile", tmp_path / "page.html"
    assert run_here("analyze", "-m", "memory_errors", trace, "-o", profile).status == 0
    assert run_here("report", profile, "-o", page).status == 0
    assert "Errors of memory" in page.read_text() and "write after free" in page.read_text()
    joined = run_here("merge", profile)
    assert joined.stdout.decode() == text
