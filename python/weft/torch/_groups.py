# SPDX-License-Identifier: BSD-3-Clause
"""Process groups as Weft sees them: members are PEs, in the group's order, and have a team.

A group is known by its name, and by the process group that has the name now: names are given again
after destroy_process_group(). Nothing here keeps a process group, whose threads end with it: gloo's
abort a process that ends while they go on. Teams are kept for the life of the process, by members and
name, so that a group made again takes its old team and nobody has to say goodbye.
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
    """rank and size as in the process group; pes[i] is the PE of its rank i; tag is the same on all
    members and tells its calls from those of other groups of the same PEs."""

    def __init__(self, name, process_group):
        self.name = name
        self.process_group = weakref.ref(process_group)
        self.rank = process_group.rank()
        self.size = process_group.size()
        self.pes = tuple(_global_ranks(process_group))
        self.tag = zlib.crc32(name.encode())
        self.kernels = None  # _kernels.py: up to which size, by operation, once it has asked
        self._team = None

    @property
    def team(self):
        """Made at its first use, which is collective over the group."""
        if self._team is None:
            self._team = _team(self.pes, self.tag)
        return self._team


CHECKED = os.environ.get("SHMEM_DEBUG", "0") not in ("", "0")
_groups = {}
_teams = {}


def group_of(group):
    """The Group of a name or a ProcessGroup; this process is one of its members."""
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
        raise TypeError(f"unsupported group type: {type(group)}: got what torch.distributed gives to who is "
                        "no member of the group: this rank is none, and makes no calls of it")
    raise TypeError(f"unsupported group type: {type(group)}; expected a name, a "
                    "torch.distributed.ProcessGroup or a DeviceMesh of one dimension")


def _name_of_mesh(mesh):
    if mesh.ndim != 1:
        names = mesh.mesh_dim_names
        how = f"mesh[{names[-1]!r}]" if names else "mesh.get_group(dim)"
        named = f" {names}" if names else ""
        raise TypeError(f"group: got a DeviceMesh of {mesh.ndim} dimensions{named}, expected one dimension, such as {how}")
    if mesh.get_coordinate() is None:
        raise TypeError(f"group: got {mesh}, which rank {dist.get_rank()} is not in: it makes no calls on this mesh")
    return mesh.get_group().group_name


def _refuse_dtensors(call, given):
    for each in given:
        if isinstance(each, (list, tuple)):
            _refuse_dtensors(call, each)
        elif hasattr(each, "redistribute"):
            raise TypeError(f"{call}: got a DTensor, expected this rank's own tensor: pass x.to_local(); or call "
                            "x.redistribute(), which communicates by itself")


def by_either_name(function):
    """What functions call `group`, PyTorch's operators call `group_name`: both are taken. Tensors are the ranks' own:
    TypeError for a DTensor."""
    @functools.wraps(function)
    def call(*args, **named):
        _refuse_dtensors(function.__name__, args)
        _refuse_dtensors(function.__name__, named.values())
        if "group_name" in named:
            if "group" in named:
                raise TypeError(f"{function.__name__}: got group and group_name, expected one of them")
            named["group"] = named.pop("group_name")
        return function(*args, **named)
    return call


def init_process_group(backend=None, **options):
    """torch.distributed.init_process_group() under any launcher; returns the group of all. What
    torchrun has started meets as torchrun says. PEs of oshrun, mpirun or srun, and a process that
    nobody launched, get the rank of their PE, and meet through Weft, also over hosts. backend: nccl where
    there is a GPU, else gloo; with nccl this rank's GPU becomes the current device. Other options are passed on.
    Collective over the job."""
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
    """A PE is the rank of the same number, also where Weft was started before torch.distributed."""
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


def _team(pes, tag):
    if (pes, tag) not in _teams:
        whole = pes == tuple(range(weft.n_pes())) and tag == zlib.crc32(b"0")
        _teams[pes, tag] = weft.world if whole else weft.team(list(pes), tag=tag)
    return _teams[pes, tag]
