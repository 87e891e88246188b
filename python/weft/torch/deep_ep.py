# SPDX-License-Identifier: BSD-3-Clause
"""DeepEP's interface for mixtures of experts. A program that uses deep_ep.Buffer runs after a change of its import:

    from weft.torch.deep_ep import Buffer, Config, EventOverlap

Normal mode sends a token once to each rank that has experts of it; low-latency mode sends it to each expert, in padded
rows, and no host waits. Both take CUDA tensors and CPU tensors. Below both are dispatch and combine of weft.torch.moe.
Arguments that only tune DeepEP's kernels are accepted and have no effect; arguments that Weft has no counterpart for
raise NotImplementedError. docs/torch.md lists both.

A wrong argument of a rank is an exception on that rank. The other ranks raise ValueError, which names the rank, in all
calls on CPU tensors and in a dispatch() without a handle; in other calls on CUDA tensors their streams wait.
"""
import dataclasses

import torch

from weft.torch import _deep_ep_checks as checks
from weft.torch import _deep_ep_formats as formats
from weft.torch import moe
from weft.torch._agreement import agree, exchange
from weft.torch._deep_ep_events import Communication, EventHandle, EventOverlap, finish
from weft.torch._groups import group_of

topk_idx_t = torch.int64

_NO_MASKS = "Weft has no masks, because a rank that dies ends the job"
_NO_CLOCK = "Weft does not measure how long a rank waits"


@dataclasses.dataclass
class Config:
    """Sizes that tune DeepEP's kernels. They have no effect."""
    num_sms: int = 20
    num_max_nvl_chunked_send_tokens: int = 6
    num_max_nvl_chunked_recv_tokens: int = 256
    num_max_rdma_chunked_send_tokens: int = 6
    num_max_rdma_chunked_recv_tokens: int = 256

    def get_nvl_buffer_size_hint(self, hidden_bytes, num_ranks):
        """Returns 0: Weft allocates memory when a size is first used."""
        return 0

    def get_rdma_buffer_size_hint(self, hidden_bytes, num_ranks):
        """Returns 0: Weft allocates memory when a size is first used."""
        return 0


class Buffer:
    """Dispatches and combines among the ranks of a group. Expert e belongs to rank e // (num_experts // group_size).

    Memory is allocated when a size is first used, so the sizes in bytes have no effect, and neither have
    num_qps_per_rank, allow_nvlink_for_low_latency_mode and allow_mnnvl. Without explicitly_destroy the memory is kept
    until the job ends. Collective, like destroy(); all calls of a Buffer are made by all ranks, in the same order.
    """

    num_sms = 20

    def __init__(self, group, num_nvl_bytes=0, num_rdma_bytes=0, low_latency_mode=False, num_qps_per_rank=24,
                 allow_nvlink_for_low_latency_mode=True, allow_mnnvl=False, explicitly_destroy=False,
                 enable_shrink=False, comm=None):
        if comm is not None:
            raise NotImplementedError("Buffer: got comm, expected a process group of torch.distributed as group")
        if enable_shrink:
            raise NotImplementedError(f"Buffer: got enable_shrink: {_NO_MASKS}")
        if group is None:
            raise ValueError("Buffer: got no group, expected a process group of torch.distributed")
        self.group, self._members = group, group_of(group)
        self.rank, self.group_size = self._members.rank, self._members.size
        self.num_nvl_bytes, self.num_rdma_bytes = num_nvl_bytes, num_rdma_bytes
        self.low_latency_mode, self.explicitly_destroy, self.enable_shrink = low_latency_mode, explicitly_destroy, False
        self._layers, self._communication, self._on_gpu = {}, Communication(), False
        agree(self._members, "Buffer", None, f"low_latency_mode {bool(low_latency_mode)}")

    def destroy(self):
        """Frees the memory. Collective. RuntimeError if the Buffer was not made with explicitly_destroy."""
        if not self.explicitly_destroy:
            raise RuntimeError("Buffer.destroy: expected explicitly_destroy=True when the Buffer was made")
        layers, self._layers = self._open("destroy"), None
        for layer in layers.values():
            layer.destroy()

    # --- Settings --------------------------------------------------------------------------------

    @staticmethod
    def is_sm90_compiled():
        """Returns True: 8-bit floats are supported."""
        return True

    @staticmethod
    def set_num_sms(new_num_sms):
        """Sets Buffer.num_sms, which has no effect. ValueError for an odd number."""
        if new_num_sms % 2:
            raise ValueError(f"Buffer.set_num_sms: got {new_num_sms}, expected an even number")
        Buffer.num_sms = new_num_sms

    @staticmethod
    def get_dispatch_config(num_ranks):
        """Returns a Config, which has no effect, for any number of ranks."""
        return Config(Buffer.num_sms)

    @staticmethod
    def get_combine_config(num_ranks):
        """Returns a Config, which has no effect, for any number of ranks."""
        return Config(Buffer.num_sms)

    @staticmethod
    def get_low_latency_rdma_size_hint(num_max_dispatch_tokens_per_rank, hidden, num_ranks, num_experts):
        """Returns 0: Weft allocates memory when a size is first used."""
        return 0

    @staticmethod
    def capture():
        """Returns an EventOverlap for the current end of the current stream."""
        return EventOverlap(EventHandle())

    def get_comm_stream(self):
        """Returns the CUDA stream on which the calls for tensors on the current GPU run."""
        if not torch.cuda.is_available():
            raise NotImplementedError("Buffer.get_comm_stream: there is no GPU, and calls on CPU tensors use no stream")
        return self._communication.stream(torch.device("cuda", torch.cuda.current_device()))

    def get_local_buffer_tensor(self, dtype, size=None, offset=0, use_rdma_buffer=False):
        """Raises NotImplementedError: Weft shows no buffer of a Buffer."""
        raise NotImplementedError("Buffer.get_local_buffer_tensor: Weft's buffers are not tensors; "
                                  "weft.torch.empty() makes symmetric tensors")

    # --- Agreement, layers -----------------------------------------------------------------------

    def _open(self, call):
        if self._layers is None:
            raise RuntimeError(f"Buffer.{call}: this Buffer was destroyed")
        return self._layers

    def _check(self, call, x, check, *arguments, meets=False):
        """Raises the exception of check(*arguments); on other ranks ValueError, if the hosts communicate: for CPU tensors,
        and with `meets` for all."""
        self._open(call)
        complaint, facts = None, None
        try:
            facts = check(*arguments)
        except (TypeError, ValueError, NotImplementedError, RuntimeError) as error:
            complaint = error
        x = x[0] if isinstance(x, tuple) and x else x
        if isinstance(x, torch.Tensor):
            self._on_gpu = x.is_cuda
        if meets or not self._on_gpu:
            try:
                agree(self._members, f"Buffer.{call}", complaint and str(complaint), f"{call}: {facts}")
            except ValueError:
                if complaint is None:
                    raise
        if complaint is not None:
            raise type(complaint)(f"Buffer.{call}: {complaint}") from None

    def _layer(self, experts, top_k, cols, tokens_max, dtype, scales=None):
        """Returns the MoE of these sizes. The first call for a size is collective."""
        scale_cols = 0 if scales is None else scales.shape[1]
        key = experts, top_k, cols, tokens_max, dtype, scale_cols
        if key not in self._layers:
            self._layers[key] = moe.MoE(experts, top_k, cols, tokens_max, scale_cols=scale_cols, dtype=dtype,
                                        group=self._members)
        return self._layers[key]

    # --- Normal mode -----------------------------------------------------------------------------

    def get_dispatch_layout(self, topk_idx, num_experts, previous_event=None, async_finish=False,
                            allocate_on_comm_stream=False):
        """Counts this rank's tokens for each rank and expert. topk_idx: ntokens x topk, -1 for a slot without an expert.
        Local.

        Returns the tokens for each rank (int32), None, those for each expert (int32), whether each token is sent to each
        rank (bool, ntokens x ranks), and an event."""
        self._open("get_dispatch_layout")
        checks.tensor("topk_idx", topk_idx, (None, None))
        checks.indices(topk_idx, topk_idx.shape[0], num_experts, self.group_size)

        def work():
            used = topk_idx >= 0
            experts = torch.where(used, topk_idx, num_experts).long()
            ranks = torch.where(used, topk_idx // (num_experts // self.group_size), self.group_size).long()
            in_rank = used.new_zeros((topk_idx.shape[0], self.group_size + 1)).scatter_(1, ranks, True)
            in_rank = in_rank[:, :self.group_size].contiguous()
            flat = experts.view(-1)
            per_expert = flat.new_zeros(num_experts + 1).scatter_add_(0, flat, torch.ones_like(flat))
            return [in_rank.sum(0, dtype=torch.int32), per_expert[:num_experts].to(torch.int32), in_rank]

        (per_rank, per_expert, in_rank), event = self._communication.run(topk_idx.device, previous_event, work, [topk_idx])
        return per_rank, None, per_expert, in_rank, finish(event, async_finish)[0]

    def dispatch(self, x, handle=None, num_tokens_per_rank=None, num_tokens_per_rdma_rank=None, is_token_in_rank=None,
                 num_tokens_per_expert=None, topk_idx=None, topk_weights=None, expert_alignment=1, num_worst_tokens=0,
                 config=None, previous_event=None, async_finish=False, allocate_on_comm_stream=False):
        """Sends each token once to each rank that has experts of it. x: ntokens x hidden, or a tuple of such rows of 8 bits
        and their scales (float32 or int32). topk_idx, topk_weights (float32): ntokens x topk; both travel with the tokens.
        handle: that of an earlier call, whose routes and sizes are used again, in place of the other arguments.

        Returns the received tokens, by rank and token, a tuple if x is; their top-k indices as those of this rank's
        experts, -1 for experts of other ranks; their weights; a list of the tokens for each expert of this rank, rounded
        up to multiples of expert_alignment; the handle; an event. After a call with a handle all between are None.

        The host waits for the number of tokens, unless a handle or num_worst_tokens is passed. With num_worst_tokens the
        results have that many rows, indices of unused rows are -1, and the list is empty. Collective."""
        if handle is not None:
            return self._dispatch_again(x, handle, topk_idx, topk_weights, previous_event, async_finish)
        self._check("dispatch", x, checks.dispatch, x, self.group_size,
                    num_tokens_per_rank, is_token_in_rank, num_tokens_per_expert, topk_idx, topk_weights,
                    expert_alignment, num_worst_tokens, meets=True)
        data, scales = checks.rows(x)

        def work():
            experts = self._ranks_of(is_token_in_rank)
            tokens_max, nrows, counts = self._count(is_token_in_rank, num_tokens_per_expert, num_worst_tokens)
            columns = scales, None if topk_idx is None else topk_idx.to(torch.int32), topk_weights
            carried = formats.packed(*columns)
            layer = self._layer(self.group_size, experts.shape[1], data.shape[1], tokens_max, data.dtype, carried)
            rows = layer.dispatch(data.detach(), experts, scales=carried)
            back, *topk = formats.unpacked(None if carried is None else formats.resized(rows.scales, nrows), *columns)
            if topk_idx is not None:
                topk = formats.local_topk(*topk, num_tokens_per_expert.shape[0] // self.group_size, self.rank)
                topk = topk[0].to(topk_idx.dtype), topk[1]
            if num_worst_tokens:
                torch._assert_async(rows.offsets[-1] <= nrows, f"Buffer.dispatch: got num_worst_tokens {nrows}, expected "
                                                               "at least the number of received tokens")
                unused = torch.arange(nrows, device=data.device) >= rows.offsets[-1]
                topk = topk[0].masked_fill(unused[:, None], -1), topk[1]
            return [formats.resized(rows.data, nrows), back, *topk, experts, rows.sources, rows.offsets, tokens_max, nrows, counts]

        inputs = [data, scales, is_token_in_rank, num_tokens_per_expert, topk_idx, topk_weights]
        results, event = self._communication.run(data.device, previous_event, work, inputs)
        received, back, topk, weights, experts, sources, offsets, tokens_max, nrows, counts = results
        aligned = [-(-count // expert_alignment) * expert_alignment for count in counts]
        return (received if scales is None else (received, back), topk, weights, aligned,
                formats.Handle(experts, sources, offsets, tokens_max, nrows), finish(event, async_finish)[0])

    def _ranks_of(self, is_token_in_rank):
        """Returns the ranks of each token, as the experts of a MoE whose experts are the ranks: -1 for unused slots."""
        ranks = torch.arange(self.group_size, dtype=torch.int32, device=is_token_in_rank.device)
        experts = torch.where(is_token_in_rank, ranks, -1)
        if self.group_size <= checks.TOP_K_MAX:
            return experts
        torch._assert_async((is_token_in_rank.sum(1) <= checks.TOP_K_MAX).all(),
                            f"Buffer.dispatch: got a token for more than {checks.TOP_K_MAX} ranks in is_token_in_rank")
        return experts.topk(checks.TOP_K_MAX, 1).values

    def _count(self, is_token_in_rank, num_tokens_per_expert, num_worst_tokens):
        """Returns tokens_max of the MoE, the rows of the results, and the tokens of each expert of this rank. The hosts
        exchange these numbers."""
        size, each = self.group_size, num_tokens_per_expert.shape[0] // self.group_size
        if num_worst_tokens:
            numbers = [0] * (size + size * each)
        else:
            numbers = torch.cat([is_token_in_rank.sum(0), num_tokens_per_expert]).tolist()
        ntokens = is_token_in_rank.shape[0]
        table = exchange(self._members, [(ntokens, numbers[rank], *numbers[size + rank * each:size + (rank + 1) * each])
                                         for rank in range(size)])
        totals = [sum(column) for column in zip(*table)]
        # A power of two, so that calls with different numbers of tokens share a MoE.
        tokens_max = 1 << (max(1, *(row[0] for row in table)) - 1).bit_length()
        return (tokens_max, num_worst_tokens, []) if num_worst_tokens else (tokens_max, totals[1], totals[2:])

    def _dispatch_again(self, x, handle, topk_idx, topk_weights, previous_event, async_finish):
        def check():
            checks.handle_of(formats.Handle, handle)
            return checks.cached(x, handle, topk_idx, topk_weights)

        self._check("dispatch", x, check)
        data, scales = checks.rows(x)

        def work():
            carried = formats.packed(scales)
            layer = self._layer(self.group_size, handle.experts.shape[1], data.shape[1], handle.tokens_max, data.dtype,
                                carried)
            rows = layer.dispatch(data.detach(), handle.experts, scales=carried)
            back = None if scales is None else formats.resized(rows.scales, handle.nrows).view(scales.dtype)
            return [formats.resized(rows.data, handle.nrows), back]

        (received, back), event = self._communication.run(data.device, previous_event, work,
                                                          [data, scales, *handle.tensors()])
        return received if scales is None else (received, back), None, None, None, None, finish(event, async_finish)[0]

    def combine(self, x, handle, topk_weights=None, bias=None, config=None, previous_event=None, async_finish=False,
                allocate_on_comm_stream=False):
        """Adds each token's rows from all ranks. x: a row for each received token; topk_weights (float32): weights of each
        received token, which are added likewise; bias: nothing, or one or two tensors like the result, to be added.

        Returns the sums, ntokens x hidden, the sums of the weights or None, and an event. Sums are computed in 32 bits
        (float64: in 64) and rounded once, with a bias twice. Collective."""
        biases = bias if isinstance(bias, (tuple, list)) else (() if bias is None else (bias,))

        def check():
            checks.handle_of(formats.Handle, handle)
            return checks.combine(x, handle, topk_weights, biases)

        self._check("combine", x, check)

        def work():
            rows = moe.Rows(None, None, None, handle.sources, handle.offsets, handle.experts)
            sums = [values if values is None else
                    self._layer(self.group_size, handle.experts.shape[1], values.shape[1], handle.tokens_max,
                                values.dtype).combine(values.detach(), rows) for values in (x, topk_weights)]
            if biases:
                wide = torch.promote_types(x.dtype, torch.float32)
                sums[0] = sum((each.to(wide) for each in biases), sums[0].to(wide)).to(x.dtype)
            return sums

        sums, event = self._communication.run(x.device, previous_event, work,
                                              [x, topk_weights, *biases, *handle.tensors()])
        return *sums, finish(event, async_finish)[0]

    # --- Low-latency mode ------------------------------------------------------------------------

    def clean_low_latency_buffer(self, num_max_dispatch_tokens_per_rank, hidden, num_experts):
        """Does nothing: calls leave nothing to clean."""
        self._open("clean_low_latency_buffer")

    def _check_low_latency(self):
        if not self.low_latency_mode:
            raise RuntimeError("got a Buffer for normal mode, expected low_latency_mode=True when it was made")

    def low_latency_dispatch(self, x, topk_idx, num_max_dispatch_tokens_per_rank, num_experts,
                             cumulative_local_expert_recv_stats=None, dispatch_wait_recv_cost_stats=None, use_fp8=True,
                             round_scale=False, use_ue8m0=False, async_finish=False, return_recv_hook=False):
        """Sends each token to its experts. x: ntokens x hidden, of 16 or 32 bits; topk_idx: ntokens x topk, -1 for a slot
        without an expert. Every rank has at most num_max_dispatch_tokens_per_rank tokens. The number of received tokens
        of each expert is also added to cumulative_local_expert_recv_stats (int32).

        Returns the received tokens, experts of this rank x (ranks * num_max_dispatch_tokens_per_rank) x hidden, by rank
        and token; the number of tokens of each expert (int32); the handle; an event; a hook or None. Rows after an
        expert's tokens have any values. With use_fp8 the first result is a tuple: tokens as float8_e4m3fn, and a factor
        for each 128 elements (float32), experts x rows x hidden / 128, of which the rows are adjacent in memory.
        round_scale: factors are powers of two. use_ue8m0: four of their exponents in each int32.

        Tokens arrive on the communication stream. The hook makes the current stream wait for it. Collective."""
        most, sender = num_max_dispatch_tokens_per_rank, self.group_size

        def check():
            self._check_low_latency()
            checks.none(_NO_CLOCK, dispatch_wait_recv_cost_stats=dispatch_wait_recv_cost_stats)
            checks.events(async_finish, return_recv_hook)
            return checks.low_latency_dispatch(x, topk_idx, most, num_experts, sender, cumulative_local_expert_recv_stats,
                                               use_fp8, round_scale, use_ue8m0)

        self._check("low_latency_dispatch", x, check)
        each, room = num_experts // sender, sender * most

        def work():
            data, scales = formats.to_f8(x.detach(), round_scale, use_ue8m0) if use_fp8 else (x.detach(), None)
            carried = formats.packed(scales)
            experts = topk_idx.to(torch.int32).contiguous()
            layer = self._layer(num_experts, experts.shape[1], data.shape[1], most, data.dtype, carried)
            rows = layer.dispatch(data, experts, scales=carried)
            places = formats.places_of(rows.offsets, layer.rows_max, room)
            counts = rows.offsets[1:] - rows.offsets[:-1]
            if cumulative_local_expert_recv_stats is not None:
                cumulative_local_expert_recv_stats.add_(counts)
            padded = None if scales is None else formats.pad_scales(rows.scales.view(scales.dtype), places, each, room)
            return [formats.pad(rows.data, places, each, room), padded, counts, experts, rows.sources, rows.offsets, places]

        results, event = self._communication.run(x.device, None, work, [x, topk_idx, cumulative_local_expert_recv_stats])
        received, scales, counts, *routes = results
        handle = formats.PaddedHandle(*routes, sender, most, x.shape[1], num_experts, x.dtype)
        return received if scales is None else (received, scales), counts, handle, *finish(event, async_finish,
                                                                                           return_recv_hook)

    def low_latency_combine(self, x, topk_idx, topk_weights, handle, use_logfmt=False, zero_copy=False,
                            async_finish=False, return_recv_hook=False, out=None, combine_wait_recv_cost_stats=None):
        """Adds each token's rows from its experts, times topk_weights (float32, like topk_idx). x: the results, in the shape
        of the received tokens; with zero_copy those in get_next_low_latency_combine_buffer(handle). topk_idx: that of the
        dispatch. out: the tensor for the result.

        Returns the sums, ntokens x hidden, computed in 32 bits and rounded once; an event; a hook or None. Collective."""
        def check():
            self._check_low_latency()
            checks.none(_NO_CLOCK, combine_wait_recv_cost_stats=combine_wait_recv_cost_stats)
            checks.none("Weft sends rows in their own type", use_logfmt=use_logfmt)
            checks.events(async_finish, return_recv_hook)
            checks.handle_of(formats.PaddedHandle, handle)
            return checks.low_latency_combine(x, topk_idx, topk_weights, handle, zero_copy, out)

        self._check("low_latency_combine", x, check)
        results = handle.next if zero_copy else x

        def work():
            # Only the token's rank knows the weights, so rows return unsummed: every slot of a token becomes a token with
            # one expert. Its source, (rank * tokens_max + token) * top_k + slot, is the same number either way.
            compact, top_k = formats.unpad(results.detach(), handle.places), handle.top_k
            layer = self._layer(handle.num_experts, 1, handle.hidden, handle.tokens_max * top_k, compact.dtype)
            slots = layer.combine(compact, moe.Rows(None, None, None, handle.sources, handle.offsets,
                                                    handle.experts.view(-1, 1)))
            factors = topk_weights.masked_fill(topk_idx < 0, 0)[:, :, None]
            sums = (slots.view(-1, top_k, handle.hidden).float() * factors).sum(1).to(results.dtype)
            return [sums if out is None else out.copy_(sums)]

        inputs = [results, topk_idx, topk_weights, out, handle.experts, handle.sources, handle.offsets, handle.places]
        (combined,), event = self._communication.run(results.device, None, work, inputs)
        return combined, *finish(event, async_finish, return_recv_hook)

    def get_next_low_latency_combine_buffer(self, handle):
        """Returns the tensor for the results that low_latency_combine(handle=handle, zero_copy=True) sends: experts of this
        rank x (ranks * num_max_dispatch_tokens_per_rank) x hidden. Local."""
        self._open("get_next_low_latency_combine_buffer")
        checks.handle_of(formats.PaddedHandle, handle)
        if handle.next is None:
            handle.next = torch.empty((handle.each, handle.room, handle.hidden), dtype=handle.dtype,
                                      device=handle.sources.device)
        return handle.next

    def low_latency_update_mask_buffer(self, rank_to_mask, mask=False):
        """Raises NotImplementedError: a rank that dies ends the job."""
        raise NotImplementedError(f"Buffer.low_latency_update_mask_buffer: {_NO_MASKS}")

    def low_latency_query_mask_buffer(self, mask_status):
        """Raises NotImplementedError: a rank that dies ends the job."""
        raise NotImplementedError(f"Buffer.low_latency_query_mask_buffer: {_NO_MASKS}")

    def low_latency_clean_mask_buffer(self):
        """Raises NotImplementedError: a rank that dies ends the job."""
        raise NotImplementedError(f"Buffer.low_latency_clean_mask_buffer: {_NO_MASKS}")
