# SPDX-License-Identifier: BSD-3-Clause
"""Process groups for Weft: the members are PEs, in the group's order, and have a team.

A group is identified by its name and by the process group that has the name at the moment, because names are reused
after destroy_process_group(). Process groups are referenced weakly: their threads end with them, and gloo's threads
abort a process that exits before them. Teams are kept until the process exits, by members and name. So a group that is
made again gets its old team, and destroying a group needs no collective call.
"""
import functools
import os
import weakref
import zlib

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch.distributed.device_mesh import DeviceMesh

import weft
from weft.torch import _store
from weft.torch._job import join

_resolve = c10d._resolve_process_group


class Group:
    """A process group's members. rank and size are those of the process group; pes[i] is the PE of rank i. The tag is
    the same on all members, and distinguishes groups of the same PEs."""

    def __init__(self, name, process_group):
        self.name = name
        self.process_group = weakref.ref(process_group)
        self.rank = process_group.rank()
        self.size = process_group.size()
        self.pes = tuple(_global_ranks(process_group))
        self.tag = zlib.crc32(name.encode())
        self.kernels = None      # the size limits of _kernels.py, by operation, once they are known
        self.multiplies = None   # whether the group's GPUs multiply matrices, once that is known
        self._team = None

    @property
    def team(self):
        """Returns the group's team. It is made at the first use, which is collective over the group."""
        if self._team is None:
            self._team = kept_team(self.pes, self.tag)
        return self._team


CHECKED = os.environ.get("SHMEM_DEBUG", "0") not in ("", "0")
_groups = {}
_teams = {}


def group_of(group):
    """Returns the Group of a name, a ProcessGroup or a DeviceMesh; this process must be a member. Returns a Group as it
    is."""
    if type(group) is Group:
        return group
    name = group_name(group)
    process_group = _resolve(name)
    known = _groups.get(name)
    if known is None or known.process_group() is not process_group:
        join()
        _check_ranks()
        known = _groups[name] = Group(name, process_group)
    return known


def group_name(group):
    if isinstance(group, str):
        return group
    if isinstance(group, dist.ProcessGroup):
        return group.group_name
    if isinstance(group, DeviceMesh):
        return _name_of_mesh(group)
    if group == dist.GroupMember.NON_GROUP_MEMBER:
        raise TypeError(f"unsupported group type: {type(group)}: got the value that torch.distributed returns "
                        "on ranks outside of the group: this rank is not a member, and must not call")
    raise TypeError(f"unsupported group type: {type(group)}; expected a name, a "
                    "torch.distributed.ProcessGroup or a DeviceMesh of one dimension")


def _name_of_mesh(mesh):
    if mesh.ndim != 1:
        names = mesh.mesh_dim_names
        how = f"mesh[{names[-1]!r}]" if names else "mesh.get_group(dim)"
        named = f" {names}" if names else ""
        raise TypeError(f"group: got a DeviceMesh of {mesh.ndim} dimensions{named}, expected one dimension, such as {how}")
    check_in_mesh(mesh)
    return mesh.get_group().group_name


def check_in_mesh(mesh):
    if mesh.get_coordinate() is None:
        raise TypeError(f"group: got {mesh}, which rank {dist.get_rank()} is not in: it makes no calls on this mesh")


# Frequent types of arguments, which need no further look.
_NO_DTENSORS = frozenset((torch.Tensor, torch.nn.Parameter, dist.ProcessGroup, str, int, bool, type(None)))


def _has_dtensors(given):
    """Returns whether there is a DTensor among these and in their lists. A program that has one has imported
    torch.distributed.tensor, which takes a second and is not imported here."""
    for each in given:
        if type(each) in _NO_DTENSORS:
            continue
        if isinstance(each, (list, tuple)):
            if _has_dtensors(each):
                return True
        elif hasattr(dist, "tensor") and isinstance(each, dist.tensor.DTensor):
            return True
    return False


def _refuse_dtensors(function, *args, **named):
    raise TypeError(f"{function.__name__}: got a DTensor, expected this rank's own tensor: pass x.to_local(); or call "
                    "x.redistribute(), which communicates by itself")


def by_either_name(function, with_dtensors=_refuse_dtensors):
    """Accepts the argument `group` also as group_name, which is its name in PyTorch's operators. A call that has DTensors
    is with_dtensors(function, ...), which by default raises TypeError: tensors must be the ranks' own."""
    @functools.wraps(function)
    def call(*args, **named):
        if "group_name" in named:
            if "group" in named:
                raise TypeError(f"{function.__name__}: got group and group_name, expected one of them")
            named["group"] = named.pop("group_name")
        if _has_dtensors(args) or (named and _has_dtensors(named.values())):
            return with_dtensors(function, *args, **named)
        return function(*args, **named)
    return call


def or_with_dtensors(with_dtensors):
    """Returns by_either_name() for a function that accepts DTensors, too."""
    return functools.partial(by_either_name, with_dtensors=with_dtensors)


def init_process_group(backend=None, **options):
    """Does the same as torch.distributed.init_process_group(), under any launcher, and returns the group of all ranks.
    Under torchrun the ranks meet as usual. PEs of oshrun, mpirun or srun, and a process without a launcher, get their
    PE's number as the rank, and meet through Weft, also over several hosts. backend: by default nccl if there is a GPU,
    else gloo; with nccl this rank's GPU becomes the current device. Other options are passed on. Collective over the
    job."""
    backend = backend or ("nccl" if torch.cuda.is_available() else "gloo")
    if not ("RANK" in os.environ and "MASTER_PORT" in os.environ):
        weft.init()
        _store.use_network()
        options.update(store=_store.store(), rank=weft.my_pe(), world_size=weft.n_pes())
    dist.init_process_group(backend, **options)
    if "nccl" in backend.lower():
        weft.init()
        torch.cuda.set_device(weft.device() if options.get("device_id") is None else options["device_id"])
    return dist.group.WORLD


def _check_ranks():
    """Checks that PE and rank are the same number, even if Weft was started before torch.distributed."""
    if not dist.is_initialized():
        return
    got, expected = (weft.my_pe(), weft.n_pes()), (dist.get_rank(), dist.get_world_size())
    if got != expected:
        raise RuntimeError(
            f"weft.torch: this process is PE {got[0]} of {got[1]}, but rank {expected[0]} of "
            f"{expected[1]} in torch.distributed: expected the same numbers; start both by one "
            "launcher, or call weft.init() after init_process_group()")


def _global_ranks(process_group):
    if process_group in c10d._world.pg_group_ranks:
        return dist.get_process_group_ranks(process_group)
    return range(process_group.size())


def kept_team(pes, tag):
    """Returns the team of these PEs and this tag. The first call is collective over the PEs."""
    if (pes, tag) not in _teams:
        whole = pes == tuple(range(weft.n_pes())) and tag == zlib.crc32(b"0")
        _teams[pes, tag] = weft.world if whole else weft.team(list(pes), tag=tag)
    return _teams[pes, tag]
