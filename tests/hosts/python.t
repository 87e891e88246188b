#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Python over hosts of the rig: the package's tests and examples on 2 hosts x 2 PEs and, if PyTorch is installed, its
process groups, their store and the perceptron, whose losses are those of one process; by oshrun, by MPICH's hydra, and
by torchrun, which also starts C programs."""
import os
import shutil
import subprocess
import sys
import tempfile

import rig

rig.enter(3)
sys.path[:0] = [str(rig.HERE.parent / "python"), str(rig.HERE.parent)]
import interpreter  # noqa: E402
import tap  # noqa: E402

ROOT, BUILD = interpreter.ROOT, interpreter.BUILD
LONG = bool(os.environ.get("WEFT_TEST_LONG"))
TESTS = ["test_*.py"] if LONG else ["test_collectives.py", "test_rma.py"]
OF_ANY_PES = " and ".join(f"not {word}" for word in (  # others load and store in peers' memory
    "symmetric", "scatter_out", "reduces_refuse", "exchange_by_copies", "broadcast", "put_get", "tiles", "graphs",
    "without_a_gradient"))
MEETING = """
import os, pathlib, socket, struct
import torch, torch.distributed as dist, weft, weft.torch as symm_mem

def sockets():
    return {os.path.realpath(f"/proc/self/fd/{fd}").strip("]").split("[")[-1] for fd in os.listdir("/proc/self/fd")}

def listens():
    "At which addresses this process does, but for the engine."
    rows = [line.split() for name in ("tcp", "tcp6") for line in pathlib.Path("/proc/net", name).read_text().splitlines()[1:]]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in sockets() - of_engine}

weft.init()
weft.barrier()
of_engine = sockets()
group = symm_mem.init_process_group()
me, n = group.rank(), group.size()
assert (me, n) == (weft.my_pe(), weft.n_pes())
here = socket.inet_aton("10.77.0.%d" % (1 + me // 2))
assert listens() == {"%08X" % struct.unpack("=I", here)}, listens()

total = torch.full((1000,), me + 1.)
dist.all_reduce(total)  # by gloo
assert torch.equal(total, symm_mem.all_reduce(torch.full((1000,), me + 1.), "sum", group)), total
across, within = ([dist.new_group(ranks) for ranks in pairs] for pairs in (((0, 3), (1, 2)), ((0, 1), (2, 3))))
mine = across[me in (1, 2)], within[me // 2]
sums = [symm_mem.all_reduce(torch.tensor([me]), "sum", pair).item() for pair in mine]
assert sums == [3, 1 if me < 2 else 5], sums

def neighbour():
    tensor = symm_mem.empty(4, device="cpu").fill_(me)
    handle = symm_mem.rendezvous(tensor, mine[1])
    handle.barrier()
    theirs = handle.get_buffer(1 - handle.rank, (4,), tensor.dtype)[0].item()
    handle.barrier()
    return theirs

assert neighbour() == me ^ 1
try:
    symm_mem.rendezvous(symm_mem.empty(4, device="cpu"), group)
except NotImplementedError as refusal:
    assert "is far from PE %d" % me in str(refusal), refusal
    print("met and refused", flush=True)
dist.barrier()
dist.destroy_process_group()
"""


def over(problems, hosts, *command, **more):
    """Returns the output of a program over hosts, which have no GPU; adds a problem if it fails."""
    environment = interpreter.environment(WEFT_SSH="fakessh", OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", **more)
    kept = [word for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "CUDA_VISIBLE_DEVICES") for word in ("-x", name)]
    done = subprocess.run([BUILD / "bin/oshrun", "--hosts", hosts, *kept, *command], capture_output=True, text=True,
                          env=environment, timeout=120)
    if done.returncode:
        problems += [f"status {done.returncode}", *done.stdout.splitlines()[-40:], *done.stderr.splitlines()[-40:]]
    return done.stdout.splitlines()


def by_torchrun(problems, hosts, each, *command, **more):
    """Returns the output of a program on all hosts: on each of them PyTorch's own agent starts its ranks."""
    words = [python("torch"), "-m", "torch.distributed.run", "--nnodes", hosts, "--nproc-per-node", each, "--master-addr", "h0",
             "--master-port", "29500", "--monitor-interval", "0.1"]
    environment = interpreter.environment(OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", **more)
    agents = [subprocess.Popen(["on", f"h{rank}", *map(str, [*words, "--node-rank", rank, *command])], text=True, env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(hosts)]
    said = [agent.communicate(timeout=300) for agent in agents]
    if any(agent.returncode for agent in agents):
        problems += [f"status {[agent.returncode for agent in agents]}", *"".join(sum(said, ())).splitlines()[-60:]]
    return "".join(out for out, _ in said).splitlines()


def python(*modules):
    """Returns its whole path: PATH is not forwarded to other hosts."""
    found = interpreter.find(*modules)
    if found is None:
        raise tap.Skip(f"no Python from 3.10 on has {' and '.join(modules)} here")
    return shutil.which(found)


def interface(problems):
    said = [over(problems, "h0,h1", "printenv", "WEFT_INTERFACE"),
            over(problems, "h0,h1", BUILD / "bin/oshrun", "-n", "1", "sh", "-c", "echo $WEFT_INTERFACE.")]
    problems += [] if said == [["eth0"] * 2, ["."] * 2] else [f"said {said}"]


def tests(problems):
    files = sorted(path for name in TESTS for path in (ROOT / "tests/python").glob(name))
    lines = over(problems, "h0:2,h1:2", python("pytest", "numpy"), ROOT / "tests/python/run.py",
                 *([] if LONG else ["-k", "not random"]), *files)
    interpreter.tell("2 hosts x 2", lines)


def examples(problems):
    for name, text in (("ring", "the token is 18"), ("one_shot_all_reduce", "agree with weft.all_reduce")):
        lines = over(problems, "h0:2,h1:2", python("numpy"), ROOT / f"examples/python/{name}.py")
        problems += [] if text in "".join(lines) else [f"{name}: no {text!r} in {lines}"]


def by_hydra(problems, program):
    """Runs on two hosts, without options for their network."""
    if not shutil.which("mpiexec.hydra"):
        raise tap.Skip("there is no mpiexec.hydra here (package mpich)")
    words = ["mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", rig.HERE / "bin/fakessh", "-iface", "bridge", "-hosts",
             "h0:2,h1:2", "-n", "4", python("torch"), program]
    return interpreter.run(problems, *words, CUDA_VISIBLE_DEVICES="")


def meet(start):
    """Starts four ranks on two hosts."""
    def groups(problems):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(MEETING)
            file.flush()
            lines = start(problems, file.name)
        problems += [] if lines == ["met and refused"] * 4 else [f"printed {lines}"]
    return groups


def plain_program(problems):
    starts = str(BUILD / "tests/hosts/starts")
    for hosts, each in ((2, 1), (2, 2), (3, 1)):
        lines = by_torchrun(problems, hosts, each, "--no-python", starts, "work")
        problems += [] if len(lines) == hosts * each else [f"{hosts} x {each} printed {lines}"]
    again = f"exec {starts} $([ $TORCHELASTIC_RESTART_COUNT = 0 ] && echo exit || echo work)"
    lines = by_torchrun(problems, 2, 2, "--max-restarts", 1, "--no-python", "sh", "-c", again)
    problems += [] if len(lines) == 8 else [f"after a restart printed {lines}"]


def operators(problems):
    files = [ROOT / f"tests/python/torch_{name}.py" for name in ("operators", "exchange", "gradients")]
    lines = over(problems, "h0:2,h1", python("pytest", "hypothesis", "torch"), ROOT / "tests/python/run.py", "--capture=sys",
                 "--show-capture=no", "-k", OF_ANY_PES, *files)
    interpreter.tell("3 ranks on 2 hosts", lines)


def perceptron(problems):
    plain = interpreter.run(problems, python("torch"), ROOT / "examples/python/mlp.py", CUDA_VISIBLE_DEVICES="")
    program = ROOT / "examples/python/tensor_parallel_mlp.py"
    for lines in (over(problems, "h0,h1", python("torch"), program), by_torchrun(problems, 3, 1, program)):
        problems += [] if lines == plain else ["got", *lines, "expected", *plain]


tap.run([("programs are told the interface of their job's network, and not that of another job", interface),
         ("the package's tests", tests),
         ("examples", examples),
         ("PyTorch's ranks meet in the job's network alone; groups are of any PEs, shares of near ones",
          meet(lambda problems, program: over(problems, "h0:2,h1:2", python("torch"), program))),
         ("the same by MPICH's hydra", meet(by_hydra)),
         ("the same by torchrun", meet(lambda problems, program: by_torchrun(problems, 2, 2, program))),
         ("torchrun starts a program of C, and once more after a failure", plain_program),
         ("the tensor-parallel perceptron learns as the one of a process does", perceptron)]
        + [("PyTorch's operators that are for any PEs", operators)] * LONG)
