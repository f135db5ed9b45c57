"""Tasks on the workers of a Dask cluster, this machine's own, or one that runs already."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from tracekit import extras
from tracekit.formats.errors import TracekitError
from tracekit.many.processes import Processes
from tracekit.segments.pool import ENDS, Said, Task
from tracekit.version import __version__

SCHEME = "dask"
PROCESSES = "processes"
"""The engine of processes on this machine, without a cluster."""
PATIENCE = 20
"""Seconds that a scheduler has to answer."""
EVERY = 0.5
"""Seconds from one look at the connection to the next."""
SILENT = logging.CRITICAL + 1
"""A level of logs that nothing reaches."""


def address_of(engine: str) -> str | None:
    """The address in ``dask://HOST:PORT``; None for ``dask``. Raises TracekitError for what is no engine."""
    scheme, separator, address = engine.partition("://")
    if scheme != SCHEME or (separator and not address):
        raise TracekitError(
            f"There is no engine {engine!r}: it is processes, dask, or dask://HOST:PORT of a running scheduler."
        )
    return address or None


class Cluster:
    """A connection to a scheduler, and its workers. A context manager: its end ends what runs there for it."""

    def __init__(self, address: str | None, workers: int) -> None:
        """`workers`: of a cluster on this machine, which is started where there is no `address`.

        Raises TracekitError if Dask is not installed, the scheduler does not answer, it has no worker, or a worker has
        another tracekit than this one.
        """
        distributed = _distributed()
        _keep_quiet()
        self._address = address
        self._ended = contextlib.ExitStack()
        try:
            if address is None:
                local = distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    memory_limit=0,
                    dashboard_address=None,
                    silence_logs=SILENT,  # of the workers, which share the standard error of this process
                )
                self._client = self._ended.enter_context(distributed.Client(self._ended.enter_context(local)))
            else:
                self._client = self._ended.enter_context(distributed.Client(f"tcp://{address}", timeout=PATIENCE))
            self._refuse_other_versions()
        except (OSError, ValueError) as error:
            self.close()
            raise TracekitError(f"No Dask scheduler answers at {address or 'this machine'} ({error}).") from None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the scheduler; a cluster of this machine ends."""
        self._ended.close()

    @property
    def threads(self) -> int:
        """Of all workers together, as far as they have come."""
        return sum(self._client.nthreads().values())

    def tasks(self, tasks: Iterable[Task], most: int) -> Tasks:
        """Run `tasks`, `most` at once, in the order given; each is taken when there is room for it."""
        return Tasks(self._client, tasks, most)

    def _refuse_other_versions(self) -> None:
        if self._address is not None:
            self._wait_for_a_worker()

        def version() -> str | None:  # a function inside another travels whole, for tracekit may be missing there
            try:
                import tracekit
            except ImportError:
                return None
            return tracekit.__version__

        for worker, found in self._client.run(version).items():
            _refuse(worker, found)

    def _wait_for_a_worker(self) -> None:
        distributed = _distributed()
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except (TimeoutError, distributed.TimeoutError):
            raise TracekitError(
                f"The Dask scheduler at {self._address} has no worker: dask worker {self._address}."
            ) from None


class Tasks:
    """Tasks that run on workers. A context manager: its end cancels them."""

    def __init__(self, client: Any, tasks: Iterable[Task], most: int) -> None:
        self._client = client
        self._waiting = iter(tasks)
        self._outputs: dict[int, str] = {}
        self._most = most
        self._topic = f"tracekit-{uuid.uuid4().hex}"
        self._said: queue.SimpleQueue[Said | tuple[int, Any]] = queue.SimpleQueue()
        self._running: dict[int, Any] = {}

    def __enter__(self) -> Tasks:
        self._client.subscribe_topic(self._topic, lambda event: self._said.put(Said(*event[1])))
        while len(self._running) < self._most and self._submit():
            pass
        return self

    def __exit__(self, *error: object) -> None:
        if self._client.status == "running":
            self._client.cancel(list(self._running.values()), force=True)
            self._client.unsubscribe_topic(self._topic)

    def said(self) -> Iterator[Said]:
        """What the tasks say, as they say it, until the last one has ended, with its profiles in its output.

        Raises TracekitError if the scheduler is lost.
        """
        while self._running:
            try:
                said = self._said.get(timeout=EVERY)
            except queue.Empty:
                if self._client.status != "running":
                    raise TracekitError("The connection to the Dask scheduler is lost: run it again.") from None
                continue
            if isinstance(said, Said):
                yield said
                continue
            number, future = said
            if future.status != "cancelled":
                del self._running[number]
                yield self._end(number, future)
                self._submit()

    def _submit(self) -> bool:
        """Hand out the next task, if there is one."""
        number, task = next(self._waiting, (-1, None))
        if task is None:
            return False
        self._outputs[number] = task["output"]
        future = self._client.submit(analysed, number, dict(task), self._topic, __version__, pure=False)
        self._running[number] = future
        future.add_done_callback(lambda ended: self._said.put((number, ended)))
        return True

    def _end(self, number: int, future: Any) -> Said:
        if future.status == "error":
            error = future.exception()
            name = type(error).__name__
            return Said(number, "failed", f"No worker of the cluster came to its end ({name}: {error}).")
        word, content, profiles = future.result()
        if profiles:
            with open(self._outputs[number], "wb") as output:
                output.write(profiles)
        return Said(number, word, content)


def analysed(number: int, task: dict[str, Any], topic: str, version: str) -> tuple[str, Any, bytes]:
    """What a worker does: a task, in a process of its own. Returns its last word, what is beside it, and its profiles.

    The process ends with the worker, and with the task if nobody waits for it any more.
    """
    distributed = _distributed()
    worker = distributed.get_worker()
    try:
        _refuse(worker.address, __version__, version)
    except TracekitError as error:
        return "failed", str(error), b""
    key = worker.get_current_task()
    with tempfile.TemporaryDirectory(prefix="tracekit-") as folder:
        output = os.path.join(folder, "profile")
        threads = min(task["threads"], os.cpu_count() or 1)
        with Processes([(number, {**task, "output": output, "threads": threads})], 1) as processes:
            for said in processes.said():
                if said.word not in ENDS:
                    worker.log_event(topic, (said.number, said.word, said.content))
                    if worker.state.tasks[key].state == "cancelled":
                        return "failed", "Nobody waits for it.", b""
                    continue
                profiles = b""
                if said.word == "done":
                    with open(output, "rb") as file:
                        profiles = file.read()
                return said.word, said.content, profiles
    raise AssertionError("processes say how they end")


def _refuse(worker: str, found: str | None, wanted: str = __version__) -> None:
    if found is None:
        raise TracekitError(f"The worker {worker} has no tracekit: install tracekit {wanted} there.")
    if found != wanted:
        raise TracekitError(f"The worker {worker} has tracekit {found}, and this is tracekit {wanted}.")


def _distributed() -> Any:
    extras.require("cluster", "Analysing on a cluster")
    import distributed

    return distributed


def _keep_quiet() -> None:
    """Dask's log is not the user's: what went wrong is said in a sentence. Its loggers have levels of their own."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(SILENT)
