#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An error is reported once and completely: by the exception, with readable sizes, in one piece; the library writes no
additional line to stderr. In checked mode both sides of a mismatch get an exception.
"""
import pathlib
import re
import subprocess
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402
import tap  # noqa: E402

PYTHON = interpreter.find() or sys.executable
BEGIN = "import sys, time, weft\nweft.init()\nme, n = weft.my_pe(), weft.n_pes()\nb = weft.zeros(4)\n"


def run(program, pes=2, begin=BEGIN, launch=None, **environment):
    command = launch or [interpreter.BUILD / "bin/oshrun", "-n", str(pes)]
    return subprocess.run([*command, PYTHON, "-c", begin + textwrap.dedent(program)], capture_output=True, text=True,
                          timeout=60, env=interpreter.environment(**environment))


def tracebacks(done):
    """Returns the last line of each PE's traceback, if the tracebacks are not mixed."""
    found = re.findall(r"^Traceback \(most recent call last\):\n(?:  .*\n)+(\S.*)$", done.stderr, re.M)
    whole = sum(line.startswith("Traceback") for line in done.stderr.splitlines()) == len(found)
    return sorted(found) if whole else ["tracebacks are mixed"]


def expect(problems, done, ends):
    found = tracebacks(done)
    if len(found) != len(ends) or not all(any(re.fullmatch(end, line) for line in found) for end in ends):
        problems += [f"status {done.returncode}, {found}", *(done.stdout + done.stderr).splitlines()[-40:]]
    if done.returncode == 0:
        problems.append("status 0")


def lines_of_weft(done):
    """Except for the line with which checked mode announces itself."""
    return [line for line in done.stderr.splitlines() if line.startswith("weft: ") and "heap slots of" not in line]


SAME = ": all members must make the same collective calls in the same order"
CALLS = {"weft.barrier()": "shmem_team_sync", "weft.all_reduce(b)": "weft_all_reduce",
         "weft.broadcast(b)": "weft_broadcast", "weft.zeros(3)": "weft_all_reduce"}


def mismatch(first, second):
    """Each side gets an exception that names the other side and its call."""
    def check(problems):
        done = run(f"{first} if me == 0 else {second}", SHMEM_DEBUG="1")
        sides = [(0, first, second), (1, second, first)]
        expect(problems, done, [
            rf"RuntimeError: {re.escape(mine[5:mine.index('(')])}: ({CALLS[mine]}: )?PE {1 - pe} is in "
            rf"{CALLS[other]} instead{SAME}(: the job is over)?" for pe, mine, other in sides])
        if lines_of_weft(done):
            problems += lines_of_weft(done)
    return check


def rendezvous_meets_a_reduction(problems):
    torch = interpreter.find("torch")
    if torch is None:
        raise tap.Skip("no Python from 3.10 on has torch here")
    done = run("", launch=[interpreter.BUILD / "bin/oshrun", "-n", "2", torch, "-W", "ignore", "-c", """import weft.torch as symm_mem
group = symm_mem.init_process_group()
t, u = (symm_mem.empty(4, device="cpu").fill_(1) for _ in range(2))
symm_mem.rendezvous(t, group)
symm_mem.one_shot_all_reduce(t, "sum", group) if group.rank() else symm_mem.rendezvous(u, group)
"""], SHMEM_DEBUG="1")
    done.stderr = re.sub(r"^\[rank\d\]: ", "", done.stderr, flags=re.M)
    expect(problems, done, [rf'RuntimeError: rendezvous in group "\w+": barrier: shmem_team_sync: PE 1 is in weft_all_reduce instead{SAME}: the job is over',
                            rf"RuntimeError: all_reduce: PE 0 is in shmem_team_sync instead{SAME}"])


def pad_of_a_finalized_peer(problems):
    done = run("""
        import array
        block = weft.Block("host", 64)
        share = block.share([0, 1])
        pads = array.array("Q", [share.ptr(0), share.ptr(1)])
        if me == 0:
            weft.pad_wait(pads.buffer_info()[0], 0, 2, 1, 0)
    """)
    expect(problems, done, ["RuntimeError: pad_wait: shmemx_pad_wait_on_stream waits for PE 1, which has finalized .*: the job is over"])


def arguments_differ(problems):
    expect(problems, run("weft.broadcast(b, root=me)", SHMEM_DEBUG="1"),
           ["ValueError: broadcast: root is 0 on PE 0, but 1 on PE 1"] * 2)


def misuse_is_an_exception(problems):
    """Misuse for which checked mode ends a C program."""
    done = run("""
        big = weft.zeros(100000, 'uint8')
        if me == 0:
            weft.put(big.view(50000), big.view(50000, offset=100), me)
        time.sleep(2)
    """, SHMEM_DEBUG="1")
    found = tracebacks(done)
    if len(found) != 1 or not re.fullmatch(r"RuntimeError: put: shmem_(ctx_)?putmem: arguments dest \(0x[0-9a-f]+, 50000 bytes\) "
                                           r"and source .* overlap: pass disjoint objects: the job is over", found[0]):
        problems += done.stderr.splitlines()
    if any("overlap" in line for line in lines_of_weft(done)):
        problems += lines_of_weft(done)


def calls_behind_the_end(problems):
    """As in the next cells of a notebook: calls say that the process must be restarted, and why."""
    done = run("""
        for call in (lambda: weft.put(b[0:2], b[1:3], 0), lambda: weft.zeros(3), weft.init):
            try:
                call()
            except RuntimeError as error:
                print(error, flush=True)
    """, 1, SHMEM_DEBUG="1")
    said = done.stdout.splitlines()
    anew = "called after the end of the job: restart this process, which in a notebook is its kernel: shmem_"
    if len(said) != 3 or "overlap" not in said[0] or "anew" in said[0] or not all(
            line.startswith(f"{call}: {anew}") and "overlap" in line for call, line in zip(("zeros", "init"), said[1:])):
        problems += (done.stdout + done.stderr).splitlines()


SHORT = {
    "put": "weft.put(b[0:6], b[1:7], 0)", "get": "weft.get(b[0:6], b[1:7], 0)",
    "put_nbi": "weft.put_nbi(b[0:6], b[1:7], 0)",
    "put_signal": "weft.put_signal(b[0:6], b[1:7], word, 1, 0)",
}


def short_misuse_is_an_exception(problems):
    """Includes calls that keep the GIL. Each case ends its job, so each has its own."""
    begin = "import weft\nweft.init()\nb, word = weft.zeros(8), weft.zeros(1, 'uint64')\n"
    late = """import os, signal, subprocess  # oshrun has no processor meanwhile
oshrun = os.getppid()
subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -CONT {oshrun}"])
os.kill(oshrun, signal.SIGSTOP)
"""
    for name, call in [*SHORT.items(), ("put", late + SHORT["put"])]:
        done = run(call, 1, begin, SHMEM_DEBUG="1")
        expect(problems, done, [rf"RuntimeError: {name}: shmem_.* overlap: pass disjoint objects: the job is over"])
        problems += lines_of_weft(done)


def too_much_memory(problems):
    done = run("""
        try:
            weft.empty(2**55, "uint8")
        except MemoryError as error:
            print(error, flush=True)
        assert weft.zeros(1)[0] == 0
    """)
    whole = [line for line in done.stdout.splitlines() if line.startswith("empty: shmemx_malloc of ")]
    if done.returncode or done.stderr or len(whole) != 2 or not all("of 32 PiB" in line for line in whole) or \
            not any("GiB of address space" in line for line in whole):
        problems += [f"status {done.returncode}", *(done.stdout + done.stderr).splitlines()]


def wrong_job(problems):
    done = run("weft.init()", begin="import weft\n", launch=["env", "RANK=5", "WORLD_SIZE=2", "MASTER_PORT=1"])
    found = tracebacks(done)
    if len(found) != 1 or not re.fullmatch(r"RuntimeError: init: .*PE 5 of 2 is not valid: a job has .*", found[0]) \
            or lines_of_weft(done):
        problems += done.stderr.splitlines()


def child_of_a_pe(problems):
    """A kernel of a Jupyter that oshrun has started: descriptors are closed, but the environment is inherited."""
    child = "import weft; weft.init(); print('PE', weft.my_pe(), 'of', weft.n_pes(), flush=True)"
    done = run(f"""
        import os, subprocess
        child = [sys.executable, "-c", {child!r}]
        failed = subprocess.run(child, capture_output=True, text=True)
        print(failed.returncode, failed.stderr, flush=True)
        subprocess.run(child, env={{**os.environ, "WEFT_LAUNCHER": "none"}})
    """)
    told = [line for line in done.stdout.splitlines() if line.startswith("RuntimeError: init: descriptor ")]
    if done.returncode or len(told) != 2 or "weft: " in done.stdout + done.stderr or \
            done.stdout.count("PE 0 of 1\n") != 2 or \
            not all("oshrun's socket any more" in line and "weft.init(rank, size, uniqueid=...)" in line for line in told):
        problems += (done.stdout + done.stderr).splitlines()


def tracebacks_in_one_piece(problems):
    """Each traceback is a single write, so that those of several PEs do not mix; a hook of the program is kept."""
    done = run("""
        import atexit
        class Count:
            def __init__(self, inner):
                self.inner, self.writes = inner, []
            def write(self, text):
                self.writes += [text] if text else []
                return self.inner.write(text)
            def flush(self):
                self.inner.flush()
        sys.stderr = count = Count(sys.stderr)
        atexit.register(lambda: print("writes", len(count.writes), flush=True))
        weft.barrier()
        x = 1 / 0
    """, 2)
    if set(tracebacks(done)) != {"ZeroDivisionError: division by zero"} or "writes 1\n" not in done.stdout:
        problems += (done.stdout + done.stderr).splitlines()
    done = run("x = 1 / 0", begin="import sys, weft\nsys.excepthook = lambda *all: print('own', all[0].__name__)\nweft.init()\n")
    if "own ZeroDivisionError" not in done.stdout or tracebacks(done):
        problems += (done.stdout + done.stderr).splitlines()


tap.run(tap.ahead([
    *((f"checked mode: {a} meets {b}", mismatch(a, b)) for a, b in [
        ("weft.barrier()", "weft.all_reduce(b)"), ("weft.all_reduce(b)", "weft.barrier()"),
        ("weft.broadcast(b)", "weft.barrier()"), ("weft.zeros(3)", "weft.barrier()")]),
    ("checked mode: rendezvous meets one_shot_all_reduce", rendezvous_meets_a_reduction),
    ("checked mode: arguments differ", arguments_differ),
    ("checked mode: a misuse is an exception", misuse_is_an_exception),
    ("checked mode: so is that of a short call", short_misuse_is_an_exception),
    ("a wait for a signal pad of a PE that has finalized is an exception", pad_of_a_finalized_peer),
    ("calls after the end of the job say what to do", calls_behind_the_end),
    ("too much memory is told once", too_much_memory),
    ("init tells why there is no job", wrong_job),
    ("init tells a child of a PE what to do", child_of_a_pe),
    ("a traceback is one piece", tracebacks_in_one_piece),
]))
