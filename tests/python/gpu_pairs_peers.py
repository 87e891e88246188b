# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of gpu_pairs.py: one peer, by operators and by handles. Most are NVSHMEM's in
PyTorch, whose own kernels do not run over its backend CUDA: Weft's are held against what is stated."""
import torch

from gpu_pairs_frame import Here, Left, alone, meet, pair, random, refused, scenes

MOVED = (torch.float32, torch.bfloat16, torch.int64, torch.uint8)


# --- One peer -----------------------------------------------------------------------------------------

def moved_by_first(check, name, rows, wanted):
    """Rank 0 moves these rows to or from its neighbour; others' tensors stay what they are."""
    for dtype in MOVED:
        x = random(3, 100, dtype=dtype)

        def call(m):
            tensor, handle = m.handle(x)
            handle.barrier()
            if m.rank == 0:
                getattr(m, name)(tensor[rows], m.right)
            handle.barrier()
            return tensor
        alone(check, call, lambda m: wanted(m, x))
    one_peer_wrong(check, name)


@pair
def nvshmem_put(check):
    moved_by_first(check, "nvshmem_put", slice(1, None),
                   lambda m, x: torch.cat([x[:1], m.bits(x)[0 if m.left == 0 else m.rank][1:]]))


@pair
def nvshmem_get(check):
    moved_by_first(check, "nvshmem_get", slice(None), lambda m, x: m.bits(x)[m.right if m.rank == 0 else m.rank])


def one_peer_wrong(check, name):
    x = random(16)
    refused(check, RuntimeError, lambda m: getattr(m, name)(x, 0))
    refused(check, RuntimeError, lambda m: getattr(m, name)(m.symmetric(x)[::2], 0))
    for peer in (-1, Here.size):
        refused(check, RuntimeError, lambda m: getattr(m, name)(m.symmetric(x), peer))


@scenes("nvshmem_put_with_signal", "nvshmem_wait_for_signal")
def put_with_signal(check, name):
    for turn, words in enumerate((1, 3)):
        x = random(1000)

        def call(m):
            pad, handle = m.handle(torch.zeros(words, dtype=torch.int64, device=Here.device))
            source = m.symmetric(x)
            m.rendezvous(source, m.group)
            handle.barrier()
            if m.rank == 0:
                m.nvshmem_put_with_signal(source, pad, 5 + turn, m.right)
            if m.left == 0:
                m.nvshmem_wait_for_signal(pad, 5 + turn, m.left)
            return [source, pad]

        def meant(m):
            signal = 5 + turn if m.left == 0 else 0
            return [m.bits(x)[0 if m.left == 0 else m.rank], torch.tensor(
                [signal] + [0] * (words - 1), device=Here.device)]
        alone(check, call, meant)
    pad = torch.zeros(1, dtype=torch.int64, device=Here.device)
    if name.startswith("nvshmem_put"):
        refused(check, RuntimeError, lambda m: m.nvshmem_put_with_signal(m.symmetric(x), pad, 1, 0))
        refused(check, RuntimeError, lambda m: m.nvshmem_put_with_signal(x, m.symmetric(pad), 1, 0))
        refused(check, RuntimeError, lambda m: m.nvshmem_put_with_signal(
            m.symmetric(x), m.symmetric(pad), 1, Here.size))
    else:
        refused(check, RuntimeError, lambda m: m.nvshmem_wait_for_signal(pad, 1, 0))


@pair
def nvshmem_broadcast(check):
    for dtype in MOVED:
        x = random(6, 50, dtype=dtype)
        for root in {0, Here.size - 1}:
            check.same(lambda m: m.nvshmem_broadcast(m.symmetric(x), root, m.group), lambda m: m.bits(x)[root],
                       theirs=not Here.gpu and not Here.registry, groups=root < 2 or Here.size == 2)
    refused(check, RuntimeError, lambda m: m.nvshmem_broadcast(x, 0, m.group))
    refused(check, RuntimeError, lambda m: m.nvshmem_broadcast(m.symmetric(x), Here.size, m.group))
    refused(check, RuntimeError, lambda m: m.nvshmem_broadcast(m.symmetric(x)[:, ::2], 0, m.group))


@pair
def nvshmem_all_to_all(check):
    for dtype in MOVED:
        x = random(12, 7, dtype=dtype)
        check.same(lambda m: m.nvshmem_all_to_all(m.symmetric(x), m.symmetric(torch.zeros_like(x)), m.group),
                   lambda m: torch.cat([each.chunk(m.size)[m.rank] for each in m.bits(x)]),
                   theirs=not Here.gpu and not Here.registry)

    def call(m, a=x, b=x):
        return m.nvshmem_all_to_all(m.symmetric(a), m.symmetric(b), m.group)
    refused(check, RuntimeError, lambda m: m.nvshmem_all_to_all(x, m.symmetric(x), m.group))
    refused(check, RuntimeError, lambda m: call(m, b=x[1:]))
    refused(check, RuntimeError, lambda m: call(m, b=x.to(torch.int32)))
    if Here.size > 1:
        refused(check, RuntimeError, lambda m: call(m, random(2 * Here.size + 1), random(2 * Here.size + 1)))


# --- Handles' memory ----------------------------------------------------------------------------------

@scenes("put", "get")
def puts_and_gets(check, name):
    """A function that PyTorch has only after 2.11."""
    for dtype in MOVED:
        x = random(4, 8, dtype=dtype)
        whole = random(60, dtype=dtype)

        def call(m):
            tensor, handle = m.handle(whole)
            handle.barrier()
            got = torch.zeros_like(x)
            m.put(x, handle, m.right, 8)
            handle.barrier()
            m.get(got, handle, m.right, offset=8)
            handle.barrier()
            return [tensor, got]

        def meant(m):
            left = m.bits(x)[m.left].flatten()
            return [torch.cat([whole[:8], left, whole[40:]]), x]
        alone(check, call, meant)
    made = Here.ours.handle(random(16))[1]
    x = random(16)

    def bad(tensor=x, peer=0, offset=0):
        return lambda m: getattr(m, name)(tensor, made, peer, offset)
    for arguments in ({"peer": -1}, {"peer": Here.size}, {"offset": -1}, {"offset": 1}, {"tensor": random(32)[::2]},
                      {"tensor": random(17)}):
        refused(check, RuntimeError, bad(**arguments))


@scenes("put_signal", "wait_signal")
def signals(check, name):
    """PyTorch's are for its backend NCCL alone."""
    if Here.gpu:
        with Here.theirs.functions:
            tensor, made = Here.theirs.handle(random(16))
        arguments = (random(16), made, 0) if name == "put_signal" else (made, 0)
        other = check._raised(Here.theirs, lambda m: getattr(m, name)(*arguments))
        check.is_true(isinstance(other, ValueError), f"PyTorch's own does not refuse: {other!r}")
        check.notes.append(f"it works; PyTorch's own: {other}")
    for turn in range(3):
        x = random(16)

        def call(m):
            tensor, handle = m.handle(torch.zeros_like(x))
            handle.barrier()
            m.put_signal(x, handle, m.right)
            m.wait_signal(handle, m.left)
            return tensor
        alone(check, call, lambda m: m.bits(x)[m.left])
    made = Here.ours.handle(random(16))[1]
    for peer in (-1, Here.size):
        if name == "put_signal":
            refused(check, RuntimeError, lambda m: m.put_signal(random(16), made, peer))
        else:
            refused(check, RuntimeError, lambda m: m.wait_signal(made, peer))


@pair
def get_remote_tensors(check):
    for dtype in MOVED:
        x = random(6, 10, dtype=dtype)

        def call(m):
            tensor, handle = m.handle(x)
            handle.barrier()
            copies = [each.clone() for each in m.get_remote_tensors(tensor, m.group)]
            handle.barrier()
            return copies
        check.same(call, lambda m: list(m.bits(x)))
    check.wrong(ValueError, lambda m: m.get_remote_tensors(x.clone(), m.group))
    check.wrong(RuntimeError, lambda m: m.get_remote_tensors(m.symmetric(x), "no such group"))


@scenes("nccl_put", "nccl_get", "nccl_put_with_signal", "nccl_wait_for_signal", "nccl_put_signal", "nccl_wait_signal")
def of_nccl(check, name):
    if Here.gpu:
        raise Left("NCCL's windows; weft.torch has put, get, put_signal and wait_signal")
    if name in ("nccl_put_signal", "nccl_wait_signal"):
        raise Left("it takes a handle of NCCL's")
    rest = {"nccl_put": (0,), "nccl_get": (0,), "nccl_put_with_signal": (1, 0), "nccl_wait_for_signal": (1,)}[name]
    check.wrong(NotImplementedError, lambda m: getattr(m, name)(random(4), *rest))
    meet()
