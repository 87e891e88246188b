# SPDX-License-Identifier: BSD-3-Clause
"""The backend "weft" of torch.distributed on CPU tensors. Every rank computes all ranks' inputs from seeds, and from them
the expected results, so no other backend is needed.

Run by torch_process_group.t, on 1 to 4 PEs that go through it together (run.py).
"""
import datetime
import functools
import time

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

import weft.torch

torch.set_num_threads(1)
weft.torch.init_process_group("weft")
ME, RANKS = dist.get_rank(), dist.get_world_size()
Op = dist.ReduceOp

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
COMPLEX = [torch.complex64, torch.complex128]
MOVED = FLOATS + INTEGERS + COMPLEX + [torch.bool, torch.uint16, torch.float8_e4m3fn]
SIZES = [0, 1, 7, 1000, 100_003]
SUBGROUPS = [ranks for ranks in ([0], [1, 0], [0, 2], [2, 0, 1], [3, 1], list(range(RANKS))) if max(ranks) < RANKS]


def values(rank, shape, dtype, seed=0):
    """Returns rank's input: small whole numbers, so that sums are exact in every type."""
    drawn = torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(1000 * seed + rank))
    if dtype in (torch.uint8, torch.uint16, torch.bool):
        drawn = drawn.abs()
    return drawn.to(dtype)


def inputs(shape, dtype, ranks=range(RANKS), seed=0):
    return [values(rank, shape, dtype, seed) for rank in ranks]


def same(got, expected):
    assert got.dtype == expected.dtype and got.shape == expected.shape
    if got.numel():
        assert torch.equal(got.contiguous().view(torch.uint8), expected.contiguous().view(torch.uint8))


def folded(tensors, op):
    one = {Op.SUM: torch.add, Op.PRODUCT: torch.mul, Op.MIN: torch.minimum, Op.MAX: torch.maximum,
           Op.BAND: torch.bitwise_and, Op.BOR: torch.bitwise_or, Op.BXOR: torch.bitwise_xor}[op]
    return functools.reduce(one, tensors)


# --- Reductions ---------------------------------------------------------------------------------------


def cases_of_reductions():
    yield from ((dtype, Op.SUM) for dtype in COMPLEX)  # PyTorch refuses the others
    for dtype in FLOATS + INTEGERS:
        ops = [Op.SUM, Op.PRODUCT, Op.MIN, Op.MAX] + ([Op.BAND, Op.BOR, Op.BXOR] if dtype in INTEGERS else [])
        yield from ((dtype, op) for op in ops)
    yield from ((torch.bool, op) for op in (Op.BAND, Op.BOR, Op.BXOR))


REDUCTIONS = pytest.mark.parametrize("dtype,op", list(cases_of_reductions()), ids=str)


@pytest.mark.parametrize("size", SIZES)
@REDUCTIONS
def test_all_reduce(dtype, op, size):
    given = inputs((size,), dtype)
    tensor = given[ME].clone()
    dist.all_reduce(tensor, op)
    same(tensor, folded(given, op))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_average_and_scaled_sum(dtype):
    given = inputs((101,), dtype)
    tensor = given[ME].clone()
    dist.all_reduce(tensor, Op.AVG)
    torch.testing.assert_close(tensor, (sum(each.double() for each in given) / RANKS).to(dtype))
    for factor in (0.5, torch.tensor([0.5], dtype=dtype)):
        tensor = given[ME].clone()
        dist.all_reduce(tensor, dist._make_nccl_premul_sum(factor))
        same(tensor, folded([each * 0.5 for each in given], Op.SUM))


def test_bool_sum_is_or():
    given = inputs((50,), torch.bool)
    tensor = given[ME].clone()
    dist.all_reduce(tensor)
    same(tensor, functools.reduce(torch.logical_or, given))


def test_all_reduce_of_other_layouts():
    given = inputs((6, 5), torch.float32)
    expected = folded(given, Op.SUM)
    for view in (lambda wide: wide[:, ::2], lambda wide: wide[:, 5:]):
        wide = torch.full((6, 10), -1.0)
        tensor = view(wide)
        tensor.copy_(given[ME])
        rest = wide.clone()
        dist.all_reduce(tensor)
        same(tensor.contiguous(), expected)
        view(rest).copy_(expected)
        same(wide, rest)
    tensor = given[ME].t().contiguous().t()
    dist.all_reduce(tensor)
    same(tensor.contiguous(), expected)


@REDUCTIONS
def test_reduce(dtype, op):
    root = RANKS - 1
    given = inputs((33,), dtype)
    tensor = given[ME].clone()
    dist.reduce(tensor, root, op)
    same(tensor, folded(given, op) if root == ME else given[ME])


@pytest.mark.parametrize("size", SIZES)
@REDUCTIONS
def test_reduce_scatter(dtype, op, size):
    given = inputs((RANKS, size), dtype)
    expected = folded(given, op)[ME]
    output = torch.empty(size, dtype=dtype)
    dist.reduce_scatter_tensor(output, given[ME].reshape(-1), op)
    same(output, expected)
    output = torch.empty(size, dtype=dtype)
    dist.reduce_scatter(output, list(given[ME]), op)
    same(output, expected)


def test_coalesced():
    given = [inputs((size,), torch.float32, seed=size) for size in (1, 0, 30)]
    tensors = [each[ME].clone() for each in given]
    dist.all_reduce_coalesced(tensors)
    for tensor, each in zip(tensors, given):
        same(tensor, folded(each, Op.SUM))
    outputs = [[torch.empty_like(each[r]) for each in given] for r in range(RANKS)]
    dist.all_gather_coalesced(outputs, [each[ME] for each in given])
    for r, list_of_r in enumerate(outputs):
        for output, each in zip(list_of_r, given):
            same(output, each[r])
    sources = [each[ME].repeat(RANKS) for each in given]
    group = dist.group.WORLD
    outputs = functional.reduce_scatter_tensor_coalesced(sources, "sum", [0] * len(sources), group)
    for output, each in zip(outputs, given):
        same(output.clone(), folded(each, Op.SUM))
    for output, each in zip(functional.all_gather_into_tensor_coalesced([each[ME] for each in given], group), given):
        same(output.clone(), torch.cat(each))



# --- Moves --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", MOVED, ids=str)
def test_moves(dtype, size):
    given = inputs((size,), dtype)
    output = torch.empty(RANKS * size, dtype=dtype)
    dist.all_gather_into_tensor(output, given[ME])
    same(output, torch.cat(given))
    outputs = [torch.empty(size, dtype=dtype) for _ in given]
    dist.all_gather(outputs, given[ME])
    for got, expected in zip(outputs, given):
        same(got, expected)
    for root in range(RANKS):
        tensor = given[ME].clone()
        dist.broadcast(tensor, root)
        same(tensor, given[root])
        outputs = [torch.empty(size, dtype=dtype) for _ in given] if root == ME else None
        dist.gather(given[ME], outputs, root)
        for got, expected in zip(outputs or [], given):
            same(got, expected)
        output = torch.empty(size, dtype=dtype)
        sources = [values(rank, (size,), dtype, seed=5) for rank in range(RANKS)]
        dist.scatter(output, sources if root == ME else None, root)
        same(output, sources[ME])


def test_moves_of_other_layouts():
    given = inputs((4, 3), torch.float32)
    outputs = [torch.empty(4, 6)[:, ::2] for _ in given]
    dist.all_gather(outputs, given[ME].t().contiguous().t())
    for got, expected in zip(outputs, given):
        same(got.contiguous(), expected)
    wide = torch.zeros(4, 6)
    wide[:, ::2] = given[ME]
    dist.broadcast(wide[:, ::2], 0)
    same(wide[:, ::2].contiguous(), given[0])
    assert (wide[:, 1::2] == 0).all()


def test_all_gather_of_unequal_sizes():
    sizes = [3 * rank for rank in range(RANKS)]
    outputs = [torch.empty(size) for size in sizes]
    dist.all_gather(outputs, values(ME, (sizes[ME],), torch.float32))
    for rank, got in enumerate(outputs):
        same(got, values(rank, (sizes[rank],), torch.float32))


@pytest.mark.parametrize("dtype", MOVED, ids=str)
def test_all_to_all(dtype):
    given = inputs((RANKS, 5, 2), dtype)
    output = torch.empty(RANKS * 5, 2, dtype=dtype)
    dist.all_to_all_single(output, given[ME].reshape(-1, 2))
    same(output, torch.cat([each[ME] for each in given]))
    sent = lambda source, dest: (source + 2 * dest) % 4  # rows
    give = [[values(s, (sent(s, d), 3), dtype, seed=d) for d in range(RANKS)] for s in range(RANKS)]
    expected = [give[s][ME] for s in range(RANKS)]
    outputs = [torch.empty_like(each) for each in expected]
    dist.all_to_all(outputs, give[ME])
    for got, wanted in zip(outputs, expected):
        same(got, wanted)
    joined = torch.empty(sum(len(each) for each in expected), 3, dtype=dtype)
    dist.all_to_all_single(joined, torch.cat(give[ME]), [len(each) for each in expected], [len(each) for each in give[ME]])
    same(joined, torch.cat(expected))


def test_splits_on_some_ranks_only():
    given = inputs((RANKS, 2), torch.int64)
    output = torch.empty(RANKS * 2, dtype=torch.int64)
    splits = [2] * RANKS if ME % 2 else None
    dist.all_to_all_single(output, given[ME].reshape(-1), splits, splits)
    same(output, torch.cat([each[ME] for each in given]))


def test_objects():
    outputs = [None] * RANKS
    dist.all_gather_object(outputs, {"rank": ME, "text": "x" * 100 * ME})
    assert [each["rank"] for each in outputs] == list(range(RANKS))
    several = [ME, "own"]
    dist.broadcast_object_list(several, 0)
    assert several == [0, "own"]


def test_barrier():
    dist.barrier()
    dist.barrier(async_op=True).wait()


def test_monitored_barrier():
    try:
        dist.monitored_barrier(timeout=datetime.timedelta(seconds=60))
    except ValueError as error:
        if "only implemented for GLOO" not in str(error):
            raise
        pytest.skip("this PyTorch calls no other backend than gloo")


# --- Groups and order ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", SUBGROUPS, ids=str)
def test_subgroups(ranks):
    group = dist.new_group(ranks)
    ranks = sorted(ranks)
    if ME not in ranks:
        assert group == dist.GroupMember.NON_GROUP_MEMBER
        return
    assert dist.get_backend(group) == "weft"
    given = inputs((20,), torch.float32, ranks)
    tensor = values(ME, (20,), torch.float32)
    dist.all_reduce(tensor, group=group)
    same(tensor, folded(given, Op.SUM))
    tensor = values(ME, (20,), torch.float32)
    dist.broadcast(tensor, ranks[-1], group=group)
    same(tensor, given[-1])
    dist.destroy_process_group(group)


def test_asynchronous_calls_run_in_order():
    tensor = torch.ones(1000)
    works = []
    for _ in range(50):
        works.append(dist.all_reduce(tensor, op=Op.AVG, async_op=True))
        works.append(dist.broadcast(tensor, RANKS - 1, async_op=True))
    dist.all_reduce(tensor)  # synchronous, after all others
    same(tensor, torch.full((1000,), float(RANKS)))
    assert all(work.is_completed() and work.wait() for work in works)


def test_futures():
    tensor = torch.ones(3)
    work = dist.all_reduce(tensor, async_op=True)
    doubled = work.get_future().then(lambda future: future.value()[0] * 2)
    same(doubled.wait(), torch.full((3,), 2.0 * RANKS))
    same(work.get_future().value()[0], torch.full((3,), float(RANKS)))
    work.wait()


def test_groups_are_independent():
    """The ranks call two groups in different orders, asynchronously."""
    groups = [dist.new_group(range(RANKS)) for _ in range(2)]
    tensors = [torch.ones(10), torch.ones(10) * 2]
    works = [dist.all_reduce(tensors[i], group=groups[i], async_op=True) for i in ((0, 1) if ME % 2 else (1, 0))]
    for work in works:
        work.wait()
    for i, tensor in enumerate(tensors):
        same(tensor, torch.full((10,), (i + 1.0) * RANKS))


def test_operators_of_weft_beside_asynchronous_calls():
    tensor, mine = torch.ones(100_000), torch.ones(100_000)
    for _ in range(20):
        work = dist.all_reduce(tensor, op=Op.AVG, async_op=True)
        mine = weft.torch.all_reduce(mine, "avg", dist.group.WORLD)
        work.wait()
    same(tensor, mine)


def test_functional_collectives():
    tensor = values(ME, (12,), torch.float32)
    given = inputs((12,), torch.float32)
    same(functional.all_reduce(tensor, "sum", dist.group.WORLD).clone(), folded(given, Op.SUM))
    same(functional.all_gather_tensor(tensor, 0, dist.group.WORLD).clone(), torch.cat(given))


# --- Errors -------------------------------------------------------------------------------------------


def raises_everywhere(text, call):
    """The call raises on all ranks, at once and from the work of an asynchronous call, and the group works after it."""
    for asynchronous in (False, True):
        with pytest.raises(RuntimeError, match=text):
            work = call(asynchronous)
            if asynchronous:
                work.wait()
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    same(tensor, torch.full((3,), float(RANKS)))


def test_a_wrong_argument_of_one_rank():
    bad = ME == RANKS - 1
    raises_everywhere("all_reduce: (cannot reduce|weft_all_reduce: PE)", lambda later: dist.all_reduce(
        torch.zeros(4, dtype=torch.float8_e4m3fn if bad else torch.float32), async_op=later))
    raises_everywhere("reduce_scatter_tensor: ", lambda later: dist.reduce_scatter_tensor(
        torch.zeros(3 if bad else 2), torch.zeros(2 * RANKS), async_op=later))
    raises_everywhere("all_gather_into_tensor: ", lambda later: dist.all_gather_into_tensor(
        torch.zeros(2 * RANKS + bad), torch.zeros(2), async_op=later))
    raises_everywhere("all_to_all_single: ", lambda later: dist.all_to_all_single(
        torch.zeros(2 * RANKS), torch.zeros(2 * RANKS), None, [3] * RANKS if bad else None, async_op=later))


def test_what_is_not_reduced():
    raises_everywhere("bitwise operations take integers and bool, got Float",
                      lambda later: dist.all_reduce(torch.ones(3), Op.BAND, async_op=later))
    raises_everywhere("all_reduce: .*", lambda later: dist.all_reduce(torch.ones(3, dtype=torch.int32), Op.AVG,
                                                                     async_op=later))


def test_messages_between_two_ranks():
    if RANKS == 1:
        return
    for call in (lambda: dist.send(torch.ones(1), (ME + 1) % RANKS), lambda: dist.recv(torch.ones(1), (ME + 1) % RANKS),
                 lambda: dist.recv(torch.ones(1))):
        with pytest.raises(RuntimeError, match='new_group.backend="gloo"'):
            call()


def test_a_timeout():
    """A rank is late; the wait ends, and the call completes afterwards."""
    tensor = torch.ones(3)
    if ME == 0 and RANKS > 1:
        work = dist.all_reduce(tensor, async_op=True)
        with pytest.raises(RuntimeError, match="all_reduce: not complete after 200 ms"):
            work.wait(datetime.timedelta(milliseconds=200))
    else:
        time.sleep(0.6)
        work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    same(tensor, torch.full((3,), float(RANKS)))


# --- Training -----------------------------------------------------------------------------------------


@functools.cache
def gloo():
    return dist.new_group(backend="gloo")


def losses(wrap):
    """Trains a small model, each rank on its own rows, and returns all ranks' losses."""
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    model = wrap(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    rows = torch.Generator().manual_seed(100 + ME)
    for _ in range(5):
        x = torch.randn(6, 8, generator=rows)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    assert found[-1] < found[0]
    return found


def test_distributed_data_parallel():
    wrap = torch.nn.parallel.DistributedDataParallel
    ours = losses(lambda model: wrap(model, bucket_cap_mb=0.0005))
    theirs = losses(lambda model: wrap(model, process_group=gloo(), bucket_cap_mb=0.0005))
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-7)


def test_fully_shard():
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard
    meshes = [DeviceMesh.from_group(group, "cpu") for group in (dist.group.WORLD, gloo())]

    def wrap(model, mesh):
        for layer in (model[0], model[2]):
            fully_shard(layer, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    ours, theirs = (losses(functools.partial(wrap, mesh=mesh)) for mesh in meshes)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-7)


# --- The end ------------------------------------------------------------------------------------------


def test_abort():
    group = dist.new_group(range(RANKS))
    dist.barrier(group=group)
    backend = group._get_backend(torch.device("cpu"))
    backend.abort()
    with pytest.raises(RuntimeError, match="all_reduce: the process group has been aborted"):
        dist.all_reduce(torch.ones(1), group=group)


def test_last_it_can_be_made_again():
    dist.barrier()
    dist.destroy_process_group()
    weft.torch.init_process_group("cpu:weft,cuda:gloo")
    assert "cpu:weft" in dist.get_backend_config()
    tensor = torch.ones(5)
    dist.all_reduce(tensor)
    same(tensor, torch.full((5,), float(RANKS)))
    assert dist.group.WORLD._get_backend(torch.device("cpu")).name() == "weft"
    dist.barrier()
    dist.destroy_process_group()
