"""`tracekit doctor`: what recording and analysing need, what is there, and how to get what is missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import click

from tracekit import extras
from tracekit.formats.errors import TracekitError

if TYPE_CHECKING:
    from tracekit.recorder.toolchain import Clang


AGAIN = "tracekit doctor (again, once that is mended)"
"""The remedy for what another finding explains."""


class Finding(NamedTuple):
    """One line of the report: a thing, whether it is in order, what was found, and what to do if it is not."""

    name: str
    works: bool
    found: str
    remedy: str = ""
    optional: bool = False
    """Whether nothing but what it is for misses it."""


@click.command("doctor")
def command() -> int:
    """Say what recording and analysing need, what is there and what is missing.

    Exits with 1 if anything is missing; each missing thing is shown with the command that provides it. Optional extras
    are shown with what they are for, and may be missing.
    """
    findings = list(examine())
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark = "ok " if finding.works else "-- " if finding.optional else "NO "
        print(f"{mark} {finding.name:<{width}}  {finding.found}")
        if not finding.works and finding.remedy:
            print(f"    {'':<{width}}  -> {finding.remedy}")
    needed = [finding for finding in findings if not finding.optional]
    missing = sum(not finding.works for finding in needed)
    extra = [finding.name for finding in findings if finding.optional and not finding.works]
    if missing:
        print(f"{missing} of {len(needed)} missing.")
    elif extra:
        print(f"Everything that is needed is there; optional and not installed: {', '.join(extra)}.")
    else:
        print("Everything is there.")
    return 1 if missing else 0


def examine() -> Iterator[Finding]:
    """Look at everything once, in the order in which one thing needs the other."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("python", sys.version_info >= (3, 11), version, "apt-get install python3.11 (or newer)")
    for package in ("numpy", "numba", "zstandard", "click"):
        yield _package(package)
    yield _cache()
    yield from _compiler()
    yield _shared_memory()
    yield _preloading()
    for name in extras.EXTRAS:
        yield _extra(name)


def _package(name: str) -> Finding:
    from importlib import import_module, metadata

    try:
        import_module(name)
        return Finding(name, True, metadata.version(name))
    except ImportError as error:
        return Finding(name, False, str(error), f"{sys.executable} -m pip install {name}")


def _extra(name: str) -> Finding:
    """Whether an optional extra is there, and what it is for."""
    from importlib import metadata

    extra, gone = extras.EXTRAS[name], extras.missing(name)
    if gone:
        found = f"{extra.serves}: {' and '.join(gone)} not installed"
        return Finding(f"[{name}]", False, found, extras.installation(name), optional=True)
    versions = []
    for package in (extras.PROJECTS.get(package, package) for package in extra.packages):
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:  # on the path, but not installed as packages are
            versions.append(package)
    return Finding(f"[{name}]", True, f"{extra.serves}: {', '.join(versions)}", optional=True)


def _cache() -> Finding:
    from tracekit.recorder.build_cache import cache_folder

    folder = cache_folder()
    try:
        os.makedirs(folder, exist_ok=True)
        probe = os.path.join(folder, f"doctor-{os.getpid()}")
        with open(probe, "w"):
            pass
        os.remove(probe)
        return Finding("cache", True, folder)
    except OSError as error:
        remedy = "export XDG_CACHE_HOME=<a folder that can be written>"
        return Finding("cache", False, f"{folder} cannot be written ({error.strerror})", remedy)


def _compiler() -> Iterator[Finding]:
    """Clang, its headers, and the two things that are built with them on first use."""
    from tracekit.recorder import toolchain

    runtime = toolchain.runtime_folder_name()
    try:
        clang = toolchain.find_clang()
    except TracekitError as error:
        yield Finding("clang", False, str(error), toolchain.INSTALL)
        if toolchain.is_built(runtime):
            yield Finding("runtime", True, "built: programs compiled elsewhere can be recorded")
        return
    yield Finding("clang", True, f"{clang.path} {clang.version}")
    try:
        yield Finding("llvm headers", True, toolchain.llvm_config(clang))
    except TracekitError as error:
        yield Finding("llvm headers", False, str(error), f"apt-get install llvm-{clang.major}-dev")
        return
    yield _built("compiler pass", toolchain.pass_folder_name(clang), lambda: toolchain.pass_plugin(clang))
    yield _built("runtime", runtime, lambda: toolchain.runtime_file("image_runtime.o", clang))
    yield _flang(clang)
    yield _rustc()


def _flang(clang: Clang) -> Finding:
    """What `tracekit fc` needs."""
    from tracekit.recorder import toolchain

    try:
        return Finding("flang", True, f"Fortran: {toolchain.find_flang(clang)}", optional=True)
    except TracekitError as error:
        return Finding("flang", False, f"Fortran: {error}", f"apt-get install flang-{clang.major}", optional=True)


def _rustc() -> Finding:
    """What `tracekit rustc` needs."""
    from tracekit.recorder import rust

    install = "apt-get install rustc"
    try:
        rustc = rust.find_rustc()
        install = f"apt-get install clang-{rustc.llvm} llvm-{rustc.llvm}-dev"
        path, version = rust.clang_for(rustc)
    except TracekitError as error:
        return Finding("rustc", False, f"Rust: {error}", install, optional=True)
    return Finding("rustc", True, f"Rust: {rustc.path} {rustc.release}, compiled by {path} {version}", optional=True)


def _built(name: str, folder: str, build: Callable[[], str]) -> Finding:
    from tracekit.recorder import toolchain

    there = toolchain.is_built(folder)
    try:
        path = os.path.dirname(build())
    except TracekitError as error:
        return Finding(name, False, str(error), AGAIN)
    return Finding(name, True, f"{'built' if there else 'built just now'}: {path}")


def _shared_memory() -> Finding:
    """The pool of `tracekit record` is a memfd, mapped shared by the program and the collector."""
    import mmap

    size = 64 << 20
    try:
        descriptor = os.memfd_create("tracekit-doctor")
        try:
            os.posix_fallocate(descriptor, 0, size)
            with mmap.mmap(descriptor, size) as memory:
                memory[size - 1] = 1
        finally:
            os.close(descriptor)
    except (OSError, AttributeError) as error:
        return Finding("shared memory", False, f"memfd_create: {error}", "a Linux kernel of 3.17 or newer is needed")
    return Finding("shared memory", True, f"memfd, {size >> 20} MiB mapped")


def _preloading() -> Finding:
    """Whether the dynamic linker takes LD_PRELOAD from us: it must load the library into a child."""
    import subprocess

    from tracekit.recorder import toolchain
    from tracekit.recorder.preloadable import preloadable

    name = "LD_PRELOAD"
    if not toolchain.is_built(toolchain.runtime_folder_name()):
        return Finding(name, False, "not tried: the runtime is not built", AGAIN)
    library = toolchain.runtime_file(toolchain.PRELOAD)
    environment = {**os.environ, name: preloadable(library)}
    show = [sys.executable, "-S", "-c", "print(open('/proc/self/maps').read())"]
    maps = subprocess.run(show, env=environment, capture_output=True, text=True)
    if maps.returncode == 0 and os.path.basename(library) in maps.stdout and not maps.stderr:
        return Finding(name, True, library)
    complaint = maps.stderr.strip().splitlines()[:1] or ["the library was not loaded"]
    return Finding(name, False, complaint[0], "run on a system whose libc is glibc, without seccomp or setuid limits")
