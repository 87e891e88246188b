#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The backend "weft" of torch.distributed on CPU tensors: the tests of torch_process_group.py on 1 to 4 PEs, and the
ways in which ranks meet, time out and die.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402
import tap  # noqa: E402

OSHRUN = interpreter.BUILD / "bin/oshrun"
PYTHON = interpreter.find("pytest", "torch.distributed")
SECONDS = 280


def run(problems, command, said=(), status=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=SECONDS,
                          env=interpreter.environment(OMP_NUM_THREADS="1"))
    everything = done.stdout + done.stderr
    if status is not None and done.returncode != status:
        problems.append(f"status {done.returncode}, expected {status}")
    problems += [f"no {pattern!r}" for pattern in said if not re.search(pattern, everything)]
    if problems:
        problems += everything.splitlines()[-60:]
    return everything


def tests_on(pes):
    def case(problems):
        said = run(problems, [OSHRUN, "-n", pes, PYTHON, HERE / "run.py", "--capture=sys", "--show-capture=no",
                              HERE / "torch_process_group.py"])
        interpreter.tell(f"{pes} PEs", said.splitlines())
    return case


BEGIN = """
    import datetime, os, signal, sys, time
    import torch, torch.distributed as dist
    import weft, weft.torch

    def total():
        tensor = torch.tensor([dist.get_rank() + 1.0])
        dist.all_reduce(tensor)
        return tensor.item()
"""


def program(problems, launch, text, **more):
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(textwrap.dedent(BEGIN) + textwrap.dedent(text))
        file.flush()
        return run(problems, [*launch, file.name], **more)


def torchrun(problems):
    program(problems, [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"], """
        dist.init_process_group("weft")
        print("total", total(), "PE", weft.my_pe(), flush=True)
        dist.destroy_process_group()
    """, said=["total 3.0 PE 0", "total 3.0 PE 1"])


def spawned(problems):
    program(problems, [PYTHON], """
        import tempfile
        import torch.multiprocessing as mp

        def work(rank, path):
            dist.init_process_group("weft", init_method=path, rank=rank, world_size=3)
            print("total", total(), "PE", weft.my_pe(), flush=True)
            dist.destroy_process_group()

        if __name__ == "__main__":
            with tempfile.TemporaryDirectory() as folder:
                mp.spawn(work, ("file://" + folder + "/store",), 3)
            print("all back")
    """, said=["total 6.0 PE 0", "total 6.0 PE 2", "all back"])


def beside_gloo(problems):
    """A group of some of the ranks, in a world of another backend."""
    program(problems, [OSHRUN, "-n", 3, PYTHON], """
        weft.torch.init_process_group("gloo")
        pair = dist.new_group([0, 2], backend="weft")
        if dist.get_rank() != 1:
            tensor = torch.ones(4)
            dist.all_reduce(tensor, group=pair)
            print("pair", tensor.tolist(), flush=True)
        print("total", total(), flush=True)
        dist.destroy_process_group()
    """, said=[r"pair \[2.0, 2.0, 2.0, 2.0\]", "total 6.0"])


def first_use_by_some(problems):
    """Weft has not been started, and cannot be by a part of the ranks."""
    program(problems, [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"], """
        dist.init_process_group("gloo")
        if dist.get_rank() == 0:
            try:
                dist.new_group([0], backend="weft", use_local_synchronization=True)
            except RuntimeError as error:
                print(error, flush=True)
        weft.torch.install()
        group = dist.new_group([0], backend="weft")
        if dist.get_rank() == 0:
            tensor = torch.ones(2)
            dist.all_reduce(tensor, group=group)
            print("alone", tensor.tolist(), flush=True)
        dist.destroy_process_group()
    """, said=["call weft.torch.install.. on all ranks before new_group", r"alone \[1.0, 1.0\]"])


def a_timeout_of_the_program(problems):
    """A synchronous call has the group's timeout if the program has set one, and the process can end."""
    program(problems, [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"], """
        dist.init_process_group("weft", timeout=datetime.timedelta(seconds=20))
        total()
        group = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=1))
        if dist.get_rank() == 0:
            try:
                dist.all_reduce(torch.ones(1), group=group)
            except RuntimeError as error:
                print(error, flush=True)
                os._exit(3)
        time.sleep(30)
    """, said=["all_reduce: not complete after 1000 ms"], status=None)


def a_rank_dies(problems):
    """Both kinds of calls raise RuntimeError with the rank's name."""
    for asynchronous in (False, True):
        program(problems, [OSHRUN, "-n", 2, PYTHON], f"""
            weft.torch.init_process_group("weft")
            total()
            if dist.get_rank() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                work = dist.all_reduce(torch.ones(1), async_op={asynchronous})
                if work:
                    work.wait()
            except RuntimeError as error:
                print("raised:", error, flush=True)
                raise
        """, said=[r"raised: weft: all_reduce: .*PE 1 .*killed by signal 9"], status=None)


def without_destroy(problems):
    program(problems, [OSHRUN, "-n", 2, PYTHON], """
        weft.torch.init_process_group("weft")
        dist.all_reduce(torch.ones(1), async_op=True).wait()
        print("end", flush=True)
    """, said=["end"])


def without(problems):
    raise tap.Skip("no Python from 3.10 on has pytest and PyTorch here")


CASES = [(f"torch_process_group.py on {pes} PEs", tests_on(pes)) for pes in interpreter.RANKS]
CASES += [(scene.__name__.replace("_", " "), scene) for scene in (
    torchrun, spawned, beside_gloo, first_use_by_some, a_timeout_of_the_program, a_rank_dies, without_destroy)]
tap.run(CASES if PYTHON else [("PyTorch's backend", without)])
