# SPDX-License-Identifier: BSD-3-Clause
"""The type stubs of weft.torch: every public name has one, with the names and defaults of parameters that
the function has; and, where mypy is installed, a program that uses it passes mypy --strict."""
import ast
import importlib.util
import inspect
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")

import weft  # noqa: E402
import weft.torch  # noqa: E402
import weft.torch.hyperparallel  # noqa: E402
from test_surface import of_signature, parameters  # noqa: E402

FOLDER = pathlib.Path(weft.torch.__file__).parent
PROGRAM = '''
import torch
import weft
import weft.torch as symm_mem
from weft.torch import SymmetricMemoryHandler as symm


def main() -> torch.Tensor:
    group = symm_mem.init_process_group()
    t = symm_mem.empty(4, 5, device="cpu")
    u = symm_mem.empty((4, 5), dtype=torch.float32, device=torch.device("cpu"))
    handle = symm_mem.rendezvous(t, group)
    handle.barrier()
    theirs = handle.get_buffer(0, t.shape, t.dtype)
    total = symm_mem.one_shot_all_reduce(u, "sum", group.group_name)
    whole, products = symm_mem.fused_all_gather_matmul(theirs, [total], 0, group)
    symm_mem.put_signal(t, handle, 0)
    symm_mem.wait_signal(handle, 0)
    symm_mem.SymmetricMemory.signal_pad_size = 4096
    box = symm.empty((1024,), torch.float32)
    symm.shmem_put(box, 0, box, torch.tensor(0), 1, weft.my_pe())
    symm_mem.install()
    print(symm_mem.counters()["barriers"])
    return products[0]


main()
'''


def stubs(name):
    """Definitions of a stub, by name, with those of its classes; overloads are left out."""
    tree = ast.parse((FOLDER / name).read_text())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                plain = isinstance(member, ast.FunctionDef) and [getattr(d, "id", "") for d in member.decorator_list] in (
                    [], ["staticmethod"], ["classmethod"])
                if plain and not member.name.startswith("__"):
                    yield f"{node.name}.{member.name}", member


def found(module, path):
    for name in path.split("."):
        module = getattr(module, name)
    return module


CASES = [(module, name, stub) for module, file in ((weft.torch, "__init__.pyi"), (weft.torch.hyperparallel, "hyperparallel.pyi"))
         for name, stub in stubs(file) if not name.startswith("__") and stub.args.kwarg is None]


@pytest.mark.parametrize("module, name, stub", CASES, ids=[name for _, name, _ in CASES])
def test_parameters(module, name, stub):
    assert of_signature(found(module, name)) == parameters(stub)


def named(tree):
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.ImportFrom):
            yield from (each.asname or each.name for each in node.names)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            yield getattr(node, "targets", [getattr(node, "target", None)])[0].id


def test_everything_has_a_stub():
    in_stub = set(named(ast.parse((FOLDER / "__init__.pyi").read_text())))
    there = {name for name, value in vars(weft.torch).items()
             if not inspect.ismodule(value) and not name.startswith("_") or name in ("_SymmetricMemory", "_test_mode")}
    assert there <= in_stub, there - in_stub
    handler = weft.torch.SymmetricMemoryHandler
    in_stub = {name.partition(".")[2] for name, _ in stubs("hyperparallel.pyi") if name.startswith(handler.__name__)}
    assert {name for name in vars(handler) if not name.startswith("_")} == in_stub


@pytest.mark.skipif(not importlib.util.find_spec("mypy"), reason="mypy is not installed")
def test_a_strict_program(tmp_path):
    if weft.my_pe() == 0:
        (tmp_path / "program.py").write_text(PROGRAM)
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "program.py"], cwd=tmp_path, text=True,
                              capture_output=True, env={**os.environ, "MYPYPATH": str(FOLDER.parent.parent)})
        assert done.returncode == 0, done.stdout + done.stderr
