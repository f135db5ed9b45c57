"""`tracekit rustc` alone, for cargo, and beside C; what its traces know of types is looked at in test_languages.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tracekit
from tests import needs
from tests.recorder.recording import ENVIRONMENT, ROOT, TRACEKIT, record
from tracekit.formats.errors import TracekitError
from tracekit.recorder import fortran, rust, rustc_options
from tracekit.recorder.rust import Rustc
from tracekit.recorder.toolchain import VERSIONS

PLAIN = ["-O", "--plain-std"]
"""For what is not about the standard library: compiling that takes a while, once for each set of options."""
WHOLE = ["-O", "-g", "--threads"]

PREFIX = """
pub fn prefix(values: &mut [u64]) { for i in 1..values.len() { values[i] += values[i - 1]; } }
#[no_mangle] pub extern "C" fn last(values: *mut u64, n: usize) -> u64 {
    let values = unsafe { std::slice::from_raw_parts_mut(values, n) };
    prefix(values);
    values[n - 1]
}
"""
MAIN = """
fn main() {
    let mut values: Vec<u64> = Vec::new();
    for i in 0..1000 { values.push(i) }
    numbers::prefix(&mut values);
    println!("{}", values[999]);
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "numbers.rs").write_text(PREFIX)
    (tmp_path / "main.rs").write_text(MAIN)
    return tmp_path


def run(*words: object, cwd: Path, status: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {**ENVIRONMENT, "TRACEKIT_RUSTC": needs.rustc(), **environment}
    done = subprocess.run([str(word) for word in words], cwd=cwd, env=own, capture_output=True, text=True, timeout=600)
    assert done.returncode == status, done.stderr[-2000:]
    return done


def rustc(*words: object, cwd: Path, status: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(*TRACEKIT, "rustc", *words, cwd=cwd, status=status, **environment)


def is_instrumented(path: Path) -> bool:
    return "tk_functions" in run("readelf", "-SW", path, cwd=path.parent).stdout


def stores(folder: Path) -> dict[str, int]:
    """How often each file's code stores, by the file's name."""
    found: dict[str, int] = {}
    for row in tracekit.analyze(folder / "trace.zst", "accesses").result["instructions"]:
        name = Path(row["instruction"]["file"]).name
        found[name] = found.get(name, 0) + row["stores"]
    return found


# -- programs and libraries -------------------------------------------------------------------------


@needs.needs("rustc")
@pytest.mark.parametrize("level", ["-Copt-level=0", "-O", "-Copt-level=3", "-Copt-level=s"])
def test_a_crate_and_a_library_of_its_own(level: str, folder: Path) -> None:
    rustc(level, "--plain-std", "--crate-type", "lib", "numbers.rs", "-C", "extra-filename=-1", cwd=folder)
    rustc(level, "--plain-std", "main.rs", "--extern", "numbers=libnumbers-1.rlib", "-o", "app", cwd=folder)
    assert {path.suffix for path in folder.iterdir()} == {".rs", ".rlib", ""}
    assert run("./app", cwd=folder).stdout == "499500\n"
    assert record(folder, folder / "app").stdout == "499500\n"
    run(*TRACEKIT, "check", "trace.zst", cwd=folder)
    assert stores(folder)["numbers.rs"] >= 999  # of the crate, into the program's vector


@needs.needs("rustc")
def test_the_standard_library_is_instrumented(folder: Path) -> None:
    """Functions that are no templates are compiled there alone, as that which writes the digits of a number."""
    for options, is_seen in (WHOLE, True), (PLAIN, False):
        rustc("--crate-type=lib", *PLAIN, "numbers.rs", cwd=folder)
        rustc(*options, "main.rs", "--extern", "numbers=libnumbers.rlib", cwd=folder)
        assert record(folder, folder / "main", options=("-f",)).stdout == "499500\n"
        run(*TRACEKIT, "check", "trace.zst", cwd=folder)
        assert ("num.rs" in stores(folder)) == is_seen


@needs.needs("rustc")
def test_libraries_for_programs_in_c(folder: Path) -> None:
    (folder / "use.c").write_text(
        "#include <stdio.h>\nunsigned long last(unsigned long *, unsigned long);\n"
        'int main() { unsigned long a[50]; for (int i = 0; i < 50; i++) a[i] = i; printf("%lu\\n", last(a, 50)); }\n'
    )
    rustc(*PLAIN, "-Cpanic=abort", "--crate-type=staticlib,cdylib", "numbers.rs", cwd=folder)
    assert is_instrumented(folder / "libnumbers.a") and is_instrumented(folder / "libnumbers.so")
    for library in (["libnumbers.a", "-lpthread", "-ldl"], ["-L.", "-lnumbers", "-Wl,-rpath,$ORIGIN"]):
        run(*TRACEKIT, "cc", "-O1", "use.c", *library, "-o", "use", cwd=folder)
        assert record(folder, folder / "use", options=("-f",)).stdout == "1225\n"
        assert stores(folder)["numbers.rs"] == 49
        (folder / "libnumbers.a").unlink(missing_ok=True)


@needs.needs("rustc")
def test_a_panic_is_caught_in_an_instrumented_program(folder: Path) -> None:
    (folder / "main.rs").write_text("""
        fn element(values: &[u32], n: usize) -> u32 { values[n] }
        fn main() {
            let values: Vec<u32> = (0..10).collect();
            let reader = std::thread::spawn(move || (0..11).map(|n| element(&values, n)).sum::<u32>());
            println!("{}", reader.join().is_err());
        }
    """)
    rustc(*WHOLE, "main.rs", cwd=folder)
    done = record(folder, folder / "main")
    assert (done.returncode, done.stdout) == (0, "true\n") and "index out of bounds" in done.stderr
    run(*TRACEKIT, "check", "trace.zst", cwd=folder)


@needs.needs("rustc")
def test_what_a_panic_cleans_up_goes_on_unwinding(folder: Path) -> None:
    """The unwinder calls std's personality function for each frame, from the call of the cleanup that goes on, too."""
    (folder / "main.rs").write_text("""
        use std::{panic, sync::Once};
        fn main() {
            panic::set_hook(Box::new(|_| {}));
            let once = Once::new();
            for fails in [true, true, false] {
                let tried = || once.call_once_force(|_| if fails { panic!() });
                println!("{}", panic::catch_unwind(panic::AssertUnwindSafe(tried)).is_err());
            }
        }
    """)
    rustc(*WHOLE, "main.rs", cwd=folder)
    assert record(folder, folder / "main").stdout == "true\ntrue\nfalse\n"
    run(*TRACEKIT, "check", "trace.zst", cwd=folder)


THREADS = """
use std::ptr::addr_of_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::sync::{mpsc, Arc, Barrier, Mutex, Once, RwLock};
use std::thread;

static mut COUNT: u64 = 0;
static mut TABLE: [u64; 4] = [0; 4];
static FILLED: Once = Once::new();
static SHARED: AtomicPtr<u64> = AtomicPtr::new(std::ptr::null_mut());

fn main() {
    let mut shared = Vec::new();
    for i in 0..10u64 { shared.push(i) } // SHARED
    SHARED.store(shared.as_mut_ptr(), Relaxed);
    let sums = Arc::new(Mutex::new(vec![0u64; 4]));
    let names = Arc::new(RwLock::new(std::collections::HashMap::new()));
    let start = Arc::new(Barrier::new(3));
    let (sender, results) = mpsc::channel::<Vec<u64>>();
    let threads: Vec<_> = (0..3u64).map(|t| {
        let (sums, names, start, sender) = (sums.clone(), names.clone(), start.clone(), sender.clone());
        thread::spawn(move || {
            FILLED.call_once(|| unsafe { for i in 0..4 { TABLE[i] = i as u64; } });
            for i in 0..40 { sums.lock().unwrap()[i % 4] += unsafe { TABLE[i % 4] }; }
            names.write().unwrap().insert(t, format!("thread {t}"));
            sender.send((0..t).collect()).unwrap();
            start.wait();
            for i in 0..RACY { unsafe { addr_of_mut!(COUNT).write_volatile(i) } }
            if RACY > 0 { unsafe { SHARED.load(Relaxed).write_volatile(t) } }
        })
    }).collect();
    drop(sender);
    let all = results.iter().map(|some| some.len()).sum::<usize>();
    for thread in threads { thread.join().unwrap(); }
    println!("{} {} {:?}", all, names.read().unwrap().len(), sums.lock().unwrap());
}
"""


@needs.needs("rustc")
def test_races_of_threads(folder: Path) -> None:
    """Rust's locks, channels and barriers are atomic operations of its library, which --threads puts in order.

    Memory is named by the program's line, not by the library's that allocates for all vectors.
    """
    pushes = next(number for number, line in enumerate(THREADS.splitlines(), 1) if line.endswith("// SHARED"))
    for racy in (0, 2000):
        (folder / "main.rs").write_text(THREADS.replace("RACY", str(racy)))
        rustc(*WHOLE, "main.rs", cwd=folder)
        assert record(folder, folder / "main", options=("-f",)).stdout == "3 3 [0, 30, 60, 90]\n"
        found = tracekit.analyze(folder / "trace.zst", "races").result["races"]
        names = {"COUNT"} if racy else set()
        assert {row["object"]["name"] for row in found if row["object"]["kind"] == "global"} == names
        made = [row["object"]["site"] for row in found if row["object"]["kind"] == "heap"]
        places = {(place["file"], place["line"]) for site in made for place in site["inlined_at"]}
        assert bool(made) == bool(racy) and (not racy or (str(folder / "main.rs"), pushes) in places)


@needs.needs("rustc")
def test_options_of_tracekit(folder: Path) -> None:
    (folder / "main.rs").write_text(PREFIX + 'fn main() { let mut a = [3; 40]; prefix(&mut a); println!("{}", a[39]) }')
    rustc(*PLAIN, "--values", "-Cdebuginfo=0", "-Cstrip=symbols", "-Clto", "main.rs", cwd=folder)
    assert record(folder, folder / "main").stdout == "120\n"
    rows = tracekit.analyze(folder / "trace.zst", "value_pattern").result["instructions"]
    assert any(row["instruction"]["file"].endswith("main.rs") for row in rows)


# -- in a build -------------------------------------------------------------------------------------


@needs.needs("rustc")
@needs.needs("cargo")
def test_cargo(folder: Path) -> None:
    """Also where rustc alone has compiled everything before, which cargo would take for fresh."""
    package = '[package]\nname = "{}"\nversion = "0.1.0"\nedition = "2021"\n'
    options = '[dependencies]\nnumbers = { path = "numbers" }\n[profile.release]\nlto = true\nstrip = true\n'
    for name, text in {
        "Cargo.toml": package.format("app") + options,
        "src/main.rs": MAIN,
        "build.rs": 'fn main() { println!("cargo:rerun-if-changed=build.rs") }',
        "numbers/Cargo.toml": package.format("numbers"),
        "numbers/src/lib.rs": PREFIX,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    ours = folder / "tracekit-rustc"
    ours.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from tracekit.recorder.rust import main_rustc\nsys.exit(main_rustc())\n"
    )
    ours.chmod(0o755)
    cargo = [needs.cargo(), "build", "--offline", "--quiet", "--release"]
    app = folder / "target/release/app"
    for compiler, flags in (needs.rustc(), ""), (ours, "--plain-std"):
        assert run(*cargo, cwd=folder, RUSTC=str(compiler), RUSTFLAGS=flags).stderr == ""
        assert run(app, cwd=folder).stdout == "499500\n"
        assert is_instrumented(app) == (compiler == ours)
    assert record(folder, app).stdout == "499500\n"
    assert stores(folder)["lib.rs"] >= 999


@needs.needs("rustc")
def test_what_links_nothing_is_rustcs_own(folder: Path) -> None:
    said = rustc("-vV", cwd=folder).stdout.splitlines()
    assert said[0].startswith("rustc ") and said[-1].startswith(f"tracekit: {tracekit.__version__}, pass-")
    assert rustc("--version", cwd=folder).stdout.startswith("rustc ")
    assert rustc("--print", "crate-name", "main.rs", cwd=folder).stdout == "main\n"
    rustc("--crate-type=lib", "--emit=metadata", "numbers.rs", cwd=folder)
    assert {path.name for path in folder.iterdir()} == {"main.rs", "numbers.rs", "libnumbers.rmeta"}


@needs.needs("rustc")
def test_as_a_wrapper_it_is_given_the_compiler(folder: Path) -> None:
    """By cargo, for RUSTC_WRAPPER and RUSTC_WORKSPACE_WRAPPER."""
    options = [*PLAIN, "--crate-type", "lib", "--emit=link=of_mine.rlib", "numbers.rs"]
    rustc(needs.rustc(), *options, cwd=folder, TRACEKIT_RUSTC="none")
    assert is_instrumented(folder / "of_mine.rlib")


@needs.needs("rustc")
def test_messages_and_statuses(folder: Path) -> None:
    (folder / "bad.rs").write_text("fn main() { let x: u32 = true; }\n")
    assert "bad.rs:1:26" in rustc("bad.rs", cwd=folder, status=1).stderr
    assert "none.rs" in rustc("none.rs", cwd=folder, status=1).stderr
    assert "--at takes one of" in rustc("--at=home", "main.rs", cwd=folder, status=1).stderr
    assert "cannot find -lnone" in rustc("numbers.rs", "--crate-type=cdylib", "-lnone", cwd=folder, status=1).stderr
    assert "Usage: tracekit rustc" in rustc(cwd=folder, status=1).stderr
    assert "--plain-std" in rustc("--help", cwd=folder).stdout
    assert rustc("main.rs", cwd=folder, status=1, TRACEKIT_RUSTC="/bin/true").stderr == (
        "tracekit: TRACEKIT_RUSTC names /bin/true, which is not a rustc that runs and uses LLVM; name another\n"
    )


@pytest.mark.parametrize("compiler", [rust, fortran])
def test_an_interrupt_is_no_traceback(compiler: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(compiler, "_run", interrupted)
    assert compiler.main(["main"]) == 130


# -- which compilers --------------------------------------------------------------------------------


def rustc_of(folder: Path, llvm: int) -> str:
    path = folder / "rustc"
    path.write_text(f"#!/bin/sh\necho 'release: 1.2.3'\necho 'LLVM version: {llvm}.1.0'\n")
    path.chmod(0o755)
    return str(path)


def test_the_rustc_on_the_path_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TRACEKIT_RUSTC", raising=False)
    with pytest.raises(TracekitError, match="no rustc was found; install one with `apt-get install rustc` or rustup"):
        rust.find_rustc()
    path = rustc_of(tmp_path, 14)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert rust.find_rustc() == Rustc(path, "1.2.3", 14)


def test_clang_must_read_what_rustc_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = VERSIONS[-1]
    clang = tmp_path / "clang"
    clang.write_text(f"#!/bin/sh\necho 'clang version {newest - 1}.1.0'\n")
    clang.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TRACEKIT_CLANG", str(clang))
    assert rust.clang_for(Rustc("rustc", "1.2.3", newest - 1)).path == str(clang)
    assert rust.clang_for(Rustc("rustc", "1.2.3", 14)).path == str(clang)
    with pytest.raises(TracekitError, match=rf"rustc 1\.2\.3 writes code of LLVM {newest}: .* clang-{newest} llvm-"):
        rust.clang_for(Rustc("rustc", "1.2.3", newest))
    monkeypatch.delenv("TRACEKIT_CLANG")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TracekitError, match=f"no clang of version {newest} was found"):
        rust.clang_for(Rustc("rustc", "1.2.3", newest))
    with pytest.raises(TracekitError, match=f"tracekit knows LLVM up to {newest}; use an older rustc"):
        rust.clang_for(Rustc("rustc", "1.2.3", newest + 1))


# -- rustc's words ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "level", "links"),
    [
        ("a.rs", "-O0", True),
        ("-O a.rs", "-O2", True),
        ("-O -Copt-level=3 a.rs", "-O3", True),
        ("--codegen opt_level=s --codegen=debuginfo=0 a.rs", "-Os", True),
        ("-C opt-level=z -C opt-level=1 a.rs --emit=dep-info,metadata,link", "-O1", True),
        ("--crate-name a - --print=cfg", "-O0", False),
        ("a.rs --emit metadata,dep-info=a.d", "-O0", False),
        ("--edition=2021 -L native=x --cfg a", "-O0", False),
        ("--explain E0001", "-O0", False),
        ("-", "-O0", True),
    ],
)
def test_what_a_command_line_asks_for(words: str, level: str, links: bool) -> None:
    found = rustc_options.read(words.split())
    assert (found.level, found.links) == (level, links) and not found.tells_version


def test_debug_information_versions_and_outputs(tmp_path: Path) -> None:
    assert rustc_options.read(["-g", "a.rs"]).debug and rustc_options.read(["-Cdebuginfo=line-tables-only"]).debug
    assert not rustc_options.read(["-g", "-Cdebuginfo=none", "a.rs"]).debug
    assert all(rustc_options.read(words).tells_version for words in (["-vV"], ["--version", "--verbose"]))
    assert not rustc_options.read(["-V"]).tells_version
    (tmp_path / "words").write_text("--out-dir\nmade here\n-Copt-level=3\na.rs\n")
    found = rustc_options.read([f"@{tmp_path}/words", "-o", "b"])
    assert (found.output, found.folder, found.level, found.links) == ("b", "made here", "-O3", True)
