#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""weft.torch.hyperparallel on CPU tensors: all of it on 1 to 4 ranks, a part on 17, and its first call under each
launcher, with torch.distributed and without.
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402
import tap  # noqa: E402
from interpreter import run  # noqa: E402

BUILD = interpreter.BUILD
PYTHON = interpreter.find("pytest", "torch")
TESTS = [HERE / f"torch_handler_{name}.py" for name in ("calls", "collectives", "lanes", "lifetime")]
MANY = ("test_blocks or all_gather_in_place or all_to_all_of_shapes or both_products or own_b or no_addition or "
        "relay or completes_puts")


def with_torch(test):
    def case(problems):
        if PYTHON is None:
            raise tap.Skip("no Python from 3.10 on has pytest and torch here")
        test(problems)
    return case


def on(ranks, *options):
    def test(problems):
        lines = run(problems, BUILD / "bin/oshrun", "-n", ranks, PYTHON, HERE / "run.py", *options, *TESTS,
                    timeout_s=900)
        interpreter.tell(f"{ranks} ranks", lines)
    return with_torch(test)


def begins(problems):
    """Every first call, by launchers in turn."""
    script = HERE / "torch_handler_start.py"
    torchrun = [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0", "--standalone"]
    oshrun = [BUILD / "bin/oshrun", "-n", "2", PYTHON]
    for launcher, first, environment in [
            ([PYTHON], "empty", {}), (oshrun, "barrier", {}), (oshrun, "rank", {}), (oshrun, "close", {}),
            (torchrun, "empty", {}), (torchrun, "acquire", {"GLOO": "1"}), (torchrun, "barrier", {"GLOO": "1"})]:
        lines = run(problems, *launcher, script, first, timeout_s=240, **environment)
        if sum(line.endswith(": right") for line in lines) != (1 if launcher == [PYTHON] else 2):
            problems += [f"{launcher} {first}: got", *lines]


tap.run([(f"the handler on {ranks} ranks", on(ranks)) for ranks in interpreter.RANKS]
        + [("the handler on 17 ranks", on(17, "-k", MANY))] * (4 in interpreter.RANKS)
        + [("whatever is called first", with_torch(begins))])
