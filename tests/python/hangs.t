#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hang reports name the Python call and the program's own file and line, but not if another thread holds the GIL. The
report of a signal-pad barrier names the PE that it waits for.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402
import tap  # noqa: E402

PYTHON = interpreter.find() or sys.executable
BEGIN = "import array, ctypes, sys, threading, time, weft\nweft.init()\nme = weft.my_pe()\n"
WORK = tempfile.TemporaryDirectory(prefix="weft-hangs-")

# the name, the program after the three lines above, and the expected report.
SCENES = [
    ("a barrier of pads against a reduction", """
block = weft.Block("host", 64)
share = block.share([0, 1])
pads = array.array("Q", [share.ptr(0), share.ptr(1)])
if me == 0:
    weft.pad_barrier(pads.buffer_info()[0], 0, 2, 0)
weft.all_reduce(array.array("d", [1]))
""", [r"PE 0 \(pid \d+\): shmemx_pad_barrier_on_stream \(weft.pad_barrier at train.py:9\) has waited \S+ s for PE 1 \(pid \d+\), which is in weft_all_reduce \(weft.all_reduce at train.py:10\)"]),
    ("a share against a reduction", """
data = array.array("d", [1])
block = weft.Block("host", 64)
if me == 0:
    block.share([0, 1])
weft.all_reduce(data)
""", [r"PE 0 \(pid \d+\): shmemx_share_attach \(Block.share at train.py:8\) has waited \S+ s for PE 1 \(pid \d+\), which is in weft_all_reduce \(weft.all_reduce at train.py:9\)",
      r"PE 1 \(pid \d+\): weft_all_reduce \(weft.all_reduce at train.py:9\) has waited \S+ s for PE 0 \(pid \d+\), which is in shmemx_share_attach \(Block.share at train.py:8\)"]),
    ("a barrier against a reduction", """
data = array.array("d", [1])
def step():
    if me == 0:
        weft.barrier()
    weft.all_reduce(data)
step()
""", [r"PE 0 \(pid \d+\): shmem_team_sync \(weft.barrier at train.py:8\) has waited \S+ s for PE 1 \(pid \d+\), which is in weft_all_reduce \(weft.all_reduce at train.py:9\)\.",
      r"PE 1 \(pid \d+\): weft_all_reduce \(weft.all_reduce at train.py:9\) has waited \S+ s for PE 0 \(pid \d+\), which is in shmem_team_sync \(weft.barrier at train.py:8\)\."]),
    ("a PE that sleeps", "if me == 1:\n    time.sleep(100)\nweft.barrier()\n",
     [r"PE 0 \(pid \d+\): shmem_\w+ \(weft.barrier at train.py:6\) has waited \S+ s for PE 1 \(pid \d+\), which is in no call of Weft that lasts \(its own code, or a loop of tests or fetches\): it sleeps"]),
    ("a wait for a word", "word = weft.zeros(1, 'uint64')\nif me == 0:\n    weft.wait(word, 5)\nweft.barrier()\n",
     [r"PE 0 \(pid \d+\): weft.wait at train.py:6 has waited \S+ s; any PE may end it\. PE 1 \(pid \d+\) is in shmem_\w+ \(weft.barrier at train.py:7\)"]),
    ("a call in another thread", "def work():\n    if me == 0:\n        weft.barrier()\nthread = threading.Thread(target=work)\nthread.start()\ntime.sleep(100)\n",
     [r"PE 0 \(pid \d+\): shmem_\w+ \(weft.barrier at train.py:6\) has waited"]),
    ("a thread that keeps the GIL", "def keep():\n    time.sleep(0.02)\n    ctypes.PyDLL(None).sleep(100)\nif me == 0:\n    threading.Thread(target=keep).start()\n    weft.barrier()\ntime.sleep(100)\n",
     [r"PE 0 \(pid \d+\): shmem_\w+ has waited \S+ s for PE 1"]),
]

TORCH = """import weft.torch as symm_mem
group = symm_mem.init_process_group()
t = symm_mem.empty(4, device="cpu").fill_(1)
handle = symm_mem.rendezvous(t, group)
if group.rank() == 0:
    handle.barrier()
else:
    symm_mem.one_shot_all_reduce(t, "sum", group)
"""
TORCH_SAYS = [r"PE 0 \(pid \d+\): shmemx_pad_barrier_on_stream \(\S*barrier at train.py:6\) has waited \S+ s for PE 1 \(pid \d+\), "
              r"which is in weft_all_reduce \(one_shot_all_reduce at train.py:8\)"]


def scene(number, program, wanted, *modules):
    def case(problems):
        python = interpreter.find(*modules) if modules else PYTHON
        if python is None:
            raise tap.Skip(f"no Python from 3.10 on has {' and '.join(modules)} here")
        path = pathlib.Path(WORK.name) / str(number) / "train.py"
        path.parent.mkdir()
        path.write_text(program)
        job = subprocess.Popen([interpreter.BUILD / "bin/oshrun", "-n", "2", python, str(path)], stderr=subprocess.PIPE, text=True,
                               env=interpreter.environment(WEFT_HANG_SECONDS="0.4"))
        limit = threading.Timer(30, job.terminate)
        limit.start()
        missing, said = list(wanted), []
        for line in job.stderr:
            said.append(line)
            missing = [pattern for pattern in missing if not re.search(pattern, line)]
            if not missing:
                break
        job.terminate()
        job.communicate()
        limit.cancel()
        problems.extend(f"no line with {pattern}" for pattern in missing)
        if problems:
            problems.extend(said)
    return case


cases = [(f"{name} is explained", scene(number, BEGIN + program, wanted)) for number, (name, program, wanted) in enumerate(SCENES)]
tap.run(tap.ahead([*cases, ("functions of weft.torch are named as programs call them", scene("torch", TORCH, TORCH_SAYS, "torch"))]))
