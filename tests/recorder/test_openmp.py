"""OpenMP programs (libomp): the answers, what each thread leaves in the trace, and the same from both recorders."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests import prepared
from tests.needs import needs
from tests.recorder.recording import ENVIRONMENT, ROOT, TRACEKIT, build, events, read, record
from tracekit.formats.event_values import SyncRegion, TaskDependence, TaskFlag, TaskStatus
from tracekit.recorder.toolchain import find_clang

SOURCE = (ROOT / "fixtures/openmp.c").read_text()


pytestmark = needs("libomp")


@pytest.fixture(scope="module", params=["paths", "blocks", "both"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A recorded run: its trace, its output."""
    folder = tmp_path_factory.mktemp("openmp")
    run = record(folder, build(folder, SOURCE, "-fopenmp", f"--record={request.param}"))
    assert run.returncode == 0, run.stderr
    return folder / "trace.zst", run.stdout


def info(trace: Path) -> dict[str, Any]:
    out = prepared.run([*TRACEKIT, "info", "--json", trace], env=ENVIRONMENT, capture_output=True, check=True).stdout
    found: dict[str, Any] = json.loads(out)
    return found


def test_answers_and_soundness(recorded: tuple[Path, str]) -> None:
    trace, output = recorded
    assert output == "71820100 4 6 144 101133400\n"
    check = prepared.run([*TRACEKIT, "check", trace], env=ENVIRONMENT, capture_output=True, text=True)
    assert check.returncode == 0, check.stdout
    assert info(trace)["threads"] >= 4


def test_calls_objects_and_threads(recorded: tuple[Path, str]) -> None:
    trace, _ = recorded
    records = read(trace)
    squares = Counter(found.stream for found in records if found.name == "square")
    assert squares.total() >= 600
    ran = {found.stream for found in records if found.name.startswith("main.omp_outlined")}
    assert len(ran) >= 4  # each thread has the outlined functions at its root
    allocated = [found for found in events(trace, "heap_alloc") if found.words[2] == 80]
    freed = {found.words[1]: found.stream for found in events(trace, "heap_free")}
    assert len(allocated) == 4 and all(freed[found.words[1]] == found.stream for found in allocated)
    created = {found.words[1] for found in events(trace, "thread_create")}
    assert ran - {0} <= created


TASKS = r"""
    #include <omp.h>
    long x, y;
    int main(void)
    {
        omp_lock_t lock;
        omp_init_lock(&lock);
    #pragma omp parallel num_threads(2)
        {
    #pragma omp critical
            x++;
            omp_set_lock(&lock);
            y++;
            omp_unset_lock(&lock);
    #pragma omp barrier
    #pragma omp single
            {
    #pragma omp task depend(out : x)
                x++;
    #pragma omp task depend(in : x)
                y += x;
    #pragma omp taskwait
    #pragma omp taskgroup
    #pragma omp task
                y++;
            }
        }
        return 0;
    }"""


def test_logical_tasks(tmp_path: Path) -> None:
    run = record(tmp_path, build(tmp_path, TASKS, "-fopenmp", "-g"))
    assert run.returncode == 0, run.stderr
    trace = tmp_path / "trace.zst"
    (made,) = events(trace, "parallel_begin")
    team = made.words[1]
    assert made.words[2] == 2
    implicit = [found for found in events(trace, "implicit_begin") if found.words[2] == team]
    assert sorted(found.words[1] for found in implicit) == [0, 1] and len({found.stream for found in implicit}) == 2
    created = [found.words[2] for found in events(trace, "task_create")]
    assert len(set(created)) == 3 and not set(created) & {found.words[3] for found in implicit}
    over = [found.words[3] for found in events(trace, "task_schedule") if found.words[1] == TaskStatus.COMPLETE]
    assert sorted(over) == sorted(created)
    on = [tuple(found.words[1:]) for found in events(trace, "task_dependence")]
    assert len({address for _, address, _ in on}) == 1 and [task for _, _, task in on] == created[:2]
    assert [kind for kind, _, _ in on] == [TaskDependence.INOUT, TaskDependence.IN]
    kinds = Counter(found.words[1] for found in events(trace, "sync_begin"))
    assert kinds == Counter(found.words[1] for found in events(trace, "sync_end"))
    assert kinds[SyncRegion.TASKWAIT] == kinds[SyncRegion.TASKGROUP] == 1 and kinds[SyncRegion.BARRIER_EXPLICIT] == 2
    held: dict[int, int] = {}
    for found in sorted(
        events(trace, "mutex_acquired") + events(trace, "mutex_released"), key=lambda one: one.words[0]
    ):
        stream = held.pop(found.words[2], None)
        assert stream in (None, found.stream)
        if found.name == "mutex_acquired":
            assert stream is None  # nobody has what another one has not given up
            held[found.words[2]] = found.stream
    assert not held and not events(trace, "lock") and not events(trace, "unlock")  # those of libomp itself


COPIES = r"""
    long list[64];
    __attribute__((noinline)) void add(long *to, long by) { *to += by; }
    int main(void)
    {
    #pragma omp parallel num_threads(2)
    #pragma omp single
        {
            long local = 3;
    #pragma omp taskloop grainsize(1) firstprivate(local)
            for (int i = 0; i < 64; i++)
                add(&local, i), add(&list[i], local);
    #pragma omp task
            add(&list[0], 1);
        }
        return 0;
    }"""


def test_memory_of_tasks_that_the_runtime_copies_is_new(tmp_path: Path) -> None:
    """The tasks of a taskloop are made without a call that says where they lie, which is where others may have lain."""
    run = record(tmp_path, build(tmp_path, COPIES, "-fopenmp", "-g"))
    assert run.returncode == 0, run.stderr
    found = events(tmp_path / "trace.zst", "task_create", "task_schedule", "task_memory")
    assert sum(event.name == "task_create" for event in found) >= 65
    new: Counter[str] = Counter()
    for event, behind in pairwise(sorted(found, key=lambda event: event.stream)):
        if event.name == "task_schedule" and event.words[1] == TaskStatus.SWITCH and event.stream == behind.stream:
            new[behind.name] += 1
            assert behind.name != "task_memory" or behind.words[2] >= 8
    assert new["task_memory"] >= 64 and new["task_schedule"] >= 1


OTHER_TOOL = r"""
    #include <omp-tools.h>
    #include <stdio.h>
    static int teams, tasks, wrong;
    static ompt_get_task_info_t info;
    static void begin(ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *team, unsigned n, int flags,
                      const void *place)
    {
        wrong += team->value != 0;
        team->value = 1000 + ++teams;
    }
    static void end(ompt_data_t *team, ompt_data_t *task, int flags, const void *place)
    {
        wrong += team->value != 1000 + teams;
    }
    static void create(ompt_data_t *creator, const ompt_frame_t *frame, ompt_data_t *task, int flags, int depends,
                       const void *place)
    {
        task->value = 5000 + __atomic_add_fetch(&tasks, 1, __ATOMIC_RELAXED);
    }
    static void schedule(ompt_data_t *task, ompt_task_status_t status, ompt_data_t *next)
    {
        ompt_data_t *now = NULL;
        if (status == ompt_task_switch) {
            info(0, NULL, &now, NULL, NULL, NULL);
            wrong += now != next || next->value <= 5000;
        }
    }
    static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *data)
    {
        ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
        info = (ompt_get_task_info_t)lookup("ompt_get_task_info");
        set(ompt_callback_parallel_begin, (ompt_callback_t)begin);
        set(ompt_callback_parallel_end, (ompt_callback_t)end);
        set(ompt_callback_task_create, (ompt_callback_t)create);
        set(ompt_callback_task_schedule, (ompt_callback_t)schedule);
        return 1;
    }
    static void finalize(ompt_data_t *data)
    {
        printf("%d team, %d tasks, %d wrong\n", teams, tasks, wrong);
    }
    ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime)
    {
        static ompt_start_tool_result_t result = {initialize, finalize, {0}};
        return &result;
    }"""


def test_another_tool_beside(tmp_path: Path) -> None:
    """Both see each team and task, each with what it keeps of it."""
    (tmp_path / "tool.c").write_text(OTHER_TOOL)
    command = [find_clang().path, "-shared", "-fPIC", "-o", tmp_path / "tool.so", tmp_path / "tool.c"]
    subprocess.run(command, check=True, capture_output=True)
    other = {"OMP_TOOL_LIBRARIES": str(tmp_path / "tool.so")}
    run = record(tmp_path, build(tmp_path, TASKS, "-fopenmp"), environment=other)
    assert run.returncode == 0 and run.stdout == "1 team, 3 tasks, 0 wrong\n", run.stderr
    trace = tmp_path / "trace.zst"
    assert len(events(trace, "parallel_begin")) == 1 and len(events(trace, "task_create")) == 3


WAITS_IN_WAITS = """
#include <stdio.h>
#include <unistd.h>
static int outer[8], inner[8], sum;
static void wait_inside(int k)
{
    #pragma omp task depend(out : inner[k])
    {
        usleep(200);
        inner[k] = k;
    }
    #pragma omp taskwait depend(in : inner[k])
    inner[k] += 1;
}
int main(void)
{
    #pragma omp parallel num_threads(2)
    #pragma omp single
    for (int round = 0; round < 20; round++) {
        for (int k = 0; k < 8; k++) {
            #pragma omp task depend(out : outer[k])
            {
                wait_inside(k);
                outer[k] = inner[k];
            }
        }
        #pragma omp taskwait depend(in : outer[7])
        sum += outer[7];
        #pragma omp taskwait
    }
    printf("%d\\n", sum);
    return 0;
}
"""
"""A thread that waits for some tasks runs another, which waits for some: libomp asserts that it does not."""


def test_a_task_that_waits_inside_a_wait(tmp_path: Path) -> None:
    run = record(tmp_path, build(tmp_path, WAITS_IN_WAITS, "-fopenmp", "--threads"))
    assert (run.returncode, run.stdout) == (0, "160\n"), run.stderr
    created = {
        row.words[2] for row in events(tmp_path / "trace.zst", "task_create") if row.words[1] & TaskFlag.TASKWAIT
    }
    dependences = Counter(
        row.words[3] for row in events(tmp_path / "trace.zst", "task_dependence") if row.words[3] in created
    )
    over = [
        row.words[3]
        for row in events(tmp_path / "trace.zst", "task_schedule")
        if row.words[1] == TaskStatus.TASKWAIT_COMPLETE
    ]
    assert len(created) == 180
    assert dependences == dict.fromkeys(created, 1)
    assert sorted(over) == sorted(created)


WAITS_OF_WORKERS = """
#include <omp.h>
#include <stdio.h>
static int sum;
static void wait_for_one(int k)
{
    int value = 0;
    #pragma omp task shared(value) depend(out : value)
    value = k;
    #pragma omp taskwait depend(in : value)
    #pragma omp atomic
    sum += value;
}
int main(void)
{
    for (int round = 0; round < 20; round++) {
        #pragma omp parallel num_threads(4)
        %s
    }
    printf("%%d\\n", sum);
    return 0;
}
"""
"""libomp leaves an implicit task's data, from the barrier at its end on, where a wait expects none."""


@pytest.mark.parametrize(
    ("region", "waits"),
    [
        ("if (omp_get_thread_num() == round % 4) wait_for_one(round);", 20),
        ("""{
            #pragma omp master
            for (int k = 0; k < 8; k++) {
                #pragma omp task
                wait_for_one(round);
            }
        }""", 160),
    ],
    ids=["in the next region", "in the barrier at the end"],
)  # fmt: skip
def test_any_thread_may_wait_for_some_tasks(region: str, waits: int, tmp_path: Path) -> None:
    run = record(tmp_path, build(tmp_path, WAITS_OF_WORKERS % region, "-fopenmp", "--threads"))
    assert (run.returncode, run.stdout) == (0, f"{sum(range(20)) * waits // 20}\n"), run.stderr
    trace = tmp_path / "trace.zst"
    created = [row.words[2] for row in events(trace, "task_create") if row.words[1] & TaskFlag.TASKWAIT]
    over = [row.words[3] for row in events(trace, "task_schedule") if row.words[1] == TaskStatus.TASKWAIT_COMPLETE]
    assert len(created) == waits and sorted(over) == sorted(created)
    ended = [row.words[1] for row in events(trace, "implicit_end")]
    assert sorted(ended) == sorted(row.words[3] for row in events(trace, "implicit_begin")) and 0 not in ended


NESTED = r"""
    #include <omp.h>
    static int rows[3][8], sums[3];
    static void fill(int *row, int by)
    {
    #pragma omp parallel for num_threads(2)
        for (int k = 0; k < 8; k++)
            row[k] = k * by;
    }
    static int sum(const int *row)
    {
        int all = 0;
    #pragma omp parallel for num_threads(2) reduction(+ : all)
        for (int k = 0; k < 8; k++)
            all += row[k];
        return all;
    }
    int main(void)
    {
        omp_set_max_active_levels(2);
        for (int round = 1; round < 4; round++)
    #pragma omp parallel num_threads(round)
            for (int k = 0; k < 40; k++) {
                fill(rows[omp_get_thread_num()], k);
                sums[omp_get_thread_num()] += sum(rows[omp_get_thread_num()]);
            }
        return sums[2] != 28 * 780;
    }
"""


def test_who_began_a_team_ends_it(tmp_path: Path) -> None:
    """libomp gives a team back before it says that it is over: another thread's had that one's number by then."""
    run = record(tmp_path, build(tmp_path, NESTED, "-fopenmp"))
    assert run.returncode == 0, run.stderr
    begun = {found.words[1]: found.stream for found in events(tmp_path / "trace.zst", "parallel_begin")}
    ended = [(found.words[1], found.stream) for found in events(tmp_path / "trace.zst", "parallel_end")]
    assert sorted(ended) == sorted(begun.items())
    assert len(ended) == 3 + 80 + 160 + 240
