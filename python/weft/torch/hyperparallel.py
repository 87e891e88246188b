# SPDX-License-Identifier: BSD-3-Clause
"""HyperParallel's symmetric memory interface, on CUDA and CPU tensors:

    from weft.torch import SymmetricMemoryHandler as symm

    inbox = symm.empty((1024,), torch.float32)
    signal = symm.empty(1, torch.int32).zero_()
    symm.barrier()
    symm.shmem_put_with_signal(inbox, 0, x, 0, x.numel(), signal, 0, 1, 0, target_rank)
    symm.shmem_wait_for_signal(inbox, signal, 0, 1, 0)

Ranks are global. Offsets and sizes count elements of target's dtype, signal offsets elements of int32. Signal
operations are 0 for set and 1 for add, comparisons 0 for equal, 1 for greater and 2 for less.

On CUDA tensors every call is enqueued on the current stream, may be captured into a graph, and waits for no host. The
GPU reads offsets, sizes and signal values that are CUDA tensors, when the stream gets to the call. On CPU tensors the
calling thread does the work.
"""
import torch

import weft
from weft.torch import _on_lanes
from weft.torch._call import (Collective, check_rank, lane_for, meaning, overlap, plain, sequence,
                              speaks_of, whole)
from weft.torch._owner import Owner
from weft.torch._rendezvous import handle_of, set_signal_pad_size, signal_pad_size

_SIGNAL_OPS = ("set", "add")
_COMPARISONS = ("==", ">", "<")

# The names of the arguments in weft's own calls.
_OF_COPIES = {"dest": "target", "source": "src", "nelems": "size", "dest_begin": "target_offset",
              "source_begin": "src_offset"}
_OF_SIGNALS = {"signals": "signal", "index": "signal_offset", "value": "signal_value"}


def acquire_symmetric_memory(group=None):
    """Returns an owner of symmetric tensors, with empty, aligned_empty, free, barrier and close. There may be any
    number of owners. group: None or all ranks, ValueError for others. Collective over all ranks."""
    return Owner(group)


class SymmetricMemoryHandler:
    """One-sided communication and collectives on symmetric tensors. All methods are static."""

    _owner = None

    @classmethod
    def _get_owner(cls):
        if cls._owner is None or cls._owner.closed:
            cls._owner = acquire_symmetric_memory()
        return cls._owner

    @classmethod
    def close(cls):
        """Frees the tensors of empty(). Collective; empty() may be called again afterwards."""
        owner, cls._owner = cls._owner, None
        if owner is not None:
            owner.close()

    @staticmethod
    def is_shmem_available():
        """Returns True, also on the CPU."""
        return True

    # --- Memory ---------------------------------------------------------------------------------

    @classmethod
    def empty(cls, shape, dtype, device=None):
        """Makes a symmetric tensor, zeroed if its memory is new. shape: a number, or several; all at least 1. device:
        by default this rank's GPU if there is one, else the CPU. Collective: all ranks ask for the same. The memory is
        freed when all ranks have let go of the tensor."""
        return cls._get_owner().empty(shape, dtype, device)

    @classmethod
    def free(cls, tensor):
        """Frees a tensor of empty(), which has no elements afterwards."""
        cls._get_owner().free(tensor)

    @staticmethod
    def rendezvous(tensor, group=None):
        """Returns the members' handle of a tensor of empty(), with the methods of torch.distributed's SymmetricMemory:
        buffers and signal pads of all ranks of the group, put_signal, wait_signal, barrier. group: a ProcessGroup or
        its name; None means all ranks."""
        return handle_of(tensor, group)

    @staticmethod
    def set_signal_pad_size(size):
        """Sets the signal pad size in bytes of later tensors, to the same on all ranks."""
        set_signal_pad_size(size)

    @staticmethod
    def get_signal_pad_size():
        """Returns the signal pad size in bytes of later tensors."""
        return signal_pad_size()

    @classmethod
    def barrier(cls):
        """Blocks until all ranks have called it and everything they have put has arrived, in any stream that was
        current in a call. Orders the current stream; for tensors on the CPU, the calling thread."""
        cls._get_owner().barrier()

    # --- Put, get, signals ----------------------------------------------------------------------

    @staticmethod
    @speaks_of(**_OF_COPIES)
    def shmem_put(target, target_offset, src, src_offset, size, target_rank):
        """Copies src[src_offset:][:size] here to target[target_offset:][:size] on target_rank. Complete after a signal
        or a barrier."""
        lane, target, src = lane_for("shmem_put", target=target, src=src)
        weft.put_slice(target, src, size, check_rank("shmem_put", target_rank), target_offset,
                       src_offset, stream=lane.stream)

    @staticmethod
    @speaks_of(**_OF_COPIES)
    def shmem_get(target, target_offset, src, src_offset, size, target_rank):
        """Copies src[src_offset:][:size] on target_rank to target[target_offset:][:size] here."""
        lane, target, src = lane_for("shmem_get", target=target, src=src)
        weft.get_slice(target, src, size, check_rank("shmem_get", target_rank), target_offset,
                       src_offset, stream=lane.stream)

    @staticmethod
    @speaks_of(**_OF_SIGNALS)
    def shmem_signal_op(signal, signal_offset, signal_value, signal_op=0, target_rank=0):
        """Sets signal[signal_offset] on target_rank to the value (0), or adds the value to it (1)."""
        call = "shmem_signal_op"
        lane, signal = lane_for(call, signal=signal)
        op = meaning(call, "signal_op", signal_op, _SIGNAL_OPS)
        weft.signal32(signal, signal_value, check_rank(call, target_rank), op=op,
                      index=signal_offset, stream=lane.stream)

    @staticmethod
    @speaks_of(signals="signal", index="signal_offset", value="compare_value")
    def shmem_wait_for_signal(depend_tensor, signal, signal_offset, compare_value, compare_op):
        """Waits until signal[signal_offset] of this rank is equal to (0), greater than (1) or less than (2)
        compare_value; the signal is not changed. Everything that was put before the signal is visible then.
        depend_tensor is ignored."""
        call = "shmem_wait_for_signal"
        lane, signal = lane_for(call, signal=signal)
        cmp = meaning(call, "compare_op", compare_op, _COMPARISONS)
        weft.wait32(signal, compare_value, cmp, index=signal_offset, stream=lane.stream)

    @staticmethod
    @speaks_of(**_OF_COPIES, **_OF_SIGNALS)
    def shmem_put_with_signal(target, target_offset, src, src_offset, size, signal, signal_offset,
                              signal_value, signal_op, target_rank):
        """Does shmem_put, then shmem_signal_op: a rank that sees the signal sees the data."""
        call = "shmem_put_with_signal"
        lane, target, src, signal = lane_for(call, target=target, src=src, signal=signal)
        op = meaning(call, "signal_op", signal_op, _SIGNAL_OPS)
        weft.put_slice_signal(target, src, size, check_rank(call, target_rank), target_offset,
                              src_offset, signal, signal_value, op=op, index=signal_offset,
                              stream=lane.stream)

    # --- Collectives ----------------------------------------------------------------------------

    @staticmethod
    def shmem_allgather(output_tensor, input_tensor):
        """Concatenates the ranks' input_tensor in output_tensor, which is symmetric and has as many elements as all
        inputs together; input_tensor may be this rank's part of it."""
        output, given = plain("shmem_allgather", output_tensor=output_tensor,
                              input_tensor=input_tensor)
        call = Collective("shmem_allgather", output)
        size = call.world.size
        call.alike(input_tensor=given)
        call.contiguous(output_tensor=output)
        call.expect(given.numel() * size == output.numel(),
                    lambda: f"got {given.numel()} elements in input_tensor and {output.numel()} in output_tensor, "
                            f"expected {size} times as many there")
        call.own_part_or_apart(input_tensor=given)
        call.begin(given.numel())
        _on_lanes.all_gather(call.world, call.lane, output, given.contiguous())

    @staticmethod
    @speaks_of(dest="receive_tensor", source="send_tensor_list")
    def shmem_alltoall(send_tensor_list, receive_tensor, receive_list):
        """Concatenates what the ranks send to this one in receive_tensor, in order of rank. send_tensor_list[r] is sent
        to rank r; receive_list[r] elements come from rank r, any number, as a list or a tensor (a CUDA tensor is waited
        for). receive_tensor is symmetric, has exactly sum(receive_list) elements, and begins at the same place of the
        same symmetric tensor on all ranks: a view of its first elements if ranks receive different numbers. An error of
        one rank is a ValueError on all."""
        name = "shmem_alltoall"
        output, = plain(name, receive_tensor=receive_tensor)
        sends = plain(name, **{f"send_tensor_list[{rank}]": tensor for rank, tensor in enumerate(
            sequence(name, "send_tensor_list", send_tensor_list))})
        call = Collective(name, output)
        counts = call.counts(receive_list)
        call.expect(len(sends) == call.world.size,
                    lambda: f"got {len(sends)} tensors in send_tensor_list, expected one for each of "
                            f"{call.world.size} ranks")
        call.contiguous(receive_tensor=output)
        call.expect(sum(counts) == output.numel(),
                    lambda: f"got {output.numel()} elements in receive_tensor, expected the sum of receive_list, "
                            f"{sum(counts)}")
        named = {f"send_tensor_list[{rank}]": tensor for rank, tensor in enumerate(sends)}
        call.alike(**named)
        call.apart(**named)
        begins = call.exchange(sends, counts)
        call.begin(meet=True)
        _on_lanes.all_to_all(call.world, call.lane, whole(output),
                             [tensor.contiguous().view(-1) for tensor in sends], begins)

    # --- Products -------------------------------------------------------------------------------

    @staticmethod
    def fused_all_gather_matmul(a, b, c, gather_out, signal, block_size=None):
        """Computes gather_out = the ranks' a, concatenated, and c = gather_out @ b. Returns both.

        a (m, k), b (k, n), c (m * ranks, n); gather_out (m * ranks, k), symmetric; a may be this rank's rows of it.
        signal: symmetric int32, at least as many as there are ranks; with block_size as many for each block of that
        many rows of a. Weft's operator sees to the signals and the size of blocks itself: both are checked, and not
        used."""
        a, b, c, gathered, signal = plain("fused_all_gather_matmul", a=a, b=b, c=c,
                                          gather_out=gather_out, signal=signal)
        call = Collective("fused_all_gather_matmul", gathered)
        size = call.world.size
        call.alike(a=a, b=b, c=c)
        call.matrices(a=a, b=b, c=c, gather_out=gathered)
        (m, k), n = (a.shape, b.shape[-1]) if call.complaint is None else ((0, 0), 0)
        if call.complaint is None:
            call.shape("b", b, (k, n))
            call.shape("gather_out", gathered, (m * size, k))
            call.shape("c", c, (m * size, n))
        call.contiguous(gather_out=gathered)
        call.own_part_or_apart(a=a)
        call.apart(b=b, c=c)
        call.signals_of_blocks(signal, m, block_size)
        call.begin([m, k], places=[signal])
        apart = a
        if overlap(a, gathered):
            apart = torch.empty_like(a)
            call.lane(apart.copy_, a)
        _on_lanes.all_gather_matmul(call.world, call.lane, apart, b, c, gathered)
        return gather_out, c

    @staticmethod
    def fused_matmul_reduce_scatter(x1, x2, symm_tensor, signal, reduce_op="sum"):
        """Returns this rank's rows of the 'sum' or 'avg' over the ranks of x1 @ x2: (m / ranks, n).

        x1 (m, k), x2 (k, n); symm_tensor (m, n) of the same dtype, symmetric, whose content is undefined afterwards;
        signal: symmetric int32, at least as many as there are ranks, which is checked and not used. Floats of 16 bits
        are summed in 32 bits and rounded once; averages of integers are rounded towards zero."""
        x1, x2, parts, signal = plain("fused_matmul_reduce_scatter", x1=x1, x2=x2,
                                      symm_tensor=symm_tensor, signal=signal)
        call = Collective("fused_matmul_reduce_scatter", parts)
        size = call.world.size
        call.expect(reduce_op in ("sum", "avg"), lambda: f"got reduce_op {reduce_op!r}, expected 'sum' or 'avg'")
        call.alike(x1=x1, x2=x2)
        call.matrices(x1=x1, x2=x2)
        if call.complaint is None:
            call.shape("x2", x2, (x1.shape[1], x2.shape[1]))
            call.expect(x1.shape[0] % size == 0,
                        lambda: f"got {x1.shape[0]} rows of x1, expected a multiple of {size} ranks")
            call.shape("symm_tensor", parts, (x1.shape[0], x2.shape[1]))
        call.contiguous(symm_tensor=parts)
        call.apart(x1=x1, x2=x2)
        call.signals(signal, size)
        call.begin(list(parts.shape), reduce_op, places=[signal])
        return _on_lanes.matmul_reduce_scatter(call.world, call.lane, x1, x2, parts, reduce_op == "avg")


TorchSymmetricMemoryHandler = SymmetricMemoryHandler
