"""Locks, conditions and threads of C++ and of pthread: their events, balanced, in the order in which they happened."""

from __future__ import annotations

from pathlib import Path

from tests import prepared
from tests.recorder.recording import ENVIRONMENT, TRACEKIT, build, events, record

PROGRAM = r"""
    #include <atomic>
    #include <chrono>
    #include <condition_variable>
    #include <cstdio>
    #include <future>
    #include <mutex>
    #include <pthread.h>
    #include <shared_mutex>
    #include <thread>
    #include <vector>
    static std::mutex plain;
    static std::timed_mutex timed;
    static std::shared_timed_mutex shared;
    static std::condition_variable changed;
    static bool ready;
    static long total;
    static void work(long index)
    {
        { std::unique_lock<std::mutex> hold(plain); changed.wait(hold, [] { return ready; }); total += index; }
        if (timed.try_lock_for(std::chrono::seconds(50))) { total += index; timed.unlock(); }
        { std::shared_lock<std::shared_timed_mutex> read(shared, std::chrono::seconds(50)); }
        { std::unique_lock<std::shared_timed_mutex> write(shared, std::chrono::seconds(50)); total += index; }
    }
    int main()
    {
        std::printf("%p %p %p\n", (void *)&plain, (void *)&timed, (void *)&shared);
        std::fflush(stdout);
        std::vector<std::thread> threads;
        for (long i = 0; i < 3; i++) threads.emplace_back(work, i);
        { std::lock_guard<std::mutex> hold(plain); ready = true; }
        changed.notify_all();
        for (auto &thread : threads) thread.join();
        {
            std::unique_lock<std::mutex> hold(plain);
            changed.wait_for(hold, std::chrono::milliseconds(5));
        }
        long later = std::async(std::launch::async, [] { return total * 2; }).get();
        return later == 18 ? 0 : 1;
    }"""


def test_cxx_threads(tmp_path: Path) -> None:
    run = record(tmp_path, build(tmp_path, PROGRAM, "-std=c++17", "-pthread", cxx=True))
    assert run.returncode == 0, run.stderr
    plain, timed, shared = (int(word, 16) for word in run.stdout.split())
    trace = tmp_path / "trace.zst"
    check = prepared.run([*TRACEKIT, "check", trace], env=ENVIRONMENT, capture_output=True, text=True)
    assert check.returncode == 0, check.stdout
    assert len(events(trace, "thread_start")) == len(events(trace, "thread_join")) == 4
    order = sorted(events(trace, "lock", "lock_shared", "unlock"), key=lambda event: event.words[0])
    for lock, least in ((plain, 5), (timed, 3), (shared, 6)):
        seen = [event.name for event in order if event.words[1] == lock]
        taken = seen.count("lock") + seen.count("lock_shared")
        assert taken == seen.count("unlock") >= least
        assert seen.count("lock_shared") == (3 if lock == shared else 0)
        if lock != shared:  # which may have two readers
            assert seen == ["lock", "unlock"] * (len(seen) // 2)
