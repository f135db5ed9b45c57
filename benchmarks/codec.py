"""What the chunk codec costs: nanoseconds per record and per word, encoding (the reference) and decoding.

    python benchmarks/codec.py [--records N]     medians of 5, one core

Three streams, each of its own kind: predicted (strided accesses of a few loops), mixed (four fifths predicted, else
near the last address), random (whole words).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from tracekit.formats.chunk import Chunk
from tracekit.formats.chunk_codec import Decoder, encode
from tracekit.formats.events import FIRST_PATH, NONE

RUNS = 5
PATHS = 64


def stream(kind: str, records: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(arity, ids, words) of a stream of `records` records with two words on average."""
    rng = np.random.default_rng(1)
    arity = np.full(FIRST_PATH + PATHS, NONE, np.uint32)
    arity[FIRST_PATH:] = 1 + np.arange(PATHS) % 4  # 1 to 4 words
    period = 8 if kind != "random" else PATHS
    if kind == "random":
        ids = (FIRST_PATH + rng.integers(0, PATHS, records)).astype(np.uint32)
    else:
        ids = FIRST_PATH + np.arange(records) // 1000 % (PATHS // period) * period + np.arange(records) % period
    ids = ids.astype(np.uint32)
    total = int(arity[ids].sum())
    owner = np.repeat(ids, arity[ids]).astype(np.uint64)
    words = (owner << np.uint64(32)) + np.arange(total, dtype=np.uint64) // np.uint64(20) * np.uint64(8)
    if kind == "random":
        words = rng.integers(0, 1 << 63, total).astype(np.uint64)
    elif kind == "mixed":
        words += np.where(rng.random(total) < 0.2, rng.integers(0, 4096, total), 0).astype(np.uint64)
    return arity, ids, words


def median(run: Callable[[], object]) -> float:
    """Seconds of processor time, after a warm-up."""
    run()
    times = []
    for _ in range(RUNS):
        started = time.process_time()
        run()
        times.append(time.process_time() - started)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=2_000_000)
    records = parser.parse_args().records
    print(f"{'stream':10} {'records':>9} {'words':>9} {'bytes/rec':>9}   {'encode':>19}   {'decode':>19}")
    for kind in ("predicted", "mixed", "random"):
        arity, ids, words = stream(kind, records)
        payload = encode(ids, words, arity).build()
        chunk, decoder = Chunk.parse(payload), Decoder(arity)

        def decode_all(chunk: Chunk = chunk, decoder: Decoder = decoder) -> None:
            decoder.start(chunk)
            while decoder.batch() is not None:
                pass

        encoding = median(lambda ids=ids, words=words, arity=arity: encode(ids, words, arity))  # type: ignore[misc]
        decoding = median(decode_all)
        cells = [
            f"{1e9 * seconds / len(ids):5.1f} ns/r {1e9 * seconds / len(words):5.1f} ns/w"
            for seconds in (encoding, decoding)
        ]
        print(f"{kind:10} {len(ids):9} {len(words):9} {len(payload) / len(ids):9.2f}   {cells[0]:>19}   {cells[1]:>19}")


if __name__ == "__main__":
    main()
