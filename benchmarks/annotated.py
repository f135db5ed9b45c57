"""The programs of verdicts.py: whose parallel loops their authors have annotated, each with a small input.

They are built from upstream's source, libraries with a main program from annotated/. Sources and flags may name files
below the package's folder, which is copied: `{}` stands for that folder, `{here}` for annotated/.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from programs import input_file

HERE = Path(__file__).parent / "annotated"


@dataclass(frozen=True)
class Annotated:
    """A program, and how it is built from a package's source."""

    package: str
    field: str
    sources: tuple[str, ...]
    """Files, or patterns, of C or C++; told by their names' ends."""
    flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ("-lm",)
    arguments: Callable[[], list[str]] = list
    tolerance: float = 1e-3
    """How far numbers of its output may lie apart, relatively, where a sum was computed in another order."""
    folder: Path | None = None
    """Where its source is, if it is no Debian package."""
    ignored: str = ""
    """A pattern: lines of its output that match it differ each time."""


def _alignment() -> Path:
    """Some 60 aligned sequences that descend from one another."""

    def write(path: Path) -> None:
        import random

        draw = random.Random(5)
        sequences = ["".join(draw.choice("ACGT") for _ in range(120))]
        while len(sequences) < 70:
            parent = draw.choice(sequences)
            child = [draw.choice("ACGT-") if draw.random() < 0.08 else letter for letter in parent]
            sequences.append("".join(child))
        path.write_text("".join(f">s{k}\n{sequence}\n" for k, sequence in enumerate(sequences)))

    return input_file("alignment.fasta", write)


def _named(folder: str, names: str) -> list[str]:
    return [f"{folder}/{name}.c" for name in names.split()]


PROGRAMS = (
    Annotated(
        "fasttree",
        "phylogenetics",
        ("{}/fasttree.c",),
        ("-DNO_SSE",),
        arguments=lambda: ["-nt", "-nopr", "-fastest", "-seed", "1", str(_alignment())],
    ),
    Annotated(
        "hpcc",
        "Fourier transform, streams",
        (
            "{here}/hpcc/main.c",
            *(f"{{}}/FFT/{name}.c" for name in ("bcnrand", "fft235", "zfft1d", "wrapfftw", "pzfft1d", "wrapmpifftw")),
            "{}/STREAM/stream.c",
        ),
        ("-I{here}/hpcc", "-I{}/include", "-I{}", "-I{}/hpl/include", "-DFFTE_L2SIZE=1024", "-DLONG_IS_64BITS"),
    ),
    Annotated(
        "hypre",
        "linear algebra, multigrid",
        (
            "{here}/hypre/main.c",
            "{here}/hypre/unused.c",
            *_named("{}/src/seq_mv", "csr_matop csr_matrix csr_matvec genpart vector vector_batched"),
            *_named(
                "{}/src/parcsr_mv",
                "HYPRE_parcsr_matrix new_commpkg par_csr_assumed_part par_csr_communication par_csr_matop "
                "par_csr_matop_marked par_csr_matrix par_csr_matvec par_csr_triplemat par_vector par_vector_batched "
                "gen_fffc",
            ),
            *_named(
                "{}/src/parcsr_ls",
                "HYPRE_parcsr_amg aux_interp par_2s_interp par_amg par_amg_setup par_amg_solve par_cg_relax_wt "
                "par_coarse_parms par_coarsen par_cycle par_gauss_elim par_indepset par_interp par_jacobi_interp "
                "par_laplace par_lr_interp par_mod_lr_interp par_multi_interp par_nodal_systems par_rap "
                "par_rap_communication par_relax par_relax_interface par_relax_more par_scaled_matnorm par_stats "
                "par_strength partial gen_redcs_mat ams par_cheby par_mod_multi_interp par_nongalerkin par_add_cycle",
            ),
            *_named(
                "{}/src/utilities",
                "amg_linklist binsearch error exchange_data general hopscotch_hash int_array memory merge_sort "
                "mpistubs nvtx prefix_sum printf qsort random threading timer utilities",
            ),
            "{}/src/blas/*.c",
        ),
        (
            "-I{here}/hypre",
            *(f"-I{{}}/src{folder}" for folder in ("", "/utilities", "/seq_mv", "/parcsr_mv", "/parcsr_ls", "/krylov")),
            *(f"-I{{}}/src/{folder}" for folder in ("blas", "lapack", "IJ_mv", "parcsr_block_mv", "multivector")),
        ),
        ("-lm",),
    ),
    Annotated(
        "kissfft",
        "Fourier transform",
        ("{here}/kissfft.c", "{}/kiss_fft.c"),
        ("-I{}", "-D_OPENMP=201511"),
    ),
    Annotated(
        "libimagequant",
        "image processing",
        (
            "{here}/imagequant.c",
            *(
                f"{{}}/{name}.c"
                for name in ("blur", "kmeans", "libimagequant", "mediancut", "mempool", "nearest", "pam")
            ),
        ),
        ("-I{}", "-std=gnu99", "-DUSE_SSE=0"),
    ),
    Annotated(
        "libraw",
        "photographs",
        (
            "{here}/libraw.cpp",
            "{}/src/libraw_c_api.cpp",
            "{}/src/libraw_datastream.cpp",
            "{}/src/*/*[!h].cpp",
        ),  # those with _ph are empty
        # -fwrapv: src/utils/open.cpp:210 overflows, and works on another picture at -O1 without
        ("-I{}", "-fwrapv", "-DNO_JASPER", "-DNO_JPEG", "-DNO_LCMS", "-DLIBRAW_NODLL", "-DLIBRAW_NOTHREADS"),
    ),
    Annotated(
        "pfstools",
        "tone mapping",
        (
            "{here}/pfstools/main.cpp",
            "{}/src/tmo/mantiuk06/contrast_domain.cpp",
        ),
        ("-I{here}/pfstools", "-I{}/src/tmo/mantiuk06", "-I{}/src/tmo/pfstmo"),
    ),
    Annotated(
        "soundtouch",
        "audio",
        (
            "{here}/soundtouch.cpp",
            *(
                f"{{}}/source/SoundTouch/{name}.cpp"
                for name in (
                    *("AAFilter", "BPMDetect", "FIFOSampleBuffer", "FIRFilter", "InterpolateCubic"),
                    *("InterpolateLinear", "InterpolateShannon", "PeakFinder", "RateTransposer", "SoundTouch"),
                    *("TDStretch", "cpu_detect_x86"),
                )
            ),
        ),
        ("-I{}/include", "-DSOUNDTOUCH_DISABLE_X86_OPTIMIZATIONS", "-DST_SIMD_AVOID_UNALIGNED"),
    ),
)
EVERYTHING = {program.package: program for program in PROGRAMS}
