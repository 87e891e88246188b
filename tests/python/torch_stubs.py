# SPDX-License-Identifier: BSD-3-Clause
"""The type stubs of weft.torch: every public name has one, with the function's parameter names and defaults. mypy
checks them in torch.t.
"""
import ast
import inspect
import pathlib

import pytest

pytest.importorskip("torch")

import weft  # noqa: E402
import weft.torch  # noqa: E402
import weft.torch.deep_ep  # noqa: E402
import weft.torch.hyperparallel  # noqa: E402
import weft.torch.moe  # noqa: E402
from test_surface import of_signature, parameters  # noqa: E402

FOLDER = pathlib.Path(weft.torch.__file__).parent


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


CASES = [(module, name, stub) for module, file in ((weft.torch, "__init__.pyi"), (weft.torch.hyperparallel, "hyperparallel.pyi"),
                                              (weft.torch.moe, "moe.pyi"), (weft.torch.deep_ep, "deep_ep.pyi"))
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
