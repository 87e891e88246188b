#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A PE is killed while the others are in a call, for each call that waits. Each of the others gets a RuntimeError that
names the PE, may clean up, and gets one in every later call; the job is over in time, and no process crashes. Includes
weft.torch if PyTorch is installed, with its Python handles and with those of the C++ backend; with WEFT_TEST_LONG=1
also the sanitized build.
"""
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402
import tap  # noqa: E402
import sanitized  # noqa: E402

PES, SECONDS = 3, 60
PYTHON = interpreter.find() or sys.executable
WITH_TORCH = interpreter.find("torch")

PROGRAM = """
import array, os, time, weft
{begin}
weft.init()
me, n = weft.my_pe(), weft.n_pes()
f = lambda n: array.array("f", [1] * n)
q = lambda n: array.array("q", [1] * n)
m = lambda rows, columns: memoryview(f(rows * columns)).cast("B").cast("f", (rows, columns))
word, words, pads = weft.zeros(1, "uint64"), weft.zeros(1, "int32"), weft.zeros(64, "uint32")
team = weft.world.split(0, 1, n)
scanned, lock = weft.zeros(4, "int32"), weft.Lock()
me == 1 and lock.acquire()
{setup}
weft.barrier()
if me == 1:
    time.sleep({dies_s})
    os.kill(os.getpid(), 9)
time.sleep({calls_s})
try:
    while True:
        {call}
except RuntimeError as error:
    print(f"caught {{error}}")
    {again}
finally:
    {clear_up}
    print("cleared up")
"""

CALLS = {
    "barrier": "weft.barrier()", "sync": "weft.sync()", "Team.barrier": "team.barrier()", "Team.sync": "team.sync()",
    "wait": "weft.wait(word, 1)", "wait32": "weft.wait32(words, 1)",
    "wait_until": "weft.wait_until(words, 1)", "wait_until_all": "weft.wait_until_all(scanned, 1)",
    "wait_until_any": "weft.wait_until_any(scanned, 1)", "wait_until_some": "weft.wait_until_some(scanned, [1] * 4)",
    "a loop of test": "weft.test(words, 1)", "a loop of test_all": "weft.test_all(scanned, 1)",
    "a loop of test_lock": "weft.test_lock(lock.word)", "set_lock": "lock.acquire()",
    "zeros": "weft.zeros(4)", "team": "weft.team([0, 1, 2])", "Team.split": "team.split(0, 1, n)",
    "Team.split_2d": "[made.destroy() for made in team.split_2d(2)]",
    "Block.share": "weft.Block('host', 64).share([0, 1, 2])", "finalize": "weft.finalize()",
    "reserve": "weft.reserve(team, 1000)", "all_reduce": "weft.all_reduce(f(9))",
    "all_gather": "weft.all_gather(f(3 * n), f(3))", "reduce_scatter": "weft.reduce_scatter(f(3), f(3 * n))",
    "broadcast": "weft.broadcast(f(3), root=1)", "all_to_all": "weft.all_to_all(f(n), f(n))",
    "inscan": "weft.inscan(scanned)", "exscan": "weft.exscan(scanned)", "collect": "weft.collect(f(3 * n), f(3))",
    "all_reduce by bits": "weft.all_reduce(scanned, op='or')",
    "all_to_allv": "weft.all_to_allv(f(n), f(n), [1] * n, [1] * n)",
    "all_to_allv_on_device": "weft.all_to_allv_on_device(f(n), f(n), q(n), q(n), q(n))",
    "all_reduce_rms_norm": "weft.all_reduce_rms_norm(f(9), f(9), f(9))",
    "kv_shuffle": "weft.kv_shuffle([scanned], array.array('i', [-1, 0]))",
    "all_gather_matmul": "weft.all_gather_matmul(m(4 * n, 4), m(4, 4), m(4, 4))",
    "matmul_reduce_scatter": "weft.matmul_reduce_scatter(m(4, 4), m(4 * n, 4), m(4, 4))",
    "matmul_all_reduce": "weft.matmul_all_reduce(m(4, 4), m(4, 4), m(4, 4))"}

TORCH_SETUP = """
group = symm_mem.init_process_group()
x = symm_mem.empty(4 * n, 4, device="cpu").fill_(1)
h = symm_mem.rendezvous(x, group)
"""
TORCH_CALLS = {
    "handle.barrier": "h.barrier()", "handle.wait_signal": "h.wait_signal(1)",
    "rendezvous": "symm_mem.rendezvous(symm_mem.empty(9, device='cpu'), group)",
    "one_shot_all_reduce": "symm_mem.one_shot_all_reduce(x, 'sum', group)",
    "fused_all_gather_matmul": "symm_mem.fused_all_gather_matmul(torch.ones(4, 4), [torch.ones(4, 4)], 0, group)",
    "fused_matmul_all_reduce": "symm_mem.fused_matmul_all_reduce(torch.ones(2, 4), torch.ones(4, 4), 'sum', group)",
    "fused_matmul_reduce_scatter": "symm_mem.fused_matmul_reduce_scatter(torch.ones(n, 4), torch.ones(4, 4), 'sum', 0, group)",
    "handler.barrier": "symm_mem.SymmetricMemoryHandler.barrier()",
    "handler.empty": "symm_mem.SymmetricMemoryHandler.empty(4, torch.float32)"}

# The C++ backend, through PyTorch's own functions. Calls in two threads must raise in both.
BACKEND_SETUP = """
from concurrent.futures import ThreadPoolExecutor
from torch.distributed._symmetric_memory import _SymmetricMemory, rendezvous
symm_mem.install()
""" + TORCH_SETUP + """
empty = lambda: _SymmetricMemory.empty_strided_p2p((9,), (1,), torch.float32, torch.device("cpu"))
meet = lambda tensor: rendezvous(tensor, group.group_name)
y = empty()
def together(*calls):
    with ThreadPoolExecutor() as pool:
        errors = [future.exception() for future in [pool.submit(call) for call in calls]]
    assert all(isinstance(error, RuntimeError) and "PE 1" in str(error) for error in errors), errors
    raise errors[0]
"""
BACKEND_CALLS = {
    "handle.barrier": "h.barrier()", "handle.wait_signal": "h.wait_signal(1)", "handle.put_signal": "h.put_signal(1)",
    "empty": "empty()", "rendezvous": "meet(empty())",
    "two rendezvous of one tensor": "together(lambda: meet(y), lambda: meet(y))",
    "handle.barrier and rendezvous": "together(h.barrier, lambda: meet(y))",
    "handle.wait_signal and weft.barrier": "together(lambda: h.wait_signal(1), weft.barrier)"}


def death_in(python, call, begin="", setup="", build=interpreter.BUILD, environment={}, dies_s=0.05, calls_s=0,
             again="weft.my_pe()", clear_up="pass"):
    program = PROGRAM.format(begin=begin, setup=setup, call=call, dies_s=dies_s, calls_s=calls_s, again=again,
                             clear_up=clear_up)

    def case(problems):
        command = [build / "bin/oshrun", "-n", str(PES), *sanitized.WRAPPER * (build == sanitized.BUILD), python, "-c",
                   program]
        start = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                              env=interpreter.environment(build, **environment))
        seconds = time.monotonic() - start
        died = r"PE 1 \(pid \d+\) (?:died|was killed by signal 9).*: the job is over"
        caught = re.findall(rf"^caught .*{died}$", done.stdout, re.M)
        shown = re.findall(rf"RuntimeError: .*{died}$", done.stderr, re.M)  # the first call, and the call of `again`
        if done.returncode != 128 + 9 or seconds > SECONDS:
            problems.append(f"status {done.returncode} after {seconds:.1f} s")
        if (len(caught), len(shown) / 2, done.stdout.count("cleared up")) != (PES - 1,) * 3:
            problems.append("not all of the others have caught it")
        if re.search("Sanitizer|Fatal Python error|Segmentation|terminate called", done.stderr):
            problems.append("a crash")
        if problems:
            problems += (done.stdout + done.stderr).splitlines()[-40:]
    return case


def in_call(name, **more):
    """Computes a product before, because a PE that is loading the library for it does not notice a death meanwhile."""
    return death_in(PYTHON, CALLS[name], setup=CALLS[name] if "matmul" in name else "", **more)


CASES = [(f"killed while the others are in {name}", in_call(name)) for name in CALLS]
CASES += [(f"killed before the others come to {name}", death_in(PYTHON, CALLS[name], dies_s=0, calls_s=0.1))
          for name in ("barrier", "wait", "wait32", "zeros", "finalize", "all_reduce", "wait_until_any", "set_lock")]
if WITH_TORCH:
    CASES += [(f"killed while the others are in weft.torch's {name}",
               death_in(WITH_TORCH, call, "import torch, weft.torch as symm_mem", TORCH_SETUP))
              for name, call in TORCH_CALLS.items()]

    # Compiled in advance, not during a case.
    subprocess.run([WITH_TORCH, "-c", "import weft.torch; weft.torch.install()"], env=interpreter.environment(),
                   check=True)

    def in_backend(name, **more):
        return death_in(WITH_TORCH, BACKEND_CALLS[name], "import torch, weft.torch as symm_mem", BACKEND_SETUP,
                        again=BACKEND_CALLS[name], clear_up="x = h = y = None", **more)
    CASES += [(f"killed while the others are in the backend's {name}", in_backend(name)) for name in BACKEND_CALLS]
    CASES += [(f"killed before the others come to the backend's {name}", in_backend(name, dies_s=0, calls_s=0.1))
              for name in ("handle.barrier", "rendezvous", "empty")]
if os.environ.get("WEFT_TEST_LONG") and sanitized.is_built():
    CASES += [(f"sanitized: killed while the others are in {name}",
               in_call(name, build=sanitized.BUILD, environment=sanitized.ENVIRONMENT)) for name in CALLS]
tap.run(tap.ahead(CASES))
