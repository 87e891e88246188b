# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the tests of this room: strikes a process of a job at one of its system calls.

strace(1) counts the calls of the victim, a PE or the launcher, and makes the Nth call of a kind deadly or fail. It
detaches itself first (-D), so that a PE stays a child of the launcher.

WEFT_TEST_POINTS, a regular expression for "phase call ordinal", selects some of the calls."""
import collections
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

for room in "launch", "boot":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / room))
from harness import BUILD, STRICT, Result, end_leftovers, main, settled_leftovers, start  # noqa: E402

PHASES = str(BUILD / "tests/faults/phases")
LAUNCHER = "launcher"
LONG = bool(os.environ.get("WEFT_TEST_LONG"))
MEMORY_MIB = 1536  # memory that is left for other programs, and memory of a job
SECONDS_MAX = 2 if STRICT else 10
SPEECHLESS_AFTER = 0.4  # seconds; later, a survivor may be ended before it can write its line

POINTS = os.environ.get("WEFT_TEST_POINTS", "")

# The number of these calls differs from run to run: a few strikes at each suffice.
WAITS = ("sched_yield", "futex", "clock_nanosleep", "poll", "read")
WAIT_STRIKES = 10

# The `ordinal`th use of a call by the victim, in the phase in which it was traced.
Point = collections.namedtuple("Point", "phase call ordinal")


def why_not():
    """Returns the reason why tracing is impossible here, or None."""
    if not shutil.which("strace"):
        return "there is no strace"
    tried = subprocess.run(["strace", "-D", "-f", "-o", "/dev/null", "true"], capture_output=True, text=True)
    return None if tried.returncode == 0 else f"tracing is forbidden: {tried.stderr.splitlines()[-1]}"


def main_where_traced():
    reason = why_not()
    if reason:
        print(f"1..0 # SKIP {reason}")
    else:
        main(MEMORY_MIB)


def by_oshrun(npes, command):
    return Result(start("-n", npes, *command), seconds_max=60)


def traced_job(npes, victim, strace, program, way):
    """Returns the result of a job whose victim, a PE or the launcher, runs below strace with these arguments."""
    if victim == LAUNCHER:
        return Result(start("-n", npes, program, below=["strace", "-D", *strace]), seconds_max=60)
    script = """if [ "${WEFT_PE-${PMI_RANK-${PMI_ID-${PMIX_RANK-$RANK}}}}" = "$0" ]; then exec strace -D -f "$@"; fi
                while [ "$1" != -- ]; do shift; done; shift; exec "$@" """
    return way(npes, ["sh", "-c", script, victim, *strace, "--", program])


def first_thread(text):
    """Returns the complete lines of strace's log about the first thread of a process."""
    lines = text.rpartition("\n")[0].splitlines()
    return [rest.strip() for thread, _, rest in (line.partition(" ") for line in lines)
            if thread == lines[0].split()[0]]


def traced_so_far(command):
    """Returns the same lines of a job that is running, from the command that a way was given."""
    return first_thread(pathlib.Path(command[command.index("-o") + 1]).read_text())


def run_traced(npes, victim, strace, program, way=by_oshrun):
    """Returns the result of a job, and strace's lines about the victim's first thread."""
    with tempfile.NamedTemporaryFile("r", prefix="strace-") as log:
        result = traced_job(npes, victim, ["-o", log.name, *strace], program, way)
        text = log.read()
    return result, text.splitlines() if victim == LAUNCHER else first_thread(text)


def next_phase(phase, line):
    """Returns the phase after this line of strace."""
    mark = re.match(r'write\(-1, "phase (\w+)"', line)
    return mark[1] if mark else phase


def last_phase(lines, following=next_phase):
    return functools.reduce(following, lines, "load")


def thin(points):
    """Drops most of the waits."""
    dropped = set()
    for call in WAITS:
        uses = [point for point in points if point.call == call]
        if len(uses) > WAIT_STRIKES:
            dropped |= set(uses) - {uses[i * len(uses) // WAIT_STRIKES] for i in range(WAIT_STRIKES)}
    return [point for point in points if point not in dropped]


def census(npes, victim, program=PHASES, way=by_oshrun, following=next_phase):
    """Returns a list of points: the system calls of the victim's first thread in the order of use."""
    result, lines = run_traced(npes, victim, [], program, way)
    result.expect(0, seconds_max=60)
    phase, uses, points = "load", collections.Counter(), []
    for line in lines:
        phase = following(phase, line)
        call = re.match(r"\w+(?=\()", line)
        if call:
            uses[call[0]] += 1
            if call[0] not in ("execve", "exit_group", "arch_prctl"):
                points.append(Point(phase, call[0], uses[call[0]]))
    return thin(points)


def strike(npes, victim, point, effect, program=PHASES, way=by_oshrun, following=next_phase):
    """Runs a job in which the victim's call at that point has `effect` ("signal=KILL", "error=ENOMEM"). Returns its
    result, and the last phase that the victim had begun."""
    inject = f"inject={point.call}:{effect}:when={point.ordinal}"
    strace = ["-e", f"trace=write,recvmsg,{point.call}", "-e", inject]
    try:
        result, lines = run_traced(npes, victim, strace, program, way)
    except AssertionError as problem:
        raise AssertionError(f"{effect} at {point}: {problem}") from None
    return result, last_phase(lines, following)


def sample(points, count):
    """Returns all points in the long form, or all that WEFT_TEST_POINTS selects; otherwise about `count`, evenly over
    the phases and within them."""
    points = [point for point in points if re.search(POINTS, " ".join(map(str, point)))]
    assert points, f"no call is like WEFT_TEST_POINTS={POINTS}"
    if LONG or POINTS:
        return points
    phases = collections.defaultdict(list)
    for point in points:
        phases[point.phase].append(point)
    share = max(1, count // len(phases))
    return [some[i * len(some) // min(share, len(some))] for some in phases.values()
            for i in range(min(share, len(some)))]


def kill_sample(points, kill_at):
    """Strikes at all these points, also after a failure; most strikes have to kill, as kill_at returns."""
    hits, problems = 0, []
    for point in points:
        try:
            hits += kill_at(point)
        except AssertionError as problem:
            problems.append(str(problem))
            end_leftovers()
    print(f"# {hits} deaths at {len(points)} points")
    assert not problems, "\n".join(problems)
    assert hits >= len(points) // 2, "too few deaths"


def check_remains(result, where):
    assert result.seconds < SECONDS_MAX, f"{where}: took {result.seconds} s"
    left = settled_leftovers(SECONDS_MAX)
    assert not left, f"{where}: still running: {left}"


def results(out):
    """Returns the results of each call of tests/faults/phases: call -> set of the PEs' results."""
    found = collections.defaultdict(set)
    for call, value in re.findall(r"^PE \d+ (\w+) (-?\d+)$", out, re.M):
        found[call].add(value)
    return found


def runs_or_says(result, where):
    """Returns "ran" or "said" for a job that lacks a resource. It must not crash or hang; all PEs have the same
    results, and a line reports each refused call."""
    assert 0 <= result.status < 128, f"{where}: status {result.status}: {result.err}"
    check_remains(result, where)
    found = results(result.out)
    for call, values in found.items():
        assert len(values) == 1, f"{where}: {call} returned {values}: {result.err}"
    refused = result.status or any(found[call] == {"0"} for call in ("malloc", "calloc", "realloc", "block", "attach", "team"))
    said = re.search(r"^(weft|oshrun): \S.*\S$", result.err, re.M)
    assert said or not refused, f"{where}: status {result.status} and no line: {result.err}"
    return "said" if refused else "ran"
