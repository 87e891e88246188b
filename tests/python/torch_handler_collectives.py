# SPDX-License-Identifier: BSD-3-Clause
"""weft.torch.hyperparallel on CPU tensors: all-gather, all-to-all and the fused products. Each one
again and again on the same tensors and signals, by ranks that come at different times, between guard
words; in place; and with arguments that are wrong on all ranks, or on one."""
import random

import pytest
import torch
from torch_handler import ALL_TYPES, SEED, Guarded, bits, data, dawdle, same, symm
from weft.torch import _on_lanes

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def refused(pattern, wrong, right, rank, me):
    """One rank makes the wrong call, and all raise; then all make the right one."""
    with pytest.raises(ValueError, match=pattern) as error:
        (wrong if me == rank else right)()
    assert (f": rank {rank} " in str(error.value)) == (me != rank), str(error.value)
    right()


# --- shmem_allgather -----------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ALL_TYPES, ids=str)
def test_all_gather(dtype, me, n):
    output = Guarded((n, 3, 5), dtype)
    for turn in range(4):
        dawdle(turn)
        symm.shmem_allgather(output.inside, data((turn, me), (3, 5), dtype))
        for rank in range(n):
            assert same(output.inside[rank], data((turn, rank), (3, 5), dtype)), (turn, rank)
        assert output.intact()


@pytest.mark.parametrize("nelems", [1, 7, 1000, 70001])
def test_all_gather_of_any_size(nelems, me, n):
    output = Guarded((n * nelems,), torch.int32)
    for turn in range(6):
        symm.shmem_allgather(output.inside, data((turn, me), (nelems,), torch.int32))
        expected = torch.cat([data((turn, rank), (nelems,), torch.int32) for rank in range(n)])
        assert torch.equal(output.inside, expected) and output.intact()


def test_all_gather_shapes_and_strides(me, n):
    """Only numbers of elements count; an input that is not contiguous is read as if it were."""
    output = symm.empty((2, 3 * n, 2), torch.float32)
    symm.shmem_allgather(output, data(me, (4, 3), torch.float32).T)
    expected = torch.cat([data(rank, (4, 3), torch.float32).T.reshape(-1) for rank in range(n)])
    assert torch.equal(output.view(-1), expected)


def test_all_gather_in_place(me, n):
    output = Guarded((n, 40), torch.float64)
    for turn in range(5):
        dawdle(turn)
        output.inside[me] = data((turn, me), (40,), torch.float64)
        symm.shmem_allgather(output.inside, output.inside[me])
        for rank in range(n):
            assert torch.equal(output.inside[rank], data((turn, rank), (40,), torch.float64))
    assert output.intact()


def test_all_gather_leaves_inputs_to_their_owners(me, n):
    """An input may be overwritten as soon as the call is back."""
    output, given = symm.empty((n, 500), torch.int64), torch.empty(500, dtype=torch.int64)
    for turn in range(30):
        given.fill_(turn * 100 + me)
        symm.shmem_allgather(output, given)
        given.fill_(-1)
        assert output[:, 0].tolist() == [turn * 100 + rank for rank in range(n)] and (output == output[:, :1]).all()


def test_all_gather_refuses(me, n):
    output = symm.empty((n, 6), torch.float32)
    right = lambda: symm.shmem_allgather(output, torch.ones(6))  # noqa: E731
    overlapping = output.view(-1)[1:7] if n > 1 and me == 0 else output.view(-1)[:6 * n][-6:]
    for pattern, wrong in [
            (f"got 5 elements in input_tensor and {6 * n} in output_tensor, expected {n} times",
             lambda: symm.shmem_allgather(output, torch.ones(5))),
            ("got input_tensor of torch.float64 on cpu, expected torch.float32",
             lambda: symm.shmem_allgather(output, torch.ones(6, dtype=torch.float64))),
            ("output_tensor with strides", lambda: symm.shmem_allgather(output.T, torch.ones(6)))]:
        if not (n == 1 and "strides" in pattern):
            refused(pattern, wrong, right, n - 1, me)
    if n > 1:
        refused("input_tensor in memory that the result is written to",
                lambda: symm.shmem_allgather(output, overlapping), right, 0, me)
        bigger = symm.empty((n, 7), torch.float32)
        with pytest.raises(ValueError, match="rank 1 got 7, torch.float32, .* expected 6, torch.float32"):
            symm.shmem_allgather(bigger if me == 1 else output, torch.ones(7 if me == 1 else 6))
        right()


# --- shmem_alltoall ------------------------------------------------------------------------------

def counts_of(turn, n):
    """counts[s][d]: the elements from rank s to rank d; many are 0."""
    draw = random.Random(f"{SEED} {turn}")
    return [[draw.choice([0, 0, 1, 2, 17, draw.randrange(300)]) for _ in range(n)] for _ in range(n)]


KINDS = [list, tuple, torch.tensor, lambda c: torch.tensor(c, dtype=torch.int32), lambda c: torch.tensor([c])]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.bfloat16, torch.complex128], ids=str)
def test_all_to_all(dtype, me, n):
    room = symm.empty(300 * n + 16, dtype)
    for turn in range(10):
        counts = counts_of(turn, n)
        sends = [data((turn, me, d), (counts[me][d],), dtype) for d in range(n)]
        receive_list = [counts[s][me] for s in range(n)]
        bits(room).fill_(0xee)
        receive = room[8:8 + sum(receive_list)]
        dawdle(turn)
        symm.shmem_alltoall(sends, receive, KINDS[turn % len(KINDS)](receive_list))
        expected = torch.cat([data((turn, s, me), (counts[s][me],), dtype) for s in range(n)])
        assert same(receive, expected)
        assert (bits(room[:8]) == 0xee).all() and (bits(room[8 + len(receive):]) == 0xee).all()


def test_all_to_all_of_shapes(me, n):
    """Shapes do not matter, and inputs need not be contiguous."""
    receive = symm.empty((n, 6), torch.float32)
    sends = [data((me, d), (3, 2), torch.float32).T for d in range(n)]
    symm.shmem_alltoall(sends, receive, [6] * n)
    for rank in range(n):
        assert torch.equal(receive[rank], data((rank, me), (3, 2), torch.float32).T.reshape(-1))


def test_all_to_all_refuses(me, n):
    receive = symm.empty(4 * n, torch.float32)
    sends, fours = [torch.ones(4) for _ in range(n)], [4] * n

    def call(sends=sends, receive=receive, numbers=fours):
        return lambda: symm.shmem_alltoall(sends, receive, numbers)

    rank, last = n - 1, n - 1
    for pattern, wrong in [
            (rf"got 5 elements in send_tensor_list\[{last}\], expected 4, as rank {last} has in receive_list",
             call(sends=[*sends[:-1], torch.ones(5)])),
            (f"got {n + 1} tensors in send_tensor_list, expected one for each of {n} ranks", call(sends=[*sends, sends[0]])),
            ("expected a number of elements for each", call(numbers=fours + [0])),
            ("expected a number of elements for each", call(numbers=[-4] + fours[1:])),
            ("expected a number of elements for each", call(numbers=[4.0] + fours[1:])),
            (f"got {4 * n} elements in receive_tensor, expected the sum of receive_list, {4 * n + 1}",
             call(numbers=fours[1:] + [5])),
            (r"send_tensor_list\[0\] of torch.int32", call(sends=[sends[0].int(), *sends[1:]])),
            (r"send_tensor_list\[0\] in memory that the result", call(sends=[receive[:4], *sends[1:]]))]:
        refused(pattern, wrong, call(), rank, me)
    if n > 1:  # both ranks detect a count that does not match, and all ranks raise
        with pytest.raises(ValueError, match=r"got 4 elements in send_tensor_list\[0\], expected [35]"):
            symm.shmem_alltoall(sends, receive, fours if me else [3, 5] + fours[2:])
    call()()


# --- fused_all_gather_matmul ---------------------------------------------------------------------

class Gathered:
    """The tensors of one product, used again and again. signals: how many, or 0 for one a rank."""

    def __init__(self, m, k, cols, dtype, n, signals=0):
        self.gather_out = Guarded((m * n, k), dtype)
        self.c = torch.empty(m * n, cols, dtype=dtype)
        self.signal = symm.empty(signals or n, torch.int32)
        self.m, self.k, self.cols, self.dtype, self.n = m, k, cols, dtype, n

    def inputs(self, turn, rank):
        return data((turn, rank, "a"), (self.m, self.k), self.dtype), data((turn, rank, "b"), (self.k, self.cols), self.dtype)

    def check(self, turn, me, result):
        whole = torch.cat([self.inputs(turn, rank)[0] for rank in range(self.n)])
        assert result[0].data_ptr() == self.gather_out.inside.data_ptr() and result[1] is self.c
        assert same(self.gather_out.inside, whole) and self.gather_out.intact(), turn
        b = self.inputs(turn, me)[1]
        if self.dtype.is_floating_point:
            close(self.c, whole.double() @ b.double(), self.k)
        else:
            assert torch.equal(self.c, whole @ b), turn


def close(found, exact, k):
    tolerance = 8 * torch.finfo(found.dtype).eps * max(1, k) ** 0.5
    worst = ((found.double() - exact).abs() / (exact.abs() + k ** 0.5)).max().item() if found.numel() else 0
    assert worst < tolerance, (worst, tolerance)


@pytest.fixture(params=["weft", "one behind the other"])
def multiplied_by(request, monkeypatch):
    """Floats by Weft's operators, and as all other types are."""
    if request.param != "weft":
        monkeypatch.setattr(_on_lanes, "MULTIPLIED", ())
    return request.param


SHAPES = [(4, 5, 6), (1, 1, 1), (7, 16, 3), (33, 64, 20)]


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("m, k, cols", SHAPES)
def test_all_gather_matmul(m, k, cols, dtype, multiplied_by, me, n):
    """With a signal of the documented length, whose values do not matter, seven times in a row."""
    product = Gathered(m, k, cols, dtype, n)
    product.signal.fill_(1)  # what HyperParallel's own leaves
    for turn in range(7):
        a, b = product.inputs(turn, me)
        product.c.fill_(77)
        dawdle(turn)
        result = symm.fused_all_gather_matmul(a, b, product.c, product.gather_out.inside, product.signal)
        product.check(turn, me, result)


@pytest.mark.parametrize("block_size", [1, 2, 3, 7, 100, None])
def test_blocks(block_size, me, n):
    """Results do not depend on them; there must be signals for all."""
    m = 7
    blocks = 1 if block_size is None else -(-m // min(block_size, m))
    product = Gathered(m, 9, 4, torch.int64, n, signals=n * blocks + 1)
    for turn in range(5):
        a, b = product.inputs(turn, me)
        dawdle(turn)
        product.check(turn, me, symm.fused_all_gather_matmul(
            a, b, product.c, product.gather_out.inside, product.signal, block_size=block_size))


def test_all_gather_matmul_in_place(multiplied_by, me, n):
    product = Gathered(6, 8, 5, torch.float32, n)
    for turn in range(4):
        a, b = product.inputs(turn, me)
        own = product.gather_out.inside[me * 6:(me + 1) * 6]
        own.copy_(a)
        product.check(turn, me, symm.fused_all_gather_matmul(own, b, product.c, product.gather_out.inside, product.signal))


def test_all_gather_matmul_of_strided_matrices(me, n):
    """a, b and c as views; not on all ranks."""
    product = Gathered(6, 8, 5, torch.float32, n)
    for turn in range(4):
        a, b = product.inputs(turn, me)
        if me % 2 == 0:
            a, b = a.T.contiguous().T, torch.stack([b, -b], 2)[:, :, 0]
            product.c = torch.empty(6 * n, 9)[:, 2:7]
        product.check(turn, me, symm.fused_all_gather_matmul(a, b, product.c, product.gather_out.inside, product.signal))


def test_every_rank_has_its_own_b(multiplied_by, me, n):
    product = Gathered(3, 8, 2 + me, torch.float64, n)
    for turn in range(3):
        a, b = product.inputs(turn, me)
        product.check(turn, me, symm.fused_all_gather_matmul(a, b, product.c, product.gather_out.inside, product.signal))


def test_weights_may_be_watched_by_autograd(me, n):
    product = Gathered(3, 8, 4, torch.float32, n)
    a, b = product.inputs(0, me)
    a.requires_grad_(), b.requires_grad_()
    product.check(0, me, symm.fused_all_gather_matmul(a, b, product.c, product.gather_out.inside, product.signal))
    room = symm.empty((3 * n, 4), torch.float32)
    assert symm.fused_matmul_reduce_scatter(a.repeat(n, 1), b, room, product.signal).shape == (3, 4)


def test_all_gather_matmul_refuses(me, n):
    m, k, cols = 4, 5, 6
    tensors = {"a": torch.ones(m, k), "b": torch.ones(k, cols), "c": torch.ones(m * n, cols),
               "gather_out": symm.empty((m * n, k), torch.float32), "signal": symm.empty(2 * n, torch.int32)}

    def call(**changes):
        return lambda: symm.fused_all_gather_matmul(**{**tensors, **changes})

    wide = symm.empty((m * n, k + 1), torch.float32)
    for pattern, wrong in [
            (rf"gather_out shape mismatch: expected \[{m * n}, {k}\], got \[{m * n}, {k + 1}\]", call(gather_out=wide)),
            (rf"b shape mismatch: expected \[{k}, {cols}\], got \[{k + 1}, {cols}\]", call(b=torch.ones(k + 1, cols))),
            (rf"c shape mismatch: expected \[{m * n}, {cols}\]", call(c=torch.ones(m * n, cols + 1))),
            ("got b of torch.float64", call(b=tensors["b"].double())),
            ("got c of torch.int32", call(c=tensors["c"].int())),
            ("expected two dimensions", call(a=torch.ones(m * k))),
            (f"got signal with {n - 1} elements|got signal with {2 * n - 1} elements",
             call(signal=tensors["signal"][:n - 1] if n > 1 else tensors["signal"][:1], block_size=2)),
            (f"expected {4 * n} at least of torch.int32", call(block_size=1)),
            ("signal with 2 elements of torch.float32|elements of torch.float32", call(signal=wide.view(-1)[:2 * n])),
            ("got block_size 0", call(block_size=0)),
            ("c in memory that the result is written to", call(c=wide.view(-1)[:m * n * cols].view(m * n, cols), gather_out=wide.view(-1)[:m * n * k].view(m * n, k)))]:
        refused(pattern, wrong, call(), n - 1, me)
    with pytest.raises(ValueError, match="expected two dimensions"):
        call(a=torch.ones(m * k))()
    call()()


# --- fused_matmul_reduce_scatter -----------------------------------------------------------------

class Scattered:
    def __init__(self, rows, k, cols, dtype, n):
        self.room, self.signal = Guarded((rows * n, cols), dtype), symm.empty(n, torch.int32)
        self.rows, self.k, self.cols, self.dtype, self.n = rows, k, cols, dtype, n

    def inputs(self, turn, rank):
        return (data((turn, rank, "x1"), (self.rows * self.n, self.k), self.dtype),
                data((turn, rank, "x2"), (self.k, self.cols), self.dtype))

    def products(self, turn, me, wide):
        for rank in range(self.n):
            x1, x2 = self.inputs(turn, rank)
            yield x1[me * self.rows:(me + 1) * self.rows].to(wide) @ x2.to(wide)

    def check(self, turn, me, output, reduce_op):
        assert output.shape == (self.rows, self.cols) and output.dtype == self.dtype
        assert self.room.intact()
        if self.dtype.is_floating_point:
            exact = sum(self.products(turn, me, torch.float64)) / (self.n if reduce_op == "avg" else 1)
            close(output, exact, self.k * self.n)
        else:
            total = sum(self.products(turn, me, self.dtype))
            if reduce_op == "avg":
                total = torch.div(total, self.n, rounding_mode="trunc")
            assert torch.equal(output, total)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("reduce_op", ["sum", "avg"])
@pytest.mark.parametrize("rows, k, cols", SHAPES)
def test_matmul_reduce_scatter(rows, k, cols, reduce_op, dtype, multiplied_by, me, n):
    product = Scattered(rows, k, cols, dtype, n)
    product.signal.fill_(1)
    for turn in range(5):
        x1, x2 = product.inputs(turn, me)
        dawdle(turn)
        output = symm.fused_matmul_reduce_scatter(x1, x2, product.room.inside, product.signal, reduce_op)
        product.check(turn, me, output, reduce_op)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sums_are_in_order_of_ranks_and_in_32_bits(dtype, me, n, monkeypatch):
    """Where the exchange follows the product, bit by bit: products are rounded to the type once, and so is the sum."""
    monkeypatch.setattr(_on_lanes, "MULTIPLIED", ())
    product = Scattered(8, 32, 8, dtype, n)
    for turn in range(3):
        x1, x2 = product.inputs(turn, me)
        output = symm.fused_matmul_reduce_scatter(x1, x2, product.room.inside, product.signal, "avg")
        total = torch.zeros(8, 8)
        for rank in range(n):
            a, b = product.inputs(turn, rank)
            total += a[me * 8:me * 8 + 8] @ b
        assert same(output, (total / n).to(dtype))


def test_the_same_bits_in_every_run(multiplied_by, me, n):
    product = Scattered(16, 64, 16, torch.bfloat16, n)
    x1, x2 = product.inputs(0, me)
    outputs = []
    for turn in range(5):
        dawdle(turn)
        outputs.append(symm.fused_matmul_reduce_scatter(x1, x2, product.room.inside, product.signal))
    assert all(same(output, outputs[0]) for output in outputs)


def test_both_products_by_turns(multiplied_by, me, n):
    """As in a layer of a transformer, with one signal for both."""
    gathered, scattered = Gathered(4, 8, 12, torch.float32, n), Scattered(4, 12, 8, torch.float32, n)
    scattered.signal = gathered.signal
    for turn in range(6):
        a, b = gathered.inputs(turn, me)
        x1, x2 = scattered.inputs(turn, me)
        dawdle(turn)
        gathered.check(turn, me, symm.fused_all_gather_matmul(a, b, gathered.c, gathered.gather_out.inside, gathered.signal))
        scattered.check(turn, me, symm.fused_matmul_reduce_scatter(x1, x2, scattered.room.inside, scattered.signal), "sum")


def test_matmul_reduce_scatter_refuses(me, n):
    rows, k, cols = 3, 5, 4
    tensors = {"x1": torch.ones(rows * n, k), "x2": torch.ones(k, cols), "signal": symm.empty(n, torch.int32),
               "symm_tensor": symm.empty((rows * n, cols), torch.float32)}

    def call(**changes):
        return lambda: symm.fused_matmul_reduce_scatter(**{**tensors, **changes})

    cases = [
        (r"x2 shape mismatch: expected \[5, 4\], got \[6, 4\]", call(x2=torch.ones(k + 1, cols))),
        ("got x2 of torch.float64", call(x2=tensors["x2"].double())),
        ("symm_tensor shape mismatch", call(symm_tensor=tensors["symm_tensor"][:-1])),
        ("got reduce_op 'max', expected 'sum' or 'avg'", call(reduce_op="max")),
        (f"got signal with {n - 1} elements", call(signal=tensors["signal"][1:])),
        ("x1 in memory that the result is written to",
         call(x1=tensors["symm_tensor"][:, :k] if k <= cols else tensors["symm_tensor"], x2=torch.ones(cols, cols)))]
    if n > 1:
        cases.append((f"rows of x1, expected a multiple of {n} ranks", call(x1=torch.ones(rows * n + 1, k))))
    for pattern, wrong in cases:
        refused(pattern, wrong, call(), n - 1, me)
