"""The real programs: how each is built from one list of sources, and the input that it runs on.

A program's ``arguments(size)`` gives its command line after the executable and its standard input;
``size`` is a multiple of the small input, which keeps an analysis under a minute; FULL gives at
least one second natively.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import fetch

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Program:
    """One program of one group; affine kernels and pointer programs are never averaged together."""

    name: str
    group: str  # "programs" or "kernels"
    language: str  # "c" or "c++"
    sources: Callable[[], list[Path]]
    flags: Callable[[], list[str]]
    libraries: tuple[str, ...]
    arguments: Callable[[int], tuple[list[str], Path | None]]
    full: int
    """The size of at least one second natively."""
    small: int = 1
    """The size for analysis."""


def input_file(name: str, write: Callable[[Path], None]) -> Path:
    """The input file `name` in the cache, written once."""
    path = fetch.cache() / "inputs" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        write(partial)
        partial.rename(path)
    return path


def _text(mebibytes: float) -> Path:
    """Source text: sqlite3's own C files, over and over from different offsets, cut to size."""

    def write(path: Path) -> None:
        files = sorted(fetch.source("sqlite3").glob("src/*.c")) + sorted(fetch.source("sqlite3").glob("test/*.test"))
        wanted = int(mebibytes * (1 << 20))
        text = b"".join(file.read_bytes() for file in files)
        while len(text) < wanted:
            text += text[len(text) // 3 :]
        path.write_bytes(text[:wanted])

    return input_file(f"text-{mebibytes}.txt", write)


def _satisfiability(size: int) -> Path:
    """A random 3-SAT problem of 140 + 10 * size variables at the hardest ratio of clauses to variables."""

    def write(path: Path) -> None:
        draw = random.Random(size)
        variables = 140 + 10 * size
        clauses = round(4.26 * variables)
        lines = [f"p cnf {variables} {clauses}"]
        for _ in range(clauses):
            literals = [v * draw.choice((1, -1)) for v in draw.sample(range(1, variables + 1), 3)]
            lines.append(f"{' '.join(map(str, literals))} 0")
        path.write_text("\n".join(lines) + "\n")

    return input_file(f"random-sat-{size}.cnf", write)


def _queries(size: int) -> Path:
    """Inserts, an index, joins, groups, updates and deletes."""

    def write(path: Path) -> None:
        rows = 400 * size
        path.write_text(f"""\
create table item(id integer primary key, name text, price real, kind integer);
create table sale(item integer, day integer, amount integer);
begin;
with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})
  insert into item select i, 'item ' || (i * 7919 % 100003), (i * 31 % 997) / 10.0, i % 23 from n;
with recursive n(i) as (select 1 union all select i + 1 from n where i < {4 * rows})
  insert into sale select i * 101 % {rows} + 1, i % 365, i * 13 % 17 from n;
commit;
create index sale_item on sale(item);
select kind, count(*), sum(amount * price) from item join sale on item.id = sale.item group by kind order by 3 desc;
update item set price = price * 1.1 where kind in (select kind from item group by kind having avg(price) > 49.8);
select day / 30, max(amount), total(amount) from sale group by 1;
delete from sale where item in (select id from item where name like '%77%');
select count(*), avg(length(name)), min(name), max(name) from item where id in (select item from sale);
select name from item order by substr(name, -3), id limit 20;
""")

    return input_file(f"queries-{size}.sql", write)


def _lua_sources() -> list[Path]:
    return sorted(path for path in fetch.source("lua5.4").glob("src/*.c") if path.name != "luac.c")


def _bzip2_sources() -> list[Path]:
    names = ("blocksort", "bzip2", "bzlib", "compress", "crctable", "decompress", "huffman", "randtable")
    return [fetch.source("bzip2") / f"{name}.c" for name in names]


def _minigzip_sources() -> list[Path]:
    return [*sorted(fetch.source("zlib").glob("*.c")), fetch.source("zlib") / "test" / "minigzip.c"]


def _sqlite_sources() -> list[Path]:
    return [fetch.source("sqlite3") / "sqlite3.c", fetch.source("sqlite3") / "shell.c"]


def _minisat_sources() -> list[Path]:
    folder = fetch.source("minisat2") / "minisat"
    return [folder / "core" / "Main.cc", folder / "core" / "Solver.cc", *sorted(folder.glob("utils/*.cc"))]


PROGRAMS = (
    Program(
        "bzip2",
        "programs",
        "c",
        _bzip2_sources,
        lambda: ["-D_FILE_OFFSET_BITS=64"],
        (),
        lambda size: (["-9", "-c", "-k", str(_text(size / 4))], None),
        full=72,
    ),
    Program(
        "lua",
        "programs",
        "c",
        _lua_sources,
        lambda: ["-DLUA_USE_LINUX", "-DLUA_COMPAT_5_3"],
        ("-lm", "-ldl"),
        lambda size: ([str(HERE / "inputs" / "work.lua"), str(size)], None),
        full=110,
    ),
    Program(
        "sqlite3",
        "programs",
        "c",
        _sqlite_sources,
        lambda: ["-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION"],
        ("-lm",),
        lambda size: ([":memory:"], _queries(size)),
        full=450,
    ),
    Program(
        "minigzip",
        "programs",
        "c",
        _minigzip_sources,
        lambda: [f"-I{fetch.source('zlib')}", "-D_LARGEFILE64_SOURCE=1", "-DHAVE_UNISTD_H"],
        (),
        lambda size: (["-c", "-6", str(_text(size / 2))], None),
        full=110,
    ),
    Program(
        "minisat",
        "programs",
        "c++",
        _minisat_sources,
        lambda: [
            f"-I{fetch.source('minisat2')}",
            "-D__STDC_LIMIT_MACROS",
            "-D__STDC_FORMAT_MACROS",
            "-Wno-reserved-user-defined-literal",
        ],
        ("-lz",),
        lambda size: (["-verb=0", str(_satisfiability(size)), "/dev/stdout"], None),
        full=13,
    ),
)


def _kernel(name: str, full: int) -> Program:
    return Program(
        name,
        "kernels",
        "c",
        lambda: [HERE / "kernels" / f"{name}.c"],
        list,
        ("-lm",),
        lambda size: ([str(size)], None),
        full,
    )


KERNELS = tuple(
    _kernel(name, full)
    for name, full in (
        ("gemm", 700),
        ("2mm", 300),
        ("atax", 2000),
        ("jacobi-2d", 1500),
        ("seidel-2d", 130),
        ("lu", 400),
        ("floyd-warshall", 200),
        ("cholesky", 600),
        ("trisolv", 1500),
        ("doitgen", 200),
    )
)
EVERYTHING = {program.name: program for program in (*PROGRAMS, *KERNELS)}
