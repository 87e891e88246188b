# SPDX-License-Identifier: BSD-3-Clause
"""weft.torch has PyTorch's names of functions, parameters and members of handles, with PyTorch's defaults and in its
order; Weft's additional parameters come last and have defaults.
"""
import inspect
import re

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
import torch.distributed._symmetric_memory as torch_symm_mem  # noqa: E402
from torch._C._distributed_c10d import _SymmetricMemory  # noqa: E402

import weft.torch as symm_mem  # noqa: E402
from torch_world import on_world, raises  # noqa: E402

FUNCTIONS = [name for name, value in vars(torch_symm_mem).items()
             if inspect.isfunction(value) and value.__module__ == torch_symm_mem.__name__ and not name.startswith("_")]
OPERATORS = [schema for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("symm_mem::")
             and hasattr(symm_mem, schema.name.partition("::")[2].lstrip("_")) and schema.name != "symm_mem::_rendezvous"]
MEMBERS = [name for name in vars(_SymmetricMemory) if not name.startswith("_")]
REQUIRED = inspect.Parameter.empty


def parameters(function, renamed=()):
    """(name, kind, default) of each."""
    found = inspect.signature(function).parameters.values()
    return [(dict(renamed).get(p.name, p.name), p.kind, p.default) for p in found if p.name != "self"]


def assert_takes(ours, theirs):
    assert ours[:len(theirs)] == theirs
    assert all(default is not REQUIRED for _, _, default in ours[len(theirs):])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    assert name in vars(symm_mem)  # and not PyTorch's substitute for a missing function
    assert_takes(parameters(getattr(symm_mem, name)), parameters(getattr(torch_symm_mem, name)))


def test_no_operator_is_missing():
    """Except those of multicast, of NCCL, of NVSHMEM and of one kind of GPU."""
    others = re.compile("_?(multimem|nccl|nvshmem|tile|multi_root_tile)_|memcpy_to_multicast_|.*_ce_multicast|_async_input_mm")
    names = {schema.name.partition("::")[2] for schema in torch._C._jit_get_all_schemas()
             if schema.name.startswith("symm_mem::") and not hasattr(symm_mem, schema.name.partition("::")[2].lstrip("_"))}
    assert {name for name in names if not others.match(name)} <= {"_barrier"}  # a handle's


def of_schema(schema):
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return [(a.name, kinds[a.kwarg_only], a.default_value if a.has_default_value() else REQUIRED)
            for a in schema.arguments]


@pytest.mark.parametrize("schema", OPERATORS, ids=lambda schema: schema.name.partition("::")[2])
def test_operators(schema):
    """The functions for them may have defaults where the operators have none."""
    ours = getattr(symm_mem, schema.name.partition("::")[2].lstrip("_"))
    pairs = list(zip(parameters(ours, {"group": "group_name"}.items()), of_schema(schema), strict=True))
    for (name, kind, default), (their_name, their_kind, their_default) in pairs:
        assert (name, kind) == (their_name, their_kind)
        assert default == their_default or their_default is REQUIRED


@pytest.mark.parametrize("schema", OPERATORS, ids=lambda schema: schema.name.partition("::")[2])
def test_operators_take_either_name_of_a_group(schema):
    ours, given = getattr(symm_mem, schema.name.partition("::")[2].lstrip("_")), dict.fromkeys(
        argument.name for argument in schema.arguments)
    if given.pop("group_name", ours) is ours:
        return
    raises(TypeError, "unsupported group type", ours, **given, group_name=3)
    raises(TypeError, "unsupported group type", ours, **given, group=3)
    raises(TypeError, f"{ours.__name__}: got group and group_name", ours, **given, group=3, group_name=3)


def of_text(function):
    """The first line of pybind11's docstring: name(arg: type = default, ...) -> type."""
    line = function.__doc__.split("\n")[0].replace("= []", "= ()")
    given = re.sub(r"\[[^\[\]]*\]", "", line).partition("(")[2].rpartition(") ->")[0]
    words = [each for each in re.split(", ?", given) if each and not each.startswith("self")]
    return [(word.partition(":")[0], inspect.Parameter.POSITIONAL_OR_KEYWORD,
             eval(word.partition(" = ")[2]) if " = " in word else REQUIRED) for word in words]


@pytest.mark.parametrize("name", MEMBERS)
def test_members_of_handles(name):
    theirs, ours = vars(_SymmetricMemory)[name], getattr(symm_mem.SymmetricMemory, name, None)
    if name in ("rank", "world_size", "device", "buffer_size", "offset", "multicast_ptr", "buffer_ptrs", "signal_pad_ptrs",
                "signal_pad_size"):
        return  # of each handle: torch_memory.py
    assert ours is not None
    if isinstance(theirs, property):
        assert isinstance(getattr(symm_mem.SymmetricMemory, name), property)
        return
    theirs = getattr(_SymmetricMemory, name)
    # pybind11 writes a signature; functions that install() adds to older versions have none in their docstrings.
    expected = of_text(theirs) if ") -> " in theirs.__doc__ else parameters(theirs)
    found = parameters(ours)
    if any(argument.startswith("arg") for argument, _, _ in expected):  # positional, without names
        assert len(found) == len(expected)
    else:
        assert_takes(found, expected)


def test_everything_is_documented():
    for name, value in vars(symm_mem).items():
        if inspect.isfunction(value) and not name.startswith("__"):
            assert inspect.getdoc(value), name
    for kind in (symm_mem.SymmetricMemory, symm_mem.SymmetricMemoryHandler):
        for name in dir(kind):
            if not name.startswith("_") and callable(getattr(kind, name)):
                assert inspect.getdoc(inspect.getattr_static(kind, name)), f"{kind.__name__}.{name}"


def test_what_is_not_there_says_whose_it_is_not():
    raises(AttributeError, "weft.torch.*no_such", getattr, symm_mem, "no_such")
    assert symm_mem._ScaleMode is torch_symm_mem._ScaleMode


def test_pytorch_can_list_our_operators():
    """torch.compile and torch.export look at every operator there is, and fail with one that is gone."""
    from torch._export.utils import _collect_all_valid_cia_ops
    assert _collect_all_valid_cia_ops()


@on_world
def test_arguments_of_other_types(group):
    t = symm_mem.empty(4, device="cpu")
    handle = symm_mem.rendezvous(t, group)
    raises(TypeError, "rendezvous: got tensor of type list", symm_mem.rendezvous, [1], group)
    for call in (symm_mem.put, symm_mem.get, symm_mem.put_signal):
        name = "dst" if call is symm_mem.get else "src"
        raises(TypeError, f"{call.__name__}: got {name} of type NoneType", call, None, handle, 0)
        raises(TypeError, f"{call.__name__}: got hdl of type NoneType", call, t, None, 0)
    raises(TypeError, "wait_signal: got hdl of type Tensor", symm_mem.wait_signal, t, 0)
    raises(TypeError, "not a member", symm_mem.rendezvous, t, dist.GroupMember.NON_GROUP_MEMBER)
    raises(TypeError, "not a member", symm_mem.all_reduce, t, "sum", dist.GroupMember.NON_GROUP_MEMBER)
    symm_mem.put(src=torch.ones(2), hdl=handle, peer=group.rank(), offset=1)
    symm_mem.get(dst=t[2:], hdl=handle, peer=group.rank())
    handle.barrier()
