"""The process that collects, as `record` forks it."""

from __future__ import annotations

import gc
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tracekit.recorder.collector_messages import CollectorOptions
from tracekit.recorder.pool import Pool


def collect(
    pool: Pool,
    descriptor: int,
    meta: Mapping[str, Any],
    options: CollectorOptions,
    control: int,
    result: int,
) -> None:
    """The forked child of `record`: collect, send the Outcome as JSON to the descriptor ``result``, never return."""
    status = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXFSZ, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        pool.adopt()
        gc.disable()  # importing makes many objects that stay
        from tracekit.recorder.collector import Collector  # what it needs is imported while the program starts

        gc.freeze()
        gc.enable()
        with open(control, "rb") as stream:
            outcome = Collector(pool, descriptor, meta, options).run(stream)
        os.write(result, json.dumps(asdict(outcome)).encode())
        status = 0
    except BaseException as error:  # a bug: the program must not wait for a collector that is gone
        pool.discard()
        os.write(result, json.dumps({"failure": f"the collector failed: {error!r}"}).encode())
        if os.environ.get("TRACEKIT_DEBUG"):
            import traceback

            traceback.print_exc()
    finally:
        os._exit(status)
