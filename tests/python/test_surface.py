# SPDX-License-Identifier: BSD-3-Clause
"""The package's interface: every name is documented, and its signature is that of the type stubs."""
import ast
import inspect
import pathlib

import pytest
import weft
from weft import _core

STUBS = ast.parse(pathlib.Path(weft.__file__).with_name("_core.pyi").read_text())


def parameters(function):
    """Returns the parameter names, the keyword-only ones, and the defaults of a stub."""
    several = [function.args.vararg] if function.args.vararg else []
    given = [a.arg for a in function.args.posonlyargs + function.args.args + several]
    return [name for name in given if name not in ("self", "cls")], [a.arg for a in function.args.kwonlyargs], \
        [ast.literal_eval(d) for d in function.args.defaults + [d for d in function.args.kw_defaults if d]]


def of_signature(call):
    found = [p for p in inspect.signature(call).parameters.values() if p.name != "self"]
    return [p.name for p in found if p.kind != p.KEYWORD_ONLY], [p.name for p in found if p.kind == p.KEYWORD_ONLY], \
        [p.default for p in found if p.default is not p.empty]


def stub_functions():
    for node in STUBS.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, getattr(_core, node.name), node
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for method in node.body:
                plain = isinstance(method, ast.FunctionDef) and not method.decorator_list
                if plain and method.name not in ("__buffer__", "__len__", "__new__", "__enter__"):
                    yield f"{node.name}.{method.name}", getattr(getattr(_core, node.name), method.name), method


@pytest.mark.parametrize("name, call, stub", list(stub_functions()), ids=lambda value: value if isinstance(value, str) else "")
def test_stubs(name, call, stub):
    assert of_signature(call) == parameters(stub)


def test_everything_has_a_stub():
    stubs = {node.name: node for node in STUBS.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for name in (name for name in dir(_core) if not name.startswith("_")):
        assert name in stubs or name == "world", name
        if isinstance(getattr(_core, name), type):
            members = {member.name for member in stubs[name].body}
            own = {member for member in vars(getattr(_core, name)) if not member.startswith("__")}
            assert own <= members, own - members


def test_everything_is_there_and_documented():
    assert set(weft.__all__) >= {name for name in dir(_core) if not name.startswith("_")}
    for name in weft.__all__:
        documentation = inspect.getdoc(getattr(weft, name))
        assert documentation and len(documentation) > 20, name
    for kind in (weft.Buffer, weft.Team, weft.Ctx, weft.Lock, weft.Block, weft.Share, weft.DeviceTeam):
        for name, member in vars(kind).items():
            if not name.startswith("_"):
                assert inspect.getdoc(member), f"{kind.__name__}.{name}"


def test_nothing_private_is_listed():
    """The modules that the package is made of are no part of what it offers."""
    import pydoc
    listed = [name for name in dir(weft) if not name.startswith("__")]
    assert set(weft.__all__) <= set(listed) <= {*weft.__all__, "torch"}
    text = pydoc.plain(pydoc.render_doc(weft))
    assert "weft._" not in text and "    class Lock(" in text


def test_calls_name_their_errors():
    for name in ("put", "get", "put_signal", "signal", "wait", "fence", "quiet", "sync", "barrier", "all_reduce",
                 "empty", "zeros", "all_gather_matmul", "init", "put_slice", "pad_put", "Ctx", "Lock", "inscan", "collect",
                 "iput", "ibget", "ptr", *(name for name in weft.__all__ if "_lock" in name or "wait_until" in name),
                 *(name for name in weft.__all__ if name.startswith(("atomic_", "test")) or name.endswith("_nbi"))):
        text = inspect.getdoc(getattr(weft, name))
        assert "Error" in text or "Errors as for " in text, name


def test_neither_torch_nor_numpy_is_needed():
    import subprocess
    import sys
    check = "import sys, weft; sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'weft.torch')))"
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0


def test_device_library():
    for sm, form in ((70, "bc"), (90, "cubin")):
        with pytest.raises(ValueError, match=r"there are 80 and 90, bc and ptx"):
            weft.get_device_library(sm, form)
