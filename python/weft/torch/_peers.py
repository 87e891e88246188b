# SPDX-License-Identifier: BSD-3-Clause
"""Access to a tensor of one other rank, by loads and stores: on any device, in the order of its stream."""
import time

import torch

import weft
from weft.torch._check import (check_contiguous, check_divisible, check_handle, check_symmetric,
                               check_tensor)
from weft.torch._errors import ArgumentError
from weft.torch._memory import rendezvous

WORLD = "0"
LOOKS_S = 3e-5


def at_peer(handle, tensor, peer):
    """Returns the peer's copy of a symmetric tensor, with the same sizes and strides."""
    begin = handle.offset // tensor.element_size() + tensor.storage_offset()
    if tensor.numel() == 0:
        return handle.get_buffer(peer, tensor.shape, tensor.dtype, 0)
    span = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
    flat = handle.get_buffer(peer, (span,), tensor.dtype, begin)
    return flat.as_strided(tensor.shape, tensor.stride())


def check_peer(call, peer, members):
    if not 0 <= peer < members:
        raise ArgumentError(f"{call}: invalid peer: got {peer}, must be in [0, {members})")


def get_remote_tensors(x, group_name):
    handle = rendezvous(x, group_name)
    if handle is None:
        raise ValueError("Tensor is not allocated from Symmetric Memory")
    return [at_peer(handle, x, peer) for peer in range(handle.world_size)]


# --- Puts and gets through a handle --------------------------------------------------------------


def put(src, hdl, peer, offset=0):
    """Copies src to the peer's memory, `offset` elements after the beginning of the peer's tensor."""
    _remote("put", "src", src, hdl, peer, offset).copy_(src)


def get(dst, hdl, peer, offset=0):
    """Copies from the peer's memory, from `offset` elements after the beginning of its tensor, to dst."""
    remote = _remote("get", "dst", dst, hdl, peer, offset)
    dst.copy_(remote)


def put_signal(src, hdl, peer):
    """Puts as put() does, then signals for the peer's wait_signal(); the data is visible after the signal."""
    _remote("put_signal", "src", src, hdl, peer, 0).copy_(src)
    hdl.put_signal(peer)


def wait_signal(hdl, peer):
    """Waits for the signal of the peer's put_signal(), and clears it; the data is visible then. On CUDA the current
    stream waits."""
    check_handle("wait_signal", "hdl", hdl)
    check_peer("wait_signal", peer, hdl.world_size)
    hdl.wait_signal(peer)


def _remote(call, name, tensor, handle, peer, offset):
    """Returns the peer's memory as a tensor of the same sizes."""
    check_tensor(call, name, tensor)
    check_handle(call, "hdl", handle)
    check_peer(call, peer, handle.world_size)
    if tensor.device != handle.device:
        raise ArgumentError(f"{call}: got {name} on {tensor.device}, expected the handle's "
                            f"{handle.device}")
    check_contiguous(call, name, tensor, ArgumentError)
    if offset < 0:
        raise ArgumentError(f"{call}: offset must be non-negative, got {offset}")
    if handle.offset % tensor.element_size():
        raise RuntimeError(f"{call}: got a handle at byte {handle.offset}, expected a multiple of "
                           f"{tensor.element_size()}")
    begin = handle.offset // tensor.element_size() + offset
    room = handle.buffer_size // tensor.element_size()
    if begin + tensor.numel() > room:
        raise ArgumentError(f"{call}: {tensor.numel()} elements from {begin} on exceeds the "
                            f"{room} of the allocation")
    return handle.get_buffer(peer, tensor.shape, tensor.dtype, begin)


# --- The operators that PyTorch has for NVSHMEM -------------------------------------------------


def _symmetric(call, name, tensor, peer=None, group_name=WORLD):
    handle = check_symmetric(call, name, tensor, group_name)
    check_contiguous(call, name, tensor)
    if peer is not None:
        check_peer(call, peer, handle.world_size)
    return handle


def nvshmem_put(tensor, peer):
    handle = _symmetric("nvshmem_put", "tensor", tensor, peer)
    at_peer(handle, tensor, peer).copy_(tensor)


def nvshmem_get(tensor, peer):
    handle = _symmetric("nvshmem_get", "tensor", tensor, peer)
    tensor.copy_(at_peer(handle, tensor, peer))


def nvshmem_put_with_signal(tensor, sigpad, signal, peer):
    """Sets the peer's 64-bit word sigpad[0] after the data."""
    handle = _symmetric("nvshmem_put_with_signal", "tensor", tensor, peer)
    pad = _symmetric("nvshmem_put_with_signal", "sigpad", sigpad, peer)
    at_peer(handle, tensor, peer).copy_(tensor)
    if tensor.device.type == "cpu":
        weft.fence()
    at_peer(pad, sigpad, peer).view(torch.int64).flatten()[:1].fill_(signal)


def nvshmem_wait_for_signal(sigpad, signal, peer):
    """Blocks until the 64-bit word sigpad[0] is `signal`, and leaves the word unchanged."""
    _symmetric("nvshmem_wait_for_signal", "sigpad", sigpad, peer)
    word = sigpad.view(torch.int64).flatten()[:1]
    while word.item() != signal:
        time.sleep(LOOKS_S)
    weft.fence()


def nvshmem_broadcast(input, root, group_name):
    """Broadcasts in place, from the group's rank `root`."""
    handle = _symmetric("nvshmem_broadcast", "input", input, root, group_name)
    handle.barrier()
    if handle.rank != root:
        input.copy_(at_peer(handle, input, root))
    handle.barrier()
    return input


def nvshmem_all_to_all(input, out, group_name):
    call = "nvshmem_all_to_all"
    handle = _symmetric(call, "input", input, None, group_name)
    _symmetric(call, "out", out, None, group_name)
    if input.numel() != out.numel() or input.dtype != out.dtype:
        raise RuntimeError(f"{call}: got out of {out.numel()} {out.dtype}, expected as many as in "
                           f"input, {input.numel()} {input.dtype}")
    flat = input.view(-1)
    check_divisible(call, flat, 0, handle.world_size, RuntimeError)
    parts = out.view(handle.world_size, -1)
    handle.barrier()
    for step in range(handle.world_size):
        peer = (handle.rank + step) % handle.world_size
        parts[peer].copy_(at_peer(handle, flat, peer).view(parts.shape)[handle.rank])
    handle.barrier()
    return out


# --- Tiles ---------------------------------------------------------------------------------------


def tile_reduce(in_tile, out_tile, root, group_name, reduce_op="sum"):
    multi_root_tile_reduce([in_tile], out_tile, [root], group_name, reduce_op)


def multi_root_tile_reduce(in_tiles, out_tile, roots, group_name, reduce_op="sum"):
    """Writes the sum of all members' in_tiles[i] to out_tile of rank roots[i]; tiles are 2-D parts of symmetric
    matrices. A member that is no root keeps its out_tile."""
    call = "multi_root_tile_reduce"
    if reduce_op != "sum":
        raise RuntimeError(f"{call}: got reduce_op {reduce_op!r}, expected 'sum'")
    if not 0 < len(in_tiles) == len(roots) == len(set(roots)):
        raise RuntimeError(f"{call}: got {len(in_tiles)} tiles and roots {list(roots)}, expected "
                           "one root for each tile, each rank at most once")
    handles = [check_symmetric(call, "in_tile", tile, group_name) for tile in in_tiles]
    for tile, root in zip(in_tiles, roots):
        check_peer(call, root, handles[0].world_size)
        if tile.dim() != 2 or tile.shape != out_tile.shape or tile.dtype != out_tile.dtype:
            raise RuntimeError(f"{call}: got a tile of {list(tile.shape)} {tile.dtype}, expected "
                               f"two dimensions as of out_tile, {list(out_tile.shape)} "
                               f"{out_tile.dtype}")
    handles[0].barrier()
    for tile, root, handle in zip(in_tiles, roots, handles):
        if root == handle.rank:
            parts = [at_peer(handle, tile, peer) for peer in range(handle.world_size)]
            out_tile.copy_(torch.stack(parts).sum(0))
    handles[0].barrier()


# --- Words in the order of a stream --------------------------------------------------------------


def _words(call, input, offset, count, value):
    if input.dtype != torch.uint32 or input.dim() != 1 or not input.is_contiguous():
        raise RuntimeError(f"{call}: got input of {list(input.shape)} {input.dtype}, expected a "
                           "flat, contiguous uint32 tensor")
    if offset < 0 or count <= 0 or offset + count > input.numel():
        raise RuntimeError(f"{call}: got offset {offset} and count {count}, expected words of "
                           f"{input.numel()}")
    if not 0 <= value <= 0xFFFFFFFF:
        raise RuntimeError(f"{call}: got value {value}, expected one of 32 bits without sign")
    return input.view(torch.int32)[offset:offset + count]


def stream_write_value32_(input, offset, val):
    words = _words("stream_write_value32_", input, offset, 1, val)
    if weft.initialized():  # without a job nothing was sent before
        weft.fence()
    words.fill_(val - (val >> 31 << 32))
    return input


def memset32_(input, offset, val, count):
    _words("memset32_", input, offset, count, val).fill_(val - (val >> 31 << 32))
    return input
