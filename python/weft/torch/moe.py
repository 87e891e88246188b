# SPDX-License-Identifier: BSD-3-Clause
"""Mixtures of experts: sends tokens to the ranks that have their experts, and adds the experts' results.

    moe = weft.torch.moe.MoE(experts=64, top_k=2, cols=512, tokens_max=256, group=group)
    weights, experts = router(x).softmax(1).topk(2)
    rows = moe.dispatch(x, experts, weights)
    results = torch.cat([ffn(part) for ffn, part in zip(my_experts, rows.split())])
    y = moe.combine(results, rows)               # y[t] = sum over t's experts of weight * result

Both have gradients, and can be compiled. The sums have the same bits in every run.
"""
import torch

import weft
from weft.torch import _library, _moe  # noqa: F401
from weft.torch._check import check_tensor
from weft.torch._groups import by_either_name, group_of


class Rows:
    """The rows for this rank's experts, sorted by expert; those of one expert by rank, token and slot.

    data: rows_max x cols. On the CPU, what is after the last row is zero; on a GPU it is not written.
    weights, scales: of the rows, or None.
    offsets: int32; expert e's rows are offsets[e] to offsets[e + 1].
    sources: int32, (rank * tokens_max + token) * top_k + slot; on the CPU -1 after the last row.
    experts: the experts of this rank's tokens.
    """

    def __init__(self, data, weights, scales, sources, offsets, experts):
        self.data, self.weights, self.scales = data, weights, scales
        self.sources, self.offsets, self.experts = sources, offsets, experts

    def split(self, tensor=None):
        """Returns each expert's rows of `tensor`, or of data. Waits for a GPU."""
        bounds = self.offsets.tolist()
        whole = self.data if tensor is None else tensor
        return [whole[begin:end] for begin, end in zip(bounds, bounds[1:])]


class MoE:
    """Dispatches and combines among the ranks of a group. Expert e belongs to rank e // (experts // size).

    top_k: slots of a token. cols: elements of a token. tokens_max: the most tokens of a rank in a call. rows_max: the
    most rows that a rank receives in a call (0: enough for all tokens whose experts are all different). scale_cols:
    scales of a token, for types of 8 bits. dtype: the widest type of tokens and results.

    Collective, like destroy(). ValueError on all ranks if one passes something wrong.
    """

    def __init__(self, experts, top_k, cols, tokens_max, *, rows_max=0, scale_cols=0, dtype=torch.float32, group=None):
        self.group = group_of(torch.distributed.group.WORLD if group is None else group)
        self._moe = weft.MoE(experts, top_k, cols, tokens_max, rows_max, scale_cols, dtype=dtype, team=self.group.team)
        self._number = _moe.register(self._moe)
        self.top_k, self.rows_max, self.experts_each = top_k, self._moe.rows_max, self._moe.experts_each

    @by_either_name
    def dispatch(self, x, experts, weights=None, scales=None):
        """Sends each token's row to its experts. x: ntokens x cols; experts: ntokens x top_k, of any integer type, -1 for a
        slot without an expert; weights: ntokens x top_k; scales: ntokens x scale_cols, float32. Returns Rows.

        Collective. RuntimeError on all ranks if one would receive more than rows_max rows."""
        check_tensor("MoE.dispatch", "x", x)
        experts = check_tensor("MoE.dispatch", "experts", experts).to(torch.int32)
        weights = None if weights is None else weights.to(torch.float32)
        data, row_weights, row_scales, sources, offsets = torch.ops.weft.moe_dispatch(
            x, experts, weights, scales, self._number)
        return Rows(data, None if weights is None else row_weights, None if scales is None else row_scales, sources,
                    offsets, experts)

    @by_either_name
    def combine(self, results, rows):
        """Returns for each token of this rank the sum of its experts' results, times their weights if they were sent.
        results: the experts' results in the order of rows.data, which may end with the last row.

        Collective."""
        check_tensor("MoE.combine", "results", results)
        tokens, _ = torch.ops.weft.moe_combine(results, rows.weights, None, rows.experts, rows.sources, rows.offsets,
                                               self._number)
        return tokens

    def destroy(self):
        """Collective."""
        _moe.forget(self._number).destroy()
