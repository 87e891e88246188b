#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How jobs of Python processes begin and end: under each launcher, by exceptions, exits and deaths, in children, twice.
Each scene is a program; none may hang, and its output must contain the expected lines.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402
import tap  # noqa: E402

PYTHON = interpreter.find("numpy") or interpreter.find() or sys.executable
OSHRUN = [interpreter.BUILD / "bin/oshrun"]
BEGIN = "import os, sys, time, array, weft\nweft.init()\nme, n = weft.my_pe(), weft.n_pes()\n"
SECONDS = 30


class Run:
    def __init__(self, program, pes=2, launch=None, begin=BEGIN, **environment):
        command = (launch or [*OSHRUN, "-n", str(pes)]) + [PYTHON, "-c", begin + textwrap.dedent(program)]
        start = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=60,
                              env=interpreter.environment(**environment))
        self.seconds = time.monotonic() - start
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    def expect(self, problems, status=0, out=(), err=()):
        if self.status != status:
            problems.append(f"status {self.status}, expected {status}")
        if self.seconds > SECONDS:
            problems.append(f"took {self.seconds:.1f} s")
        for pattern, text in [(p, self.out) for p in out] + [(p, self.err) for p in err]:
            if not re.search(pattern, text):
                problems.append(f"no {pattern!r}")
        if problems:
            problems += (self.out + self.err).splitlines()[-40:]


# --- Ends -------------------------------------------------------------------------------------------

def returns(problems):
    Run("time.sleep(0.1 * me); print(f'done {me}')", 3).expect(problems, 0, [f"done {pe}" for pe in range(3)])


ELSEWHERE = {"in a barrier": "weft.barrier()", "computing": "time.sleep(60)", "waiting": "weft.wait(weft.world and word, 1)",
             "at its end": "sys.exit(0)"}


def exception_while(where):
    def scene(problems):
        run = Run(f"""
            word = weft.zeros(1, "uint64")
            print("PE", me, "was here", end="\\n")
            if me == 1:
                raise KeyError("the reason")
            {ELSEWHERE[where]}
        """, 3)
        run.expect(problems, 1, ["PE 0 was here", "PE 1 was here"], ["Traceback", "KeyError: 'the reason'"])
    return scene


def exit_with_status(problems):
    """oshrun names the PE, and so do the exceptions of the others."""
    Run("""
        if me == 1:
            sys.exit(3)
        try:
            weft.barrier()
        except RuntimeError as error:
            print("met:", error)
    """, 3).expect(problems, 3, [r"met: barrier: PE 1 \(pid \d+\) exited with status 3 without shmem_finalize"],
           [r"oshrun: PE 1 \(pid \d+\) exited with status 3 without shmem_finalize"])


def exit_after_finalize(problems):
    Run("weft.finalize(); time.sleep(0.3 * (1 - me)); print(f'whole {me}'); sys.exit(5 * me)").expect(
        problems, 5, ["whole 0", "whole 1"])


def interrupt(problems):
    Run("""
        word = weft.zeros(1, "uint64")
        import threading, signal
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            weft.wait(word, 1)
        except KeyboardInterrupt:
            print("interrupted")
    """, 1).expect(problems, 0, ["interrupted"])


def daemon_threads(problems):
    """A thread that serves signals need not be told that the program ends."""
    Run("""
        import threading
        word = weft.zeros(1, "uint64")
        threading.Thread(target=weft.wait, args=(word, 1), daemon=True).start()
        time.sleep(0.1)
        print(f"end {me}")
    """).expect(problems, 0, ["end 0", "end 1"])


def thread_in_a_collective(problems):
    Run("""
        import threading
        if me == 0:
            threading.Thread(target=weft.barrier, daemon=True).start()
            time.sleep(0.1)
        else:
            time.sleep(20)
    """).expect(problems, 1, [], ["PE 0 exits with status 0 while a thread of it is in a call"])


def global_exit(problems):
    """Ends all PEs from one, with its status, also 0; Python's buffered output is written."""
    for status in (0, 7):
        Run(f"""
            if me == 0:
                weft.barrier()
                print("never")
            sys.stdout.reconfigure(line_buffering=False)
            print("the last word", end="")
            try:
                weft.global_exit(256)
            except ValueError as error:
                assert "argument status is 256" in str(error)
            weft.global_exit({status})
        """).expect(problems, status, ["the last word"])


def one_finalizes_another_returns(problems):
    """With and without symmetric memory; a PE that finalizes waits for a PE that computes, whatever that PE does next.
    """
    for memory in ("None", "weft.zeros(4)"):
        for first in (0, 1):
            Run(f"""
                buffer = {memory}
                weft.barrier()
                time.sleep(0.2 * (me == {first}))
                print(f"end {{me}}")
                if me != 1:
                    sys.exit(0)
                weft.finalize()
                print(f"left {{me}}")
            """, 3).expect(problems, 0, ["end 0", "end 2", "left 1"])


def one_keeps_a_view_another_returns(problems):
    """PEs that keep their memory do not wait for PEs that return, and start again among themselves."""
    Run("""
        buffer = weft.zeros(4, "int32")
        view = memoryview(buffer.peer(1)) if me == 0 else None
        weft.put(buffer, array.array("i", [7] * 4), 1) if me == 2 else None
        if me == 1:
            sys.exit(0)
        weft.finalize()
        if view:
            assert view.tolist() == [7] * 4
        for turn in range(3):
            weft.init()
            team = weft.team([0, 2])
            values = array.array("i", [me])
            weft.all_reduce(values, team=team)
            assert values[0] == 2
            team.destroy()
            weft.finalize()
        print(f"again {me}")
    """, 3).expect(problems, 0, ["again 0", "again 2"])


def who_returned_is_missed(problems):
    """A thread in a collective is reported with its name, and does not block forever."""
    for call in ("weft.barrier()", "weft.zeros(4)", "weft.all_reduce(buffer)"):
        Run(f"""
            buffer = weft.zeros(4)
            if me == 1:
                sys.exit(0)
            time.sleep(0.1)
            {call}
        """).expect(problems, 71, [], ["waits for PE 1, which has finalized"])


def init_without_who_returned(problems):
    """The job is over for one PE: the others cannot have it again."""
    Run("""
        weft.barrier()
        if me == 1:
            sys.exit(0)
        weft.finalize()
        print("left", me)
        weft.init()
    """).expect(problems, 70, ["left 0"], ["PE 1 .* exited with status 0 while others wait for it"])


def finalize_beside_a_call(problems):
    """The library stays loaded under a thread that is in a call, even without symmetric memory."""
    for memory in ("None", "weft.zeros(4)"):
        Run(f"""
            import threading
            buffer = {memory}
            if me == 0:
                thread = threading.Thread(target=weft.barrier)
                thread.start()
                time.sleep(0.1)
                try:
                    weft.finalize()
                except RuntimeError as error:
                    assert buffer is None and "another thread" in str(error), error
                thread.join()
            else:
                time.sleep(0.6)
                weft.barrier()
            weft.finalize()
            print(f"left {{me}}")
        """).expect(problems, 0, ["left 0", "left 1"])


# --- finalize, and again ----------------------------------------------------------------------------

def again(problems):
    Run("""
        kept = []
        for turn in range(3):
            weft.init()
            buffer = weft.zeros(4, "int32")
            team = weft.world.split(0, 1, n)
            weft.put(buffer, array.array("i", [turn] * 4), (me + 1) % n)
            weft.barrier()
            assert memoryview(buffer).tolist() == [turn] * 4
            kept += [lambda b=buffer: b.ptr, lambda t=team: t.rank, lambda b=buffer: memoryview(b)]
            weft.finalize()
            weft.finalize()
            assert not weft.initialized()
            for use in [*kept, weft.my_pe, weft.barrier, lambda: weft.zeros(1), lambda: weft.world.size]:
                try:
                    use()
                    raise SystemExit("no error")
                except RuntimeError as error:
                    assert "finalize" in str(error), error
        print(f"three times {me}")
    """, 3).expect(problems, 0, [f"three times {pe}" for pe in range(3)])


def views_after_finalize(problems):
    """Views on one PE only: all PEs keep their memory then, also that which other PEs see."""
    Run("""
        buffer = weft.zeros(4, "int32")
        view = memoryview(buffer.peer((me + 1) % n)) if me == 0 else None
        weft.finalize()
        if view:
            view[0] = 5
            assert view.tolist() == [5, 0, 0, 0]
        try:
            memoryview(buffer)
            raise SystemExit("no error")
        except RuntimeError:
            pass
        weft.init()
        other = weft.zeros(4, "int32")
        assert weft.n_pes() == n and memoryview(other).tolist() == [0] * 4
        print(f"kept {me}")
    """).expect(problems, 0, ["kept 0", "kept 1"])


def before_init(problems):
    Run("""
        import weft, array
        for use in [weft.my_pe, weft.barrier, lambda: weft.zeros(1), lambda: weft.world.rank,
                    lambda: weft.all_reduce(array.array("f", [1])), lambda: weft.put(b"", b"", 0)]:
            try:
                use()
                raise SystemExit("no error")
            except RuntimeError as error:
                assert "called before init(): call weft.init() first" in str(error), error
        assert not weft.initialized() and weft.finalize() is None
        print("fine", repr(weft.world))
    """, 2, begin="").expect(problems, 0, ["fine"])


# --- Children ---------------------------------------------------------------------------------------

def fork(problems):
    Run("""
        import multiprocessing
        buffer = weft.zeros(4)
        def child():
            for use in (weft.my_pe, weft.barrier, lambda: memoryview(buffer), weft.init, lambda: weft.zeros(1)):
                try:
                    use()
                    os._exit(3)
                except RuntimeError as error:
                    assert "in a forked child, which is not a PE" in str(error), error
            assert not weft.initialized()
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join()
        pid = os.fork()
        if pid == 0:
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        weft.barrier()
        print(f"child {process.exitcode}")
    """).expect(problems, 0, ["child 0\n(.*\n)*child 0"])


SPAWN = """
import multiprocessing, sys, time, array
import weft

def work(rank, size, uid, fails):
    weft.init(rank, size, uid)
    values = array.array("f", [rank])
    weft.all_reduce(values)
    print(f"PE {weft.my_pe()} of {weft.n_pes()} has {values[0]:g}", flush=True)
    if fails and rank == 1:
        raise ValueError("in a child")
    if fails:
        time.sleep(60)

if __name__ == "__main__":
    uid = weft.uniqueid()
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=work, args=(r, 3, uid, len(sys.argv) > 1)) for r in range(3)]
    [child.start() for child in children]
    [child.join() for child in children]
    print("codes", [child.exitcode for child in children])
"""


def spawn(problems, *arguments):
    path = interpreter.BUILD / f"spawn_scene{len(arguments)}.py"
    path.write_text(SPAWN)
    start = time.monotonic()
    done = subprocess.run([PYTHON, path, *arguments], capture_output=True, text=True, timeout=60,
                          env=interpreter.environment())
    expected = r"codes \[70, 1, 70\]" if arguments else r"codes \[0, 0, 0\]"
    if time.monotonic() - start > SECONDS or not re.search(expected, done.stdout) or \
            not all(f"PE {pe} of 3 has 3" in done.stdout for pe in range(3)):
        problems += [f"took {time.monotonic() - start:.1f} s", *(done.stdout + done.stderr).splitlines()]


def spawn_and_fail(problems):
    spawn(problems, "fail")


# --- Launchers --------------------------------------------------------------------------------------

RING = """
    box = weft.zeros(1, "int64")
    weft.put(box, array.array("q", [me]), (me + 1) % n)
    weft.barrier()
    print(f"PE {me} of {n} has {memoryview(box)[0]}")
"""


def ringed(pes):
    return [f"PE {pe} of {pes} has {(pe - 1) % pes}" for pe in range(pes)]


def alone(problems):
    Run(RING, launch=["env"]).expect(problems, 0, ringed(1))


def torchrun_variables(problems):
    program = BEGIN + textwrap.dedent(RING)
    common = dict(WORLD_SIZE="3", LOCAL_WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT="29400",
                  TORCHELASTIC_RUN_ID=f"test-{time.time()}")
    pes = [subprocess.Popen([PYTHON, "-c", program], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env=interpreter.environment(RANK=str(r), LOCAL_RANK=str(r), **common)) for r in range(3)]
    text = "".join(pe.communicate(timeout=60)[0] for pe in pes)
    problems += [f"no {line}: {text}" for line in ringed(3) if line not in text]


def under(launcher, *arguments):
    def scene(problems):
        if shutil.which(launcher) is None:
            raise tap.Skip(f"{launcher} is not installed")
        Run(RING, launch=[launcher, *arguments], OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1").expect(problems, 0, ringed(2))
    return scene


def allgather(problems):
    """Any function may gather, here through files. Its exception is raised by init."""
    with tempfile.TemporaryDirectory() as folder:
        allgather_in(folder, problems)


def allgather_in(folder, problems):
    Run("""
        import os, sys, time, array, pathlib, weft
        me, n = int(os.environ["WEFT_PE"]), int(os.environ["WEFT_NPES"])
        folder = pathlib.Path(os.environ["FOLDER"])
        def gather(mine):
            (folder / f"{me}.part").write_bytes(mine)
            (folder / f"{me}.part").rename(folder / f"{me}")
            while len([f for f in folder.iterdir() if f.suffix == ""]) < n:
                time.sleep(0.01)
            return [(folder / f"{pe}").read_bytes() for pe in range(n)]
        def wrong(mine):
            raise OSError("no way")
        for function, kind, text in ((wrong, OSError, "no way"), (lambda mine: [mine], ValueError, "return one piece")):
            try:
                weft.init(me, n, allgather=function)
                raise SystemExit("no error")
            except kind as error:
                assert text in str(error), error
        weft.init(me, n, allgather=gather)
    """ + textwrap.dedent(RING).replace("\n", "\n        "), begin="", FOLDER=folder).expect(problems, 0, ringed(2))


def wrong_init(problems):
    Run("""
        for arguments, kind, text in [
                ((0, 2), ValueError, "pass rank, size and either"), ((0, None, b""), ValueError, "pass rank, size"),
                ((0, 2, b"short"), ValueError, "pass the 128 bytes"), ((0, 2, "x" * 128), ValueError, "128 bytes"),
                ((1, 2, weft.uniqueid()), RuntimeError, "PE 0 of 1 already"),
                ((2, 1, weft.uniqueid()), ValueError, "rank is 2: with size=1 there are ranks 0 to 0"),
                ((-1, 2, weft.uniqueid()), ValueError, "rank is -1"), ((0, 0, weft.uniqueid()), ValueError, "size is 0"),
                (("a", 2, weft.uniqueid()), TypeError, "argument rank is 'a'")]:
            try:
                weft.init(*arguments)
                raise SystemExit(f"no error: {arguments}")
            except kind as error:
                assert text in str(error), error
        weft.init()
        print("refused")
    """, 1).expect(problems, 0, ["refused"])


def in_torch(problems):
    """The ranks of torch.distributed, through its store, in its order of processes: the reverse of oshrun's."""
    python = interpreter.find("torch")
    if python is None:
        raise tap.Skip("torch is not installed")
    program = textwrap.dedent("""
        import os, sys, array, tempfile, torch, torch.distributed as dist, weft
        rank, size = int(sys.argv[1]), 3
        dist.init_process_group("gloo", init_method=sys.argv[2], rank=rank, world_size=size)
        weft.init()
        me, n = weft.my_pe(), weft.n_pes()
        assert (me, n) == (rank, size)
        values = torch.full((4,), float(me))
        weft.all_reduce(values)
        assert values.tolist() == [3.0] * 4
        weft.finalize()
        weft.init()
        weft.barrier()
        print("rank", rank, "fine")
    """)
    store = interpreter.BUILD / f"torch-store-{time.time()}"
    ranks = [subprocess.Popen([python, "-c", program, str(rank), f"file://{store}"], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=interpreter.environment()) for rank in range(3)]
    text = "".join(rank.communicate(timeout=100)[0] for rank in ranks)
    store.unlink(missing_ok=True)
    problems += [f"rank {rank}: {text}" for rank in range(3) if f"rank {rank} fine" not in text]


tap.run(tap.ahead([
    ("processes that return end the job together", returns),
    *[(f"an exception ends the job, with a peer {where}", exception_while(where)) for where in ELSEWHERE],
    ("a status ends the job", exit_with_status),
    ("a status after finalize() is the process's own affair", exit_after_finalize),
    ("global_exit", global_exit),
    ("one finalizes, another returns", one_finalizes_another_returns),
    ("one keeps a view, another returns", one_keeps_a_view_another_returns),
    ("who returned is missed by name", who_returned_is_missed),
    ("init without who returned", init_without_who_returned),
    ("finalize beside a call of another thread", finalize_beside_a_call),
    ("wait can be interrupted", interrupt),
    ("threads that wait for signals end with the process", daemon_threads),
    ("a thread that is left in a collective is named", thread_in_a_collective),
    ("init and finalize, three times", again),
    ("views are good after finalize", views_after_finalize),
    ("calls before init", before_init),
    ("forked children are no PEs", fork),
    ("spawned children are, by a unique id", spawn),
    ("an exception in a spawned child ends its job", spawn_and_fail),
    ("one PE without a launcher", alone),
    ("torchrun's variables", torchrun_variables),
    ("Open MPI's mpirun", under("mpirun.openmpi", "--oversubscribe", "-n", "2")),
    ("MPICH's mpiexec", under("mpiexec.hydra", "-n", "2")),
    ("an allgather of the program's", allgather),
    ("wrong arguments of init", wrong_init),
    ("inside torch.distributed", in_torch),
]))
