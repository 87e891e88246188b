# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the arguments of deep_ep.py. Each function raises an exception, or returns the facts that must be the same
on all ranks, as a text.
"""
import torch

SUMMED = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
NARROWED = (torch.bfloat16, torch.float16, torch.float32)
TOP_K_MAX = 16


def tensor(name, value, shape, *dtypes):
    """Checks a tensor's shape, in which None is any size, and its type, if there are dtypes."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"got {name} of type {type(value).__name__}, expected a torch.Tensor")
    if value.dim() != len(shape) or any(size not in (None, got) for size, got in zip(shape, value.shape)):
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"got {name} of shape {list(value.shape)}, expected [{wanted}]")
    if dtypes and value.dtype not in dtypes:
        raise ValueError(f"got {name} of {value.dtype}, expected {' or '.join(map(str, dtypes))}")
    return value


def none(why, **arguments):
    """Checks that arguments without a counterpart in Weft are absent."""
    for name, value in arguments.items():
        if value is not None and value is not False:
            raise NotImplementedError(f"got {name}, expected no such argument: {why}")


def indices(topk_idx, ntokens, num_experts, ranks):
    """Checks top-k indices: their values only on the CPU, because reading them would wait for a GPU."""
    tensor("topk_idx", topk_idx, (ntokens, None), torch.int64, torch.int32)
    if num_experts <= 0 or num_experts % ranks:
        raise ValueError(f"got num_experts {num_experts}, expected a multiple of the group's {ranks} ranks")
    if not topk_idx.is_cuda and topk_idx.numel():
        least, most = (value.item() for value in topk_idx.aminmax())
        if least < -1 or most >= num_experts:
            raise ValueError(f"got topk_idx {least} to {most}, expected -1 to {num_experts - 1}")


def rows(x):
    """Returns rows and scales of the argument x of dispatch()."""
    if not isinstance(x, tuple):
        return tensor("x", x, (None, None)), None
    if len(x) != 2:
        raise ValueError(f"got a tuple x of {len(x)} elements, expected rows and scales")
    data = tensor("x[0]", x[0], (None, None))
    return data, tensor("x[1]", x[1], (data.shape[0], None), torch.float32, torch.int32)


def dispatch(x, ranks, num_tokens_per_rank, is_token_in_rank, num_tokens_per_expert, topk_idx, topk_weights,
             expert_alignment, num_worst_tokens):
    data, scales = rows(x)
    for name, value in (("num_tokens_per_rank", num_tokens_per_rank), ("is_token_in_rank", is_token_in_rank),
                        ("num_tokens_per_expert", num_tokens_per_expert)):
        if value is None:
            raise ValueError(f"got no {name}, expected that of get_dispatch_layout(), or a handle")
    ntokens = data.shape[0]
    tensor("num_tokens_per_rank", num_tokens_per_rank, (ranks,), torch.int32)
    tensor("is_token_in_rank", is_token_in_rank, (ntokens, ranks), torch.bool)
    experts = tensor("num_tokens_per_expert", num_tokens_per_expert, (None,), torch.int32).shape[0]
    if (topk_idx is None) != (topk_weights is None):
        raise ValueError("got one of topk_idx and topk_weights, expected both or neither")
    if topk_idx is not None:
        indices(topk_idx, ntokens, experts, ranks)
        tensor("topk_weights", topk_weights, tuple(topk_idx.shape), torch.float32)
    elif num_worst_tokens > 0 or experts % ranks:
        raise ValueError(f"got num_worst_tokens {num_worst_tokens} and {experts} experts for {ranks} ranks without topk_idx")
    if expert_alignment < 1 or num_worst_tokens < 0:
        raise ValueError(f"got expert_alignment {expert_alignment} and num_worst_tokens {num_worst_tokens}, expected at "
                         "least 1 and 0")
    if ranks > TOP_K_MAX and not data.is_cuda and ntokens and is_token_in_rank.sum(1).max() > TOP_K_MAX:
        raise NotImplementedError(f"got a token for more than {TOP_K_MAX} ranks in is_token_in_rank")
    top_k = "no" if topk_idx is None else topk_idx.shape[1]
    return f"{like(data, scales)}, {experts} experts, {top_k} topk_idx, {'a' if num_worst_tokens else 'no'} worst number"


def like(data, scales):
    return f"{data.shape[1]} x {data.dtype}, {0 if scales is None else scales.shape[1]} scales"


def cached(x, handle, topk_idx, topk_weights):
    data, scales = rows(x)
    if topk_idx is not None or topk_weights is not None:
        raise ValueError("got topk_idx or topk_weights beside a handle, expected neither")
    if data.shape[0] != handle.experts.shape[0]:
        raise ValueError(f"got {data.shape[0]} tokens, expected {handle.experts.shape[0]}, as in the call that made the handle")
    return f"{like(data, scales)}, a handle for {handle.tokens_max} tokens"


def combine(x, handle, topk_weights, bias):
    tensor("x", x, (handle.nrows, None), *SUMMED)
    if topk_weights is not None:
        tensor("topk_weights", topk_weights, (handle.nrows, None), torch.float32)
    for each in bias:
        tensor("bias", each, (handle.experts.shape[0], x.shape[1]), x.dtype)
    weights = "no" if topk_weights is None else topk_weights.shape[1]
    return f"{like(x, None)}, {weights} topk_weights, a handle for {handle.tokens_max} tokens"


def handle_of(kind, handle):
    if not isinstance(handle, kind):
        raise TypeError(f"got handle of type {type(handle).__name__}, expected the one that this mode's dispatch returned")


def events(async_finish, return_recv_hook):
    if async_finish and return_recv_hook:
        raise ValueError("got async_finish and return_recv_hook, expected one of them")


def low_latency_dispatch(x, topk_idx, tokens_max, num_experts, ranks, stats, use_fp8, round_scale, use_ue8m0):
    tensor("x", x, (None, None), *NARROWED)
    indices(topk_idx, x.shape[0], num_experts, ranks)
    unit = 512 if use_fp8 and use_ue8m0 else 128
    if x.shape[1] % unit:
        raise ValueError(f"got a hidden size of {x.shape[1]}, expected a multiple of {unit}")
    if x.shape[0] > tokens_max:
        raise ValueError(f"got {x.shape[0]} tokens, expected at most num_max_dispatch_tokens_per_rank, {tokens_max}")
    if use_ue8m0 and not (use_fp8 and round_scale):
        raise ValueError("got use_ue8m0, expected use_fp8 and round_scale with it")
    if stats is not None:
        tensor("cumulative_local_expert_recv_stats", stats, (num_experts // ranks,), torch.int32)
    if not x.is_cuda and repeats(topk_idx):
        raise ValueError("got topk_idx with an expert twice for one token, expected different experts")
    return (f"{like(x, None)}, {num_experts} experts, {topk_idx.shape[1]} topk_idx, {tokens_max} tokens at most, "
            f"{use_fp8=}, {round_scale=}, {use_ue8m0=}")


def repeats(topk_idx):
    """Returns whether a token has an expert twice."""
    ordered = topk_idx.sort(1).values
    return bool(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any())


def low_latency_combine(x, topk_idx, topk_weights, handle, zero_copy, out):
    if zero_copy and handle.next is None:
        raise ValueError("got zero_copy, expected a call of get_next_low_latency_combine_buffer() before")
    x = handle.next if zero_copy else x
    tensor("x", x, (handle.each, handle.room, handle.hidden), *NARROWED)
    shape = tuple(handle.experts.shape)
    tensor("topk_idx", topk_idx, shape, torch.int64, torch.int32)
    tensor("topk_weights", topk_weights, shape, torch.float32)
    if out is not None:
        tensor("out", out, (shape[0], handle.hidden), x.dtype)
    return f"{like(x, None)}, {handle.num_experts} experts, {handle.top_k} topk_idx, {handle.tokens_max} tokens at most"
