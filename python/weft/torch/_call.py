# SPDX-License-Identifier: BSD-3-Clause
"""A call of hyperparallel.py: its lane, and the checks of its arguments.

A collective call keeps its first error until begin(). If the ranks' hosts synchronise there, the error is raised on all
ranks: in calls on CPU tensors, in shmem_alltoall, and in all calls if SHMEM_DEBUG is set. Otherwise it is raised on
this rank only.
"""
import functools
import operator
import re
from collections.abc import Iterable

import torch

from weft.torch import _heap
from weft.torch._check import check_tensor
from weft.torch._groups import CHECKED
from weft.torch._lanes import lane_of
from weft.torch._world import world

_UNKNOWN = -1
_OF_ARGUMENT = re.compile(r"\w+: (argument .*)", re.DOTALL)
_WORD = re.compile(r"\w+")


# --- Arguments -----------------------------------------------------------------------------------

def speaks_of(**names):
    """Decorates a function made of one of weft's calls: errors about an argument are raised with the function's own
    name, and its own names of the arguments."""
    def decorate(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except (TypeError, ValueError) as error:
                found = _OF_ARGUMENT.match(str(error))
                if not found:
                    raise
                text = _WORD.sub(lambda word: names.get(word[0], word[0]), found[1])
                raise type(error)(f"{function.__name__}: {text}") from None
        return call
    return decorate


def plain(call, **tensors):
    """Returns the tensors detached from autograd."""
    for name, tensor in tensors.items():
        check_tensor(call, name, tensor)
    return [tensor.detach() if tensor.requires_grad else tensor for tensor in tensors.values()]


def whole_number(call, name, value):
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{call}: got {name} {value!r}, expected a whole number") from None


def sequence(call, name, values):
    if not isinstance(values, Iterable):
        raise TypeError(f"{call}: got {name} of type {type(values).__name__}, expected a list or a tensor")
    return values


# --- Calls of one rank ---------------------------------------------------------------------------

def lane_for(call, **tensors):
    """Returns the lane of a call on these tensors, which must be on one device, and the tensors detached."""
    given = plain(call, **tensors)
    device = given[0].device
    for name, tensor in tensors.items():
        if tensor.device != device:
            raise ValueError(f"{call}: got {name} on {tensor.device}, expected it on {device}")
    lane = lane_of(device)
    _heap.note(lane)
    return lane, *given


def check_rank(call, rank):
    rank, last = whole_number(call, "target_rank", rank), world().size - 1
    if not 0 <= rank <= last:
        raise ValueError(f"{call}: target_rank must be in range [0, {last}], but get {rank}")
    return rank


def meaning(call, name, code, meanings):
    code = whole_number(call, name, code)
    if code not in range(len(meanings)):
        raise ValueError(f"{call}: got {name} {code}, expected 0 to {len(meanings) - 1}")
    return meanings[code]


# --- Calls of all ranks --------------------------------------------------------------------------

def _span(tensor):
    """Returns the first address and the end of a tensor's memory."""
    if tensor.is_contiguous():
        return tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes
    reach = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
    begin = tensor.data_ptr()
    return begin, begin + ((reach + 1) * tensor.element_size() if tensor.numel() else 0)


def whole(tensor):
    """Returns all of the storage from the tensor's first element on, which may be more than the tensor."""
    room = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    return tensor.as_strided((max(room, 0),), (1,))


def overlap(one, other):
    (begin, end), (other_begin, other_end) = _span(one), _span(other)
    return begin < other_end and other_begin < end


class Collective:
    def __init__(self, name, target):
        self.name, self.target = name, target
        self.world = world()
        self.lane = lane_of(target.device)
        self.complaint = None

    def expect(self, right, complaint):
        """Keeps what complaint() returns if this is the first error. To format a type or a device takes longer than to
        compare it, so a text is only made for an error."""
        if not right and self.complaint is None:
            self.complaint = complaint()

    def alike(self, **tensors):
        """Checks that the tensors have the target's type and device."""
        like = self.target
        for name, tensor in tensors.items():
            self.expect(tensor.dtype == like.dtype and tensor.device == like.device,
                        lambda: f"got {name} of {tensor.dtype} on {tensor.device}, expected {like.dtype} on "
                                f"{like.device}")

    def contiguous(self, **tensors):
        for name, tensor in tensors.items():
            self.expect(tensor.is_contiguous(),
                        lambda: f"got {name} with strides {tensor.stride()}, expected it to be contiguous")

    def matrices(self, **tensors):
        for name, tensor in tensors.items():
            self.expect(tensor.dim() == 2,
                        lambda: f"got {name} of shape {list(tensor.shape)}, expected two dimensions")

    def shape(self, name, tensor, shape):
        self.expect(tuple(tensor.shape) == tuple(shape),
                    lambda: f"{name} shape mismatch: expected {list(shape)}, got {list(tensor.shape)}")

    def apart(self, **tensors):
        """Checks that the tensors do not overlap the target, which other ranks write to."""
        for name, tensor in tensors.items():
            self.expect(not overlap(tensor, self.target),
                        lambda: f"got {name} in memory that the result is written to, expected it elsewhere")

    def own_part_or_apart(self, **tensors):
        """Checks that each tensor is this rank's part of the target or does not overlap it."""
        part_bytes = self.target.numel() * self.target.element_size() // self.world.size
        own = self.target.data_ptr() + self.world.rank * part_bytes
        for name, tensor in tensors.items():
            if tensor.data_ptr() != own or not tensor.is_contiguous():
                self.apart(**{name: tensor})

    def signals(self, signal, count):
        self.contiguous(signal=signal)
        self.expect(signal.dtype == torch.int32 and signal.device == self.target.device
                    and signal.numel() >= count,
                    lambda: f"got signal with {signal.numel()} elements of {signal.dtype} on {signal.device}, expected "
                            f"{count} at least of torch.int32 on {self.target.device}")

    def signals_of_blocks(self, signal, rows, block_rows):
        """Checks that there is a signal for each rank and block of that many rows; by default there is one block."""
        block_rows = rows if block_rows is None else whole_number(self.name, "block_size", block_rows)
        self.expect(block_rows > 0 or rows == 0, lambda: f"got block_size {block_rows}, expected at least 1")
        self.signals(signal, max(1, -(-rows // max(1, block_rows))) * self.world.size)

    def counts(self, numbers):
        """Returns one whole number for each rank."""
        if isinstance(numbers, torch.Tensor):
            captured = numbers.is_cuda and torch.cuda.is_current_stream_capturing()
            self.expect(not captured, lambda: "got receive_list on a GPU while a graph is captured, expected numbers "
                                              "that the host knows")
            numbers = [0] * self.world.size if captured else numbers.flatten().tolist()
        numbers = list(sequence(self.name, "receive_list", numbers))
        right = all(isinstance(n, int) and n >= 0 for n in numbers) and len(numbers) == self.world.size
        self.expect(right, lambda: f"got receive_list {numbers}, expected a number of elements for each of "
                                   f"{self.world.size} ranks")
        return numbers if right else [0] * self.world.size

    def exchange(self, sends, counts):
        """Returns where this rank's parts belong in the ranks' targets. An error of one rank is raised on all."""
        rows = [(n, sum(counts[:rank])) for rank, n in enumerate(counts)]
        if self.complaint is not None:
            rows = [(_UNKNOWN, 0)] * self.world.size
        wanted = self.world.exchange(rows)
        room = whole(self.target).numel()
        for rank, (tensor, (n, begin)) in enumerate(zip(sends, wanted)):
            if n == _UNKNOWN:
                continue
            self.expect(tensor.numel() == n, lambda: f"got {tensor.numel()} elements in send_tensor_list[{rank}], "
                                                     f"expected {n}, as rank {rank} has in receive_list")
            self.expect(n == 0 or begin + n <= room,
                        lambda: f"got receive_tensor with room for {room} elements after its beginning, expected "
                                f"{begin + n}, as on rank {rank}")
        return [begin for _, begin in wanted]

    def begin(self, *facts, places=(), meet=False):
        """Checks that the facts and the places are the same on all ranks. ValueError if there is an error."""
        places = self.target, *places
        if meet or CHECKED or self.lane.at_once:
            facts = ", ".join([*map(str, facts), str(self.target.dtype), *map(_heap.place_of, places)])
            self.world.agree(self.name, self.complaint, facts)
        elif self.complaint is not None:
            raise ValueError(f"{self.name}: {self.complaint}")
        self.world.enter(self.lane)
        _heap.note(self.lane)
