"""The C runtime, shipped as source: what recorder/toolchain.py compiles into the user's cache."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RuntimeTarget:
    """One file to build: the names of its sources in this folder, and the flags of the compiler."""

    sources: tuple[str, ...]
    flags: tuple[str, ...]
    headers: tuple[str, ...] = ("state.h", "pool.h", "format.h", "probe.h")


_COMMON = ("-std=gnu17", "-O2", "-g", "-fPIC", "-Wall", "-Wextra")

_UNWINDER = ("-static-libgcc", "-Wl,--exclude-libs,ALL")
"""Part of the library: a program in C has none, and none of its symbols are to be in the way of the program's own."""

_PRELOAD = (
    "preload.c",
    "preload_claim.c",
    "preload_map.c",
    "preload_streams.c",
    "preload_windows.c",
    "preload_rules.c",
    "preload_times.c",
    "preload_watches.c",
    "preload_steps.c",
    "preload_filter.c",
    "preload_clock.c",
    "preload_code.c",
    "preload_contexts.c",
    "preload_images.c",
    "interceptors_signals.c",
    "interceptors_threads.c",
    "interceptors_locks.c",
    "interceptors_order.c",
    "interceptors_lifetimes.c",
    "interceptors_process.c",
    "interceptors_exit.c",
    "preload_session.c",
    "preload_fork.c",
    "interceptors_shell.c",
    "interceptors_memory.c",
    "interceptors_allocators.c",
    "interceptors_mappings.c",
    "interceptors_libc.c",
    "interceptors_nodes.c",
    "interceptors_streams.c",
    "interceptors_text.c",
    "interceptors_wide.c",
    "interceptors_formats.c",
    "interceptors_values.c",
    "interceptors_system.c",
    "interceptors_files.c",
    "interceptors_kernel.c",
    "interceptors_calls.c",
)

_OF_GLIBC = ("interceptors_openmp.c", "openmp_calls.c", "openmp_tools.c")
_OF_MUSL = ("musl/musl.c",)
_FOR_MUSL = ("-I", ".", "-include", "musl/musl.h", "-idirafter", "musl")


def _image_runtime(*flags: str) -> RuntimeTarget:
    # Without debug information: GNU ld breaks the offsets of strings of a program's own, and valgrind gives up on it.
    return RuntimeTarget(("image_runtime.c",), (*_COMMON, "-g0", "-c", "-ffunction-sections", *flags))


def _preloaded(sources: tuple[str, ...], *flags: str) -> RuntimeTarget:
    return RuntimeTarget(
        (*_PRELOAD, "preload_linker.c", *sources),
        (*_COMMON, "-shared", "-fvisibility=hidden", "-fno-builtin", "-ldl", "-pthread", *_UNWINDER, *flags),
        headers=(
            "compiler.h",
            "state.h",
            "pool.h",
            "format.h",
            "preload.h",
            "preload_record.h",
            "preload_rules.h",
            "preload_library.h",
            "ompt.h",
            "probe.h",
        ),
    )


def _static(source: str, *flags: str) -> dict[str, RuntimeTarget]:
    """The preloaded library's files once more, whose functions have other names there.

    They include the header that recorder/toolchain.py writes with these names.
    """
    return {
        "static_program.o": RuntimeTarget(
            (*_PRELOAD, "static_program.c", source),
            (*_COMMON, "-r", "-nostdlib", "-fvisibility=hidden", "-fno-builtin", "-pthread", "-DTK_STATIC", *flags),
        ),
        "static_end.o": RuntimeTarget(("static_end.c",), (*_COMMON, "-c")),
    }


RUNTIME_TARGETS: dict[str, dict[str, RuntimeTarget]] = {
    "glibc": {
        "image_runtime.o": _image_runtime(),
        "libtracekit-preload.so": _preloaded(_OF_GLIBC),
        "libtracekit-encoder.so": RuntimeTarget(
            (
                "encoder.c",
                "encoder_scalar.c",
                "encoder_vector.c",
                "encoder_predictors.c",
                "encoder_tables.c",
                "encoder_trim.c",
                "encoder_work.c",
                "encoder_pool.c",
                "encoder_crc.c",
            ),
            (*_COMMON, "-O3", "-shared", "-fvisibility=hidden", "-pthread"),
            headers=("compiler.h", "state.h", "pool.h", "format.h", "encoder.h", "encoder_record.h"),
        ),
    },
    "musl": {
        "image_runtime.o": _image_runtime(),
        "libtracekit-preload.so": _preloaded(_OF_MUSL, *_FOR_MUSL),
    },
}
"""By C library: name of the built file -> how to build it (with clang: the image runtime needs ``preserve_most``)."""

STATIC_TARGETS = {"glibc": _static("static_glibc.c"), "musl": _static("musl/musl.c", *_FOR_MUSL)}
"""The same of what is linked into static programs."""

_OF_LIBGCC = ("__register_frame_info", "__deregister_frame_info")
STATIC_ONLY = {"glibc": ("_dl_allocate_tls", "_dl_deallocate_tls", *_OF_LIBGCC), "musl": _OF_LIBGCC}
"""What only static programs wrap, beside what the preloaded library exports."""
