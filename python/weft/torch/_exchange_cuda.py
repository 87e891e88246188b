# SPDX-License-Identifier: BSD-3-Clause
"""all_to_all by copies from the peers' workspaces, on any device; on the CPU weft.all_to_allv does the same in one
call.

The sizes pass through the host, which waits for the stream, so a CUDA graph cannot capture the call.
"""
import itertools

import torch

from weft.torch._workspace import get_symm_mem_workspace


def exchange_sizes(gather, sent, taken, device):
    """Returns the sizes that all members send and receive: [(sent, taken), ...]. gather(t): (members, *t.shape)."""
    table = gather(torch.tensor([sent, taken], device=device)).tolist()
    _check(table)
    return table


def exchange(table, group, dest, taken, source, sent):
    """Sends sent[r] rows of source to rank r, and receives taken[r] rows from it."""
    rows_max = max(sum(rows) for rows, _ in table)
    row_bytes = source.shape[1:].numel() * source.element_size()
    handle = get_symm_mem_workspace(group.name, max(rows_max * row_bytes, 1), source.device)
    at = [handle.get_buffer(peer, (rows_max, *source.shape[1:]), source.dtype)
          for peer in range(group.size)]
    handle.barrier()
    at[group.rank][:len(source)].copy_(source)
    handle.barrier()
    dest_begins = _begins(taken)
    for step in range(group.size):
        peer = (group.rank + step) % group.size
        begin, rows = _begins(table[peer][0])[group.rank], taken[peer]
        dest[dest_begins[peer]:dest_begins[peer] + rows].copy_(at[peer][begin:begin + rows])
    handle.barrier()


def _begins(counts):
    return [0, *itertools.accumulate(counts[:-1])]


def _check(table):
    """All members check all sizes, so an error is raised on all of them."""
    for sender, (sent, _) in enumerate(table):
        for receiver, (_, taken) in enumerate(table):
            if sent[receiver] != taken[sender]:
                raise ValueError(f"all_to_all: got {sent[receiver]} rows from rank {sender}, "
                                 f"expected {taken[sender]} on rank {receiver}")
