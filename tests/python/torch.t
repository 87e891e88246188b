#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""weft.torch on CPU tensors, under pytest and hypothesis, on 1 to 4 PEs, and once more through PyTorch's registry; its
functions compared with PyTorch's own of the same names; its type stubs; its example, which must learn the same under
every launcher.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402
import tap  # noqa: E402
from interpreter import run  # noqa: E402

BUILD, ROOT = interpreter.BUILD, interpreter.ROOT
PYTHON = interpreter.find("pytest", "hypothesis", "torch")
QUIET = ["--capture=sys", "--show-capture=no"]
TESTS = [str(HERE / f"torch_{name}.py") for name in (
    "names", "stubs", "memory", "devices", "operators", "dtensors", "exchange", "moe", "deep_ep", "matrices",
    "gradients")]
EXAMPLES = ROOT / "examples/python"


def with_torch(test):
    def case(problems):
        if PYTHON is None:
            raise tap.Skip("no Python from 3.10 on has pytest, hypothesis and torch here")
        test(problems)
    return case


def on(pes, **more):
    def test(problems):
        if more and not (shutil.which("c++") or shutil.which("g++")):
            raise tap.Skip("there is no C++ compiler here")
        lines = run(problems, BUILD / "bin/oshrun", "-n", pes, PYTHON, HERE / "run.py", *QUIET, *TESTS,
                    timeout_s=900, **more)
        interpreter.tell(f"{pes} PEs", lines)
    return with_torch(test)


def example(problems):
    plain = run(problems, PYTHON, EXAMPLES / "mlp.py", timeout_s=120)
    program = EXAMPLES / "tensor_parallel_mlp.py"
    for launcher in ([PYTHON], [BUILD / "bin/oshrun", "-n", "2", PYTHON],
                     [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", "2"]):
        lines = run(problems, *launcher, program, timeout_s=240)
        if lines != plain:
            problems += [f"by {launcher}: got", *lines, "expected", *plain]


def as_in_one_process(name):
    """The example compares several processes with one."""
    def test(problems):
        for launcher in ([BUILD / "bin/oshrun", "-n", "4", PYTHON],
                         [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", "2"]):
            lines = run(problems, *launcher, EXAMPLES / name, timeout_s=240)
            if lines[-1:] != ["the same as in one process"]:
                problems += [f"by {launcher}: got", *lines]
    return with_torch(test)


def stubs(problems):
    """mypy finds no error: in a program that uses the stubs, and between the stubs and the package."""
    if not interpreter.has(PYTHON, "mypy"):
        raise tap.Skip(f"{PYTHON} has no mypy")
    with tempfile.TemporaryDirectory() as name:
        config, known = pathlib.Path(name, "mypy.ini"), pathlib.Path(name, "known")
        config.write_text(f"[mypy]\ncache_dir = {name}\nignore_errors = True\n")  # functions whose types are not annotated
        # Python before 3.12 does not show the first; the second is PyTorch's list, through __getattr__; the others are
        # untyped functions in functools.cache and once_differentiable, which stubtest mistakes for the wrapper.
        known.write_text("weft._core.Buffer.__buffer__\nweft.torch.__all__\nweft.triton._library._(arch_of|path)\n"
                         "weft.torch._dtensors._(Gathered|Reduced|Product).backward\n")
        for command in (["mypy", "--strict", HERE / "torch_typed.py"],
                        ["mypy.stubtest", "--mypy-config-file", config, "--allowlist", known,
                         "--ignore-unused-allowlist", "weft"]):
            run(problems, PYTHON, "-m", *command, MYPYPATH=str(BUILD / "python"), MYPY_CACHE_DIR=name, timeout_s=600)
    if not problems:
        print("# area names: 2 passed, 0 skipped")


def untested(problems):
    """For an untested PyTorch that lacks a name, the warning precedes the import error."""
    done = subprocess.run([PYTHON, "-c", "import torch, torch.distributed._symmetric_memory as theirs\n"
                           "torch.__version__ = '9.0.0'\ndel theirs.enable_symm_mem_for_group\nimport weft.torch"],
                          capture_output=True, text=True, timeout=120, env=interpreter.environment())
    if done.returncode != 1 or "ImportError" not in done.stderr or ", this is 9.0.0" not in done.stderr:
        problems += [f"status {done.returncode}", *done.stderr.splitlines()[-20:]]


def pairs(problems):
    """Returns the wrong lines, with mypy's explanation."""
    lines = run(problems, BUILD / "bin/oshrun", "-n", "2", PYTHON, "-W", "ignore", HERE / "gpu_pairs.py", "--cpu",
                timeout_s=400)
    found = [line for line in lines if line.startswith(("not ok", "#"))]
    if problems:
        problems[1:] = found + problems[-20:]
    elif found:
        print(f"# 2 PEs: {found[-1][2:]}")


tap.run([(f"weft.torch on {pes} PEs", on(pes)) for pes in interpreter.RANKS]
        + [("weft.torch on 2 PEs through PyTorch's registry", on(2, WEFT_TEST_BACKEND="1")),
           ("weft.torch beside PyTorch's own, function by function", with_torch(pairs)),
           ("type stubs, by mypy", with_torch(stubs)),
           ("an untested PyTorch is named first", with_torch(untested)),
           ("tensor_parallel_mlp.py learns as mlp.py does", with_torch(example)),
           ("moe.py learns the same in several processes as in one", as_in_one_process("moe.py")),
           ("deep_ep.py computes the same in several processes as in one", as_in_one_process("deep_ep.py"))])
