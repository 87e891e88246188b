# SPDX-License-Identifier: BSD-3-Clause
"""all_to_all_nd and reduce_scatter_offset on CPU tensors, of any sizes, against what gloo gathers; sums of
partial products; what PyTorch's module does with Weft's memory; and what is for NCCL or multicast alone."""
import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hypothesis")

import torch.distributed._symmetric_memory as torch_symm_mem  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import weft.torch as symm_mem  # noqa: E402
from torch_operators import drawn, of_all  # noqa: E402
from torch_world import on_groups, on_world, property_test, raises, seeded  # noqa: E402
from weft.torch import _versions  # noqa: E402

seeds = st.integers(0, 999)
TYPES = [torch.float32, torch.bfloat16, torch.int64]


def symmetric(values):
    return symm_mem.empty(values.shape, dtype=values.dtype, device="cpu").copy_(values)


@property_test(40, scatter=st.integers(0, 1), rows=st.integers(0, 5), cols=st.integers(0, 5),
               dtype=st.sampled_from(TYPES + [torch.uint8]), folded=st.booleans(), seed=seeds)
def test_all_to_all_nd(group, scatter, rows, cols, dtype, folded, seed):
    n, blocks = group.size(), [rows, cols]
    blocks.insert(scatter, n)
    x = drawn(blocks, dtype, seeded(seed, group))
    expected = torch.stack([each.select(scatter, group.rank()) for each in of_all(x, group)], 1 - scatter)
    out = torch.empty_like(expected)
    given = symmetric(x.flatten(scatter, scatter + 1) if folded else x)
    symm_mem.all_to_all_nd(given, out.flatten(1 - scatter, 2 - scatter) if folded else out, scatter, 1 - scatter,
                           group=group)
    assert torch.equal(out, expected)


@property_test(40, dim=st.integers(0, 1), sizes=st.lists(st.integers(0, 4), max_size=6), other=st.integers(0, 5),
               places=st.lists(st.integers(0, 3), min_size=6, max_size=6), dtype=st.sampled_from(TYPES), seed=seeds)
def test_reduce_scatter_offset(group, dim, sizes, other, places, dtype, seed):
    ends = [sum(sizes[:i + 1]) for i in range(len(sizes))]
    ranks = [place % group.size() for place in places[:len(sizes)]]
    x = drawn((sum(sizes) + 1, other) if dim == 0 else (other, sum(sizes) + 1), dtype, seeded(seed, group))
    wide = torch.float32 if dtype == torch.bfloat16 else dtype
    total = sum(each.to(wide) for each in of_all(x, group)).to(dtype)
    expected = [total.narrow(dim, end - size, size) for size, end, rank in zip(sizes, ends, ranks)
                if rank == group.rank()]
    out = [torch.empty(each.shape, dtype=dtype) for each in expected]
    symm_mem.reduce_scatter_offset(symmetric(x), out, group.group_name, dim=dim, offsets=ends, dst_ranks=ranks)
    assert all(torch.equal(got, wanted) for got, wanted in zip(out, expected, strict=True))


@on_groups
def test_equal_blocks_by_default(group):
    n, me = group.size(), group.rank()
    x = symmetric(torch.arange(2 * n * 3, dtype=torch.float32).view(2 * n, 3) + me)
    out = [torch.empty(2, 3)]
    symm_mem.reduce_scatter_offset(x, out, group=group, dim=0)
    assert torch.equal(out[0], sum(x[2 * me:2 * me + 2] - me + peer for peer in range(n)))
    raises(TypeError, "unsupported group type", symm_mem.reduce_scatter_offset, x, out, 3, dim=0)
    raises(RuntimeError, "requires a gradient", symm_mem.all_to_all_nd, x.requires_grad_(), out[0], 0, 1, group=group)
    x.requires_grad_(False)
    raises(ValueError, "one for each block", symm_mem.reduce_scatter_offset, x, [], group, dim=0)
    raises(RuntimeError, "private memory", symm_mem.reduce_scatter_offset, x.clone(), out, group, dim=0)


@on_groups
def test_sums_of_partial_products(group):
    x = torch.randn(4, 5, 6)
    for reduce_op in ("sum", "avg"):
        got = symm_mem.reduce_partials(x, dim=0, reduce_op=reduce_op, output_dtype=x.dtype, group_size=4)
        assert torch.equal(got, x.sum(0) if reduce_op == "sum" else x.mean(0))
    raises(ValueError, "sum or avg", symm_mem.reduce_partials, x, dim=0, reduce_op="max", output_dtype=x.dtype,
           group_size=4)
    assert symm_mem.triton_reduce_partials_first_dim(x, reduce_op="sum", output_dtype=x.dtype, group_size=4) is None


@on_groups
def test_of_nccl_and_multicast_alone(group):
    x = symm_mem.empty(4, 4, device="cpu").fill_(1)
    handle = symm_mem.rendezvous(x, group)
    raises(RuntimeError, "CFT handles", handle.get_peer_cft_handle, 0)
    raises(RuntimeError, "CFT handles", handle.get_multimem_cft_handle)
    assert symm_mem.SymmetricMemory.is_symm_mem_tensor(x) and not symm_mem.SymmetricMemory.is_symm_mem_tensor(x.clone())
    ops, name = torch.ops.symm_mem, group.group_name
    raises(RuntimeError, "multicast", ops.memcpy_to_multicast_, x, x.clone(), 0, name)
    raises(RuntimeError, "multicast", ops._low_contention_all_gather_ce_multicast, x, name)
    raises(RuntimeError, "multicast", ops._low_contention_all_gather_ce_multicast_out, x, name, x.clone())


@on_groups
def test_every_group_is_enabled(group):
    assert symm_mem.is_symm_mem_enabled_for_group(group.group_name) and symm_mem.is_symm_mem_enabled_for_group(group)
    assert not symm_mem.is_symm_mem_enabled_for_group("no such group")


@on_world
def test_functions_of_the_module(group):
    """Functions that know the backends by name work on Weft's memory, if it is installed."""
    if not symm_mem.installed():
        pytest.skip("PyTorch's registry is not Weft's in this run")
    x = torch_symm_mem.empty(4, device="cpu").fill_(group.rank())
    handle = torch_symm_mem.rendezvous(x, group)
    handle.barrier()
    torch_symm_mem.put_signal(torch.full((4,), 7.), handle, (group.rank() + 1) % group.size())
    torch_symm_mem.wait_signal(handle, (group.rank() - 1) % group.size())
    assert x.tolist() == [7] * 4
    handle.barrier()
    if hasattr(torch_symm_mem, "get"):
        got = torch.zeros(4)
        torch_symm_mem.get(got, handle, 0)
        assert torch.equal(got, x)
    if hasattr(torch_symm_mem, "all_to_all_nd"):
        rows, out = symmetric(torch.ones(group.size(), 3)), torch.zeros(1, group.size(), 3)
        torch_symm_mem.all_to_all_nd(rows, out, 0, 1, group=group.group_name)
        assert torch.equal(out, torch.ones_like(out))
    handle.barrier()


# --- Versions of PyTorch ------------------------------------------------------------------------------

def test_this_version_is_tested():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _versions.warn_if_untested()


@pytest.mark.parametrize("version", [(2, 10), (3, 0)])
def test_another_version_is_said(version, monkeypatch):
    monkeypatch.setattr(_versions, "VERSION", version)
    with pytest.warns(UserWarning, match=r"tested with PyTorch 2\.11 to 2\.15, this is \d") as caught:
        _versions.warn_if_untested()
    assert len(caught) == 1


def test_dtypes_that_came_as_numbers():
    seen = _versions._numbers_of([torch.float32, None, torch.float8_e4m3fn])
    assert _versions.dtypes_of(seen) == [torch.float32, None, torch.float8_e4m3fn]
    assert _versions.dtypes_of([torch.int8]) == [torch.int8]
