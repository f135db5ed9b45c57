"""Fetches the programs that the benchmarks run: Debian source packages, unpacked into a cache folder.

    python benchmarks/fetch.py            # about 20 MB, into ~/.cache/tracekit-bench

apt is used with a private configuration (its own source list, state and cache), so nothing of the
machine's own configuration changes and no root is needed; apt checks the archive's signatures. Wanted:
apt-get, dpkg-source (package dpkg-dev), make, and tclsh (package tcl) for sqlite3's amalgamation.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

PACKAGES = ("bzip2", "lua5.4", "sqlite3", "zlib", "minisat2")
"""What run.py measures, with Debian's changes and built as Debian does."""
ANNOTATED = ("fasttree", "hpcc", "hypre", "kissfft", "libimagequant", "libraw", "pfstools", "soundtouch")
"""What verdicts.py judges: upstream's source with OpenMP pragmas, as it is."""
SUITE = "bookworm"
MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def cache() -> Path:
    """Where sources, inputs and built programs are kept: TRACEKIT_BENCH, or ~/.cache/tracekit-bench."""
    return Path(os.environ.get("TRACEKIT_BENCH", Path.home() / ".cache" / "tracekit-bench"))


def source(package: str) -> Path:
    """The unpacked source of a package. Raises SystemExit with what to run if it is not there."""
    found = sorted(path for path in (cache() / "sources").glob(f"{package}-*") if path.is_dir())
    if not found:
        raise SystemExit(f"{package} is not fetched yet: run python benchmarks/fetch.py")
    return found[-1]


def fetch() -> None:
    """Fetch and unpack every package that is missing, and generate sqlite3's amalgamation."""
    for tool, package in (("apt-get", "apt"), ("dpkg-source", "dpkg-dev"), ("make", "make"), ("tclsh", "tcl")):
        if shutil.which(tool) is None:
            raise SystemExit(f"{tool} is missing: apt-get install {package}")
    sources = cache() / "sources"
    sources.mkdir(parents=True, exist_ok=True)
    missing = [name for name in PACKAGES if not any(path.is_dir() for path in sources.glob(f"{name}-*"))]
    if missing:
        options = _apt_configuration(cache() / "apt")
        subprocess.run(["apt-get", *options, "-q", "update"], check=True)
        subprocess.run(["apt-get", *options, "-q", "source", *missing], check=True, cwd=sources)
    # the Debian package's build writes this header; any folder name will do, nothing is loaded from there
    (source("lua5.4") / "src" / "lua5.4-deb-multiarch.h").write_text('#define DEB_HOST_MULTIARCH "none"\n')
    amalgamation = source("sqlite3")
    if not (amalgamation / "sqlite3.c").exists():
        quiet = {"stdout": subprocess.DEVNULL}
        subprocess.run(["./configure", "--disable-readline"], check=True, cwd=amalgamation, **quiet)  # type: ignore[call-overload]
        subprocess.run(["make", "sqlite3.c", "shell.c"], check=True, cwd=amalgamation, **quiet)  # type: ignore[call-overload]


def fetch_annotated(packages: Iterable[str] = ANNOTATED) -> None:
    """Fetch and unpack the sources of these packages that are missing, without what Debian adds to them."""
    sources = cache() / "annotated"
    missing = [name for name in packages if not (sources / name).is_dir()]
    if not missing:
        return
    archives = sources / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    options = _apt_configuration(cache() / "apt")
    subprocess.run(["apt-get", *options, "-q", "update"], check=True)
    for name in missing:
        subprocess.run(["apt-get", *options, "-q", "source", "--tar-only", name], check=True, cwd=archives)
        archive = max(archives.glob(f"{name}_*.orig.tar.*"))
        partial = sources / f"{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        unpack = ["tar", "-xf", str(archive), "-C", str(partial), "--strip-components=1"]
        subprocess.run(unpack, check=True)
        partial.rename(sources / name)


def annotated(package: str) -> Path:
    """The source of a package that fetch_annotated fetched. Raises SystemExit with what to run if it is not there."""
    found = cache() / "annotated" / package
    if not found.is_dir():
        raise SystemExit(f"{package} is not fetched yet: run python benchmarks/verdicts.py --fetch")
    return found


def _apt_configuration(folder: Path) -> list[str]:
    """Options of apt-get that keep all its state in `folder` and read one line of sources."""
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    listing = folder / "sources.list"
    listing.write_text(f"deb-src [signed-by={KEYRING}] {MIRROR} {SUITE} main\n")
    settings = {
        "Dir::Etc::SourceList": listing,
        "Dir::Etc::SourceParts": "-",
        "Dir::State": folder / "state",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


if __name__ == "__main__":
    fetch()
    for name in PACKAGES:
        print(source(name), file=sys.stdout)
