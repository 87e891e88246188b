# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's default device belongs to the program: CPU tensors and their operators work while it is another one,
because every tensor that the package makes names its device.
"""
import ast
import contextlib
import pathlib

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hypothesis")

from torch.utils import _device  # noqa: E402

import weft.torch as symm_mem  # noqa: E402
from torch_world import on_groups  # noqa: E402

MAKERS = {maker.__name__ for maker in _device._device_constructors()}


@contextlib.contextmanager
def by_setting(device):
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)


def answers(group):
    """Returns the results of the calls of each family, as lists and numbers."""
    rank, n = group.rank(), group.size()
    peer = (rank + 1) % n
    t = symm_mem.empty(8, device="cpu").fill_(rank + 1.)
    handle = symm_mem.rendezvous(t, group)
    handle.barrier()
    yield handle.get_buffer(peer, (8,), torch.float32).tolist()
    yield handle.get_buffer(peer, (0,), torch.float32).shape, symm_mem.empty(0, device="cpu").device
    pad = handle.get_signal_pad(peer)
    yield pad.shape, pad.device, handle.get_remote_tensor(peer, (2,), torch.float32).tolist()
    yield [x.tolist() for x in symm_mem.get_remote_tensors(t, group)]
    yield symm_mem.one_shot_all_reduce(t, "sum", group).tolist()
    yield symm_mem.low_contention_all_gather(t, group).tolist()
    x = torch.full((2 * n, 2), rank + 1., device="cpu")
    yield symm_mem.all_reduce(x, "max", group).tolist(), symm_mem.all_gather(x, 1, group).tolist()
    yield symm_mem.reduce_scatter(x, "sum", 0, group).tolist(), symm_mem.all_to_all(x, group).tolist()
    yield [each.tolist() for each in symm_mem.fused_all_gather_matmul(x, [x[:2]], 0, group)[1]]
    yield symm_mem.fused_matmul_reduce_scatter(x, x[:2], "sum", 0, group).tolist()
    yield symm_mem.get_symm_mem_workspace(group.group_name, 4096, device="cpu").buffer_size >= 4096
    splits, places = (torch.full(sizes, 2, dtype=torch.int64, device="cpu") for sizes in ((n,), (2, n)))
    out = torch.zeros((2 * n, 2), device="cpu")
    symm_mem.all_to_all_vdev(x, out, splits, places, group)
    yield out.tolist(), places.tolist()
    symm_mem.put(x.flatten()[:2], handle, peer, offset=2)
    handle.barrier()
    got = torch.zeros(4, device="cpu")
    symm_mem.get(got, handle, peer)
    yield got.tolist()
    handle.barrier()


@on_groups
def test_another_default_device(group):
    expected = list(answers(group))
    for way in (by_setting, torch.device):
        with way("meta"):
            got = list(answers(group))
            assert torch.ones(1).is_meta
        assert got == expected


def unnamed(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MAKERS
                and getattr(node.func.value, "id", None) == "torch"
                and "device" not in {keyword.arg for keyword in node.keywords}):
            yield f"{path.name}:{node.lineno}"


def test_tensors_name_their_device():
    sources = list(pathlib.Path(symm_mem.__file__).resolve().parents[1].rglob("*.py"))
    assert len(sources) > 40
    assert [place for path in sources for place in unnamed(path)] == []
