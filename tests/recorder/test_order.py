"""What orders threads beside mutexes: readers' locks, semaphores, barriers, once, atomics, reused stacks; versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import prepared
from tests.recorder.recording import ENVIRONMENT, TRACEKIT, Recorded, build, events, read, record
from tracekit.formats.container import WITH_PLANES
from tracekit.formats.event_values import AtomicOrder, SyncKind
from tracekit.formats.events import EVENTS
from tracekit.formats.reader import TraceReader

LOAD, STORE, ACQUIRE, RELEASE, SIZE = AtomicOrder
WORDS = {event.name: event.words for event in EVENTS if event.since == 2 or event.name in ("lock", "unlock")}


def recorded(folder: Path, source: str, *flags: str, cxx: bool = False) -> tuple[list[Recorded], dict[str, int], int]:
    """The records of a program, in the order of tickets where they have one; what it printed; the format version."""
    run = record(folder, build(folder, source, "-pthread", *flags, cxx=cxx))
    assert run.returncode == 0, run.stderr
    check = prepared.run([*TRACEKIT, "check", "trace.zst"], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    assert check.returncode == 0, check.stdout
    with TraceReader(folder / "trace.zst") as trace:
        version = trace.version
        assert trace.oldest_reader == version
    printed = (line.split() for line in run.stdout.splitlines())
    return read(folder / "trace.zst"), {name: int(value, 16) for name, value in printed}, version


def of(records: list[Recorded], address: int) -> list[Recorded]:
    """Those that have a ticket and this address, in the order of tickets."""
    found = [each for each in records if "address" in WORDS.get(each.name, ())[1:2] and each.words[1] == address]
    return sorted(found, key=lambda each: each.words[0])


LOCKS = r"""
    #include <errno.h>
    #include <pthread.h>
    #include <semaphore.h>
    #include <stdio.h>
    #include <threads.h>
    static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
    static pthread_mutex_t robust, waited = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    static pthread_once_t first = PTHREAD_ONCE_INIT;
    static pthread_barrier_t barrier;
    static mtx_t plain;
    static sem_t semaphore;
    static int made;
    static void make(void) { made++; }
    static void *dies(void *none) { pthread_mutex_lock(&robust); return none; }
    static void give_up(void *lock) { pthread_mutex_unlock(lock); }
    static void *waits(void *none)
    {
        pthread_mutex_lock(&waited);
        pthread_cleanup_push(give_up, &waited);
        sem_post(&semaphore);
        for (;;) pthread_cond_wait(&never, &waited);
        pthread_cleanup_pop(1);
        return none;
    }
    static int c11(void *none) { (void)none; mtx_lock(&plain); made++; mtx_unlock(&plain); return 7; }
    static void *arrives(void *none)
    {
        for (int round = 0; round < 3; round++) pthread_barrier_wait(&barrier);
        pthread_once(&first, make);
        return none;
    }
    int main(void)
    {
        pthread_t one, two;
        thrd_t other;
        int answer;
        pthread_mutexattr_t attributes;
        printf("shared %p\nrobust %p\nwaited %p\n", (void *)&shared, (void *)&robust, (void *)&waited);
        printf("first %p\nbarrier %p\nplain %p\n", (void *)&first, (void *)&barrier, (void *)&plain);
        printf("semaphore %p\n", (void *)&semaphore);
        pthread_rwlock_rdlock(&shared); pthread_rwlock_unlock(&shared);
        pthread_rwlock_wrlock(&shared);
        if (pthread_rwlock_tryrdlock(&shared) == 0) return 1;
        pthread_rwlock_unlock(&shared);
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&robust, &attributes);
        pthread_create(&one, NULL, dies, NULL);
        pthread_join(one, NULL);
        if (pthread_mutex_lock(&robust) != EOWNERDEAD) return 2;
        pthread_mutex_consistent(&robust);
        pthread_mutex_unlock(&robust);
        sem_init(&semaphore, 0, 0);
        if (sem_trywait(&semaphore) == 0) return 3;
        pthread_create(&one, NULL, waits, NULL);
        sem_wait(&semaphore);
        pthread_mutex_lock(&waited); /* so it waits by now */
        pthread_mutex_unlock(&waited);
        pthread_cancel(one);
        pthread_join(one, NULL);
        mtx_init(&plain, mtx_plain);
        thrd_create(&other, c11, NULL);
        thrd_join(other, &answer);
        if (answer != 7) return 4;
        pthread_barrier_init(&barrier, NULL, 2);
        pthread_create(&one, NULL, arrives, NULL);
        pthread_create(&two, NULL, arrives, NULL);
        pthread_join(one, NULL);
        pthread_join(two, NULL);
        return made == 2 ? 0 : 5;
    }"""


def test_locks_semaphores_barriers_and_once(tmp_path: Path) -> None:
    records, at, version = recorded(tmp_path, LOCKS)
    assert version == WITH_PLANES
    names = {name: [each.name for each in of(records, address)] for name, address in at.items()}
    assert names["shared"] == ["lock_shared", "unlock", "lock", "unlock"]
    assert names["robust"] == ["lock", "lock", "unlock"]
    # The cancelled thread has the mutex again when its cleanup gives it up.
    assert names["waited"] == ["lock", "unlock", "lock", "unlock", "lock", "unlock"]
    # What is initialised before there are threads begins unsaid.
    assert names["plain"] == ["resource_begin", "lock", "unlock"]
    assert names["semaphore"] == ["resource_begin", "release", "acquire"]
    assert names["first"] == ["release", "acquire", "acquire"]
    assert names["barrier"][:2] == ["resource_begin", "barrier_init"]
    assert names["barrier"].count("barrier_enter") == names["barrier"].count("barrier_leave") == 6
    (posted,), (waited,) = (
        [each for each in of(records, at["semaphore"]) if each.name == name] for name in ("release", "acquire")
    )
    assert posted.words[2:] == [SyncKind.SEMAPHORE, posted.stream] and waited.words[2:] == [SyncKind.SEMAPHORE, 0]
    (made,) = [each for each in of(records, at["barrier"]) if each.name == "barrier_init"]
    assert made.words[2] == 2
    assert {each.words[2] for each in of(records, at["first"])} == {SyncKind.ONCE}
    assert len([each for each in records if each.name == "thread_start"]) == 5


ATOMICS = r"""
    #include <atomic>
    #include <cstdio>
    #include <thread>
    static std::atomic<int> value{0}, flag{0};
    static int *made() { static int *once = new int(5); return once; }
    int main()
    {
        std::printf("value %p\nflag %p\n", (void *)&value, (void *)&flag);
        value.store(1, std::memory_order_release);
        int expected = value.load(std::memory_order_relaxed);
        value.fetch_add(1, std::memory_order_acq_rel);
        value.compare_exchange_strong(expected, 9, std::memory_order_seq_cst, std::memory_order_relaxed);
        expected = 2;
        value.compare_exchange_strong(expected, 9, std::memory_order_release, std::memory_order_relaxed);
        std::thread other([] {
            for (int i = 0; i < 1000; i++) value.fetch_add(1, std::memory_order_relaxed);
            std::atomic_thread_fence(std::memory_order_release);
            flag.store(*made(), std::memory_order_relaxed);
        });
        for (int i = 0; i < 1000; i++) value.fetch_add(1, std::memory_order_relaxed);
        while (flag.load(std::memory_order_relaxed) != 5) {}
        std::atomic_thread_fence(std::memory_order_acquire);
        other.join();
        std::atomic_signal_fence(std::memory_order_seq_cst);
        return value == 2009 && *made() == 5 ? 0 : 1;
    }"""


@pytest.mark.parametrize("flags", [("-O1",), ("-O0", "--record=both"), ("-O2", "--at=machine", "--values")])
def test_atomics(tmp_path: Path, flags: tuple[str, ...]) -> None:
    records, at, version = recorded(tmp_path, ATOMICS, "--threads", "-std=c++17", *flags, cxx=True)
    assert version == WITH_PLANES
    sized = [each.words[2] for each in of(records, at["value"])]
    orders = [order - 3 * SIZE for order in sized]
    update = LOAD | STORE
    assert orders[:5] == [STORE | RELEASE, LOAD, update | ACQUIRE | RELEASE, LOAD, update | RELEASE]
    assert orders[5:] == [update] * 2000 + [LOAD | ACQUIRE]
    streams = {each.stream for each in of(records, at["value"])}
    assert len(streams) == 2
    seen = of(records, at["flag"])
    assert [each.words[2] for each in seen if each.stream != 0] == [STORE + 3 * SIZE]
    fences = [each for each in records if each.name == "fence"]
    assert [(each.stream == 0, each.words[1]) for each in sorted(fences, key=lambda each: each.words[0])] == [
        (False, RELEASE),
        (True, ACQUIRE),
    ]
    # The guard of a static variable is released once, by the library on behalf of the thread that initialised it.
    released = [each for each in records if each.name == "release"]
    assert len(released) == 1 and released[0].words[2] == SyncKind.ONCE
    assert [each.words[2] for each in of(records, released[0].words[1]) if each.name == "atomic"][:2] == [
        LOAD + ACQUIRE + SIZE,
        STORE + RELEASE + SIZE,
    ]


def test_a_lock_of_a_program_that_has_one_thread_at_a_time(tmp_path: Path) -> None:
    source = r"""
        #include <pthread.h>
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        static _Atomic int counted;
        static void *work(void *none)
        {
            counted++;
            return none;
        }
        int main(void)
        {
            pthread_t thread;
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
            pthread_create(&thread, NULL, work, NULL);
            pthread_join(thread, NULL);
            return counted - 1;
        }"""
    records, _, version = recorded(tmp_path, source)
    assert version == WITH_PLANES and "lock" in {each.name for each in records}


REUSED = r"""
    #include <pthread.h>
    #include <unistd.h>
    static _Atomic int over;
    static __thread int own;
    static void *work(void *none) { own++; over++; return none; }
    int main(void)
    {
        pthread_attr_t detached;
        pthread_attr_init(&detached);
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        for (int i = 1; i <= 4; i++) {
            pthread_t thread;
            pthread_create(&thread, &detached, work, NULL);
            while (over < i) usleep(1000);
            usleep(20000);
        }
        return 0;
    }"""


def test_the_memory_of_a_thread_that_nobody_joined_is_new_to_the_next(tmp_path: Path) -> None:
    records, _, version = recorded(tmp_path, REUSED)
    reused = [each for each in records if each.name == "thread_memory"]
    assert version == WITH_PLANES and 1 <= len(reused) <= 3
    assert all(each.words[1] >= 1 << 16 for each in reused)


HANDLED = r"""
    #include <semaphore.h>
    #include <signal.h>
    static sem_t semaphore;
    static void handle(int number) { (void)number; sem_post(&semaphore); }
    int main(void)
    {
        sem_init(&semaphore, 0, 0);
        signal(SIGUSR1, handle);
        raise(SIGUSR1);
        return sem_wait(&semaphore);
    }"""


def test_what_a_handler_releases_is_its_threads(tmp_path: Path) -> None:
    recorded(tmp_path, HANDLED)
    (posted,) = events(tmp_path / "trace.zst", "release")
    assert posted.stream != 0 and posted.words[3] == 0
