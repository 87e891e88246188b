# SPDX-License-Identifier: BSD-3-Clause
"""PEs that are also ranks of torch.distributed over gloo, which computes references; and groups.

    @on_groups                              one run for each of GROUPS, in the members only, which
    def test_it(group): ...                 get the process group

    @on_world                               the same for the group of all

    @property_test(40, size=integers(0, 9))
    def test_it(group, size): ...           cases of hypothesis, the same on all PEs: 40 with
                                            WEFT_TEST_LONG=1, else a third

With WEFT_TEST_BACKEND=1, CPU tensors use PyTorch's registry, as after weft.torch.install().

All PEs go through the same tests together (run.py). A property that does not hold ends its PE immediately, and so the
job: hypothesis would try again, on that PE alone.
"""
import functools
import os
import sys
import traceback

import hypothesis
import hypothesis.strategies as strategies
import pytest
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

import weft
import weft.torch

ME, RANKS = weft.my_pe(), weft.n_pes()
GROUPS = [ranks for ranks in ([0], [1, 0], [0, 2], [2, 0, 1], [3, 1])
          if max(ranks) < RANKS and len(ranks) < RANKS] + [list(range(RANKS))]
_groups = {}


def _begin():
    torch.set_num_threads(1)
    weft.torch.init_process_group("gloo")
    if os.environ.get("WEFT_TEST_BACKEND"):
        weft.torch.install()


def group_of_ranks(ranks):
    """A process group of these ranks in this order, which new_group() would sort; None on others.
    All PEs call."""
    key = tuple(ranks)
    if key not in _groups:
        _groups[key] = _new_group(list(ranks))
    return _groups[key]


def _new_group(ranks):
    if ranks == list(range(RANKS)):
        return dist.group.WORLD
    if ME not in ranks:
        return None
    return named_group("ranks-" + "-".join(map(str, ranks)), ranks)


def named_group(name, ranks, turn=0):
    """Made by its members alone, for the turn-th time under this name."""
    me = ranks.index(ME)
    store = dist.PrefixStore(f"{name}/{turn}", c10d._get_default_store())
    group = dist.ProcessGroup(store, me, len(ranks))
    gloo = dist.ProcessGroupGloo(store, me, len(ranks), c10d.default_pg_timeout)
    group._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO, gloo)
    group._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
    group._set_group_name(name)
    c10d._register_process_group(name, group)
    c10d._world.pg_map[group] = ("gloo", store)
    c10d._world.pg_names[group] = name
    c10d._world.pg_group_ranks[group] = {rank: at for at, rank in enumerate(ranks)}
    return group


def on_groups(test):
    @pytest.mark.parametrize("ranks", GROUPS, ids=lambda ranks: "".join(map(str, ranks)))
    def run(ranks):
        group = group_of_ranks(ranks)
        if group is not None:
            test(group)
    return run


def on_world(test):
    def run():
        test(group_of_ranks(list(range(RANKS))))
    return run


def property_test(examples, **given):
    def decorate(test):
        def run(ranks, **arguments):
            group = group_of_ranks(ranks)
            if group is None:
                return
            try:
                test(group, **arguments)
            except BaseException:
                print(f"PE {ME}: {test.__name__}, group {ranks}: {arguments}\n",
                      traceback.format_exc(), file=sys.__stderr__, flush=True)
                os._exit(1)
        run.__name__ = test.__name__
        cases = examples if os.environ.get("WEFT_TEST_LONG") else examples // 3
        alike = hypothesis.settings(max_examples=cases, derandomize=True, database=None,
                                    deadline=None, phases=[hypothesis.Phase.generate])
        return alike(hypothesis.given(ranks=strategies.sampled_from(GROUPS), **given)(run))
    return decorate


def raises(kind, text, function, *args, **kwargs):
    with pytest.raises(kind, match=text):
        function(*args, **kwargs)


def same(got, expected):
    """One layout and one value: sizes, strides, type, and every bit."""
    assert (got.shape, got.stride(), got.dtype) == (
        expected.shape, expected.stride(), expected.dtype)
    assert torch.equal(got.contiguous().view(torch.uint8) if got.numel() and got.dim() else got,
                       expected.contiguous().view(torch.uint8)
                       if got.numel() and got.dim() else expected)


def seeded(seed, group, each=True):
    """Returns a random generator: different on each rank, or the same on all."""
    return torch.Generator().manual_seed(1000 * seed + (group.rank() if each else 500))


_begin()
partial = functools.partial
