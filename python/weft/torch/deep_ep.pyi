# SPDX-License-Identifier: BSD-3-Clause
import dataclasses
from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

topk_idx_t: torch.dtype

class EventHandle:
    event: torch.cuda.Event | None
    def __init__(self, stream: torch.cuda.Stream | None = None) -> None: ...
    def current_stream_wait(self) -> None: ...

class EventOverlap:
    event: EventHandle | None
    extra_tensors: tuple[Tensor, ...] | None
    hook_after_wait: Callable[[], object] | None
    def __init__(
        self, event: EventHandle | None = None, extra_tensors: tuple[Tensor, ...] | None = None
    ) -> None: ...
    def current_stream_wait(self, release_handle: bool = False) -> None: ...
    def register_hook_after_wait(self, hook_after_wait: Callable[[], object]) -> None: ...
    def __call__(self, release_handle: bool = False) -> EventOverlap: ...
    def __enter__(self) -> EventOverlap: ...
    def __exit__(
        self, *_: type[BaseException] | BaseException | TracebackType | None
    ) -> None: ...

@dataclasses.dataclass
class Config:
    num_sms: int = 20
    num_max_nvl_chunked_send_tokens: int = 6
    num_max_nvl_chunked_recv_tokens: int = 256
    num_max_rdma_chunked_send_tokens: int = 6
    num_max_rdma_chunked_recv_tokens: int = 256
    def get_nvl_buffer_size_hint(self, hidden_bytes: int, num_ranks: int) -> int: ...
    def get_rdma_buffer_size_hint(self, hidden_bytes: int, num_ranks: int) -> int: ...

class Buffer:
    num_sms: int
    group: ProcessGroup
    rank: int
    group_size: int
    num_nvl_bytes: int
    num_rdma_bytes: int
    low_latency_mode: bool
    explicitly_destroy: bool
    enable_shrink: bool
    def __init__(
        self,
        group: ProcessGroup | None,
        num_nvl_bytes: int = 0,
        num_rdma_bytes: int = 0,
        low_latency_mode: bool = False,
        num_qps_per_rank: int = 24,
        allow_nvlink_for_low_latency_mode: bool = True,
        allow_mnnvl: bool = False,
        explicitly_destroy: bool = False,
        enable_shrink: bool = False,
        comm: Any = None,
    ) -> None: ...
    def destroy(self) -> None: ...
    @staticmethod
    def is_sm90_compiled() -> bool: ...
    @staticmethod
    def set_num_sms(new_num_sms: int) -> None: ...
    @staticmethod
    def get_dispatch_config(num_ranks: int) -> Config: ...
    @staticmethod
    def get_combine_config(num_ranks: int) -> Config: ...
    @staticmethod
    def get_low_latency_rdma_size_hint(
        num_max_dispatch_tokens_per_rank: int, hidden: int, num_ranks: int, num_experts: int
    ) -> int: ...
    @staticmethod
    def capture() -> EventOverlap: ...
    def get_comm_stream(self) -> torch.cuda.Stream: ...
    def get_local_buffer_tensor(
        self,
        dtype: torch.dtype,
        size: torch.Size | None = None,
        offset: int = 0,
        use_rdma_buffer: bool = False,
    ) -> Tensor: ...
    def get_dispatch_layout(
        self,
        topk_idx: Tensor,
        num_experts: int,
        previous_event: EventOverlap | None = None,
        async_finish: bool = False,
        allocate_on_comm_stream: bool = False,
    ) -> tuple[Tensor, None, Tensor, Tensor, EventOverlap]: ...
    def dispatch(
        self,
        x: Tensor | tuple[Tensor, Tensor],
        handle: Any = None,
        num_tokens_per_rank: Tensor | None = None,
        num_tokens_per_rdma_rank: Tensor | None = None,
        is_token_in_rank: Tensor | None = None,
        num_tokens_per_expert: Tensor | None = None,
        topk_idx: Tensor | None = None,
        topk_weights: Tensor | None = None,
        expert_alignment: int = 1,
        num_worst_tokens: int = 0,
        config: Config | None = None,
        previous_event: EventOverlap | None = None,
        async_finish: bool = False,
        allocate_on_comm_stream: bool = False,
    ) -> tuple[
        Any, Tensor | None, Tensor | None, list[int] | None, Any, EventOverlap
    ]: ...
    def combine(
        self,
        x: Tensor,
        handle: Any,
        topk_weights: Tensor | None = None,
        bias: Tensor | tuple[Tensor, ...] | None = None,
        config: Config | None = None,
        previous_event: EventOverlap | None = None,
        async_finish: bool = False,
        allocate_on_comm_stream: bool = False,
    ) -> tuple[Tensor, Tensor | None, EventOverlap]: ...
    def clean_low_latency_buffer(
        self, num_max_dispatch_tokens_per_rank: int, hidden: int, num_experts: int
    ) -> None: ...
    def low_latency_dispatch(
        self,
        x: Tensor,
        topk_idx: Tensor,
        num_max_dispatch_tokens_per_rank: int,
        num_experts: int,
        cumulative_local_expert_recv_stats: Tensor | None = None,
        dispatch_wait_recv_cost_stats: Tensor | None = None,
        use_fp8: bool = True,
        round_scale: bool = False,
        use_ue8m0: bool = False,
        async_finish: bool = False,
        return_recv_hook: bool = False,
    ) -> tuple[Any, Tensor, Any, EventOverlap, Callable[[], None] | None]: ...
    def low_latency_combine(
        self,
        x: Tensor,
        topk_idx: Tensor,
        topk_weights: Tensor,
        handle: Any,
        use_logfmt: bool = False,
        zero_copy: bool = False,
        async_finish: bool = False,
        return_recv_hook: bool = False,
        out: Tensor | None = None,
        combine_wait_recv_cost_stats: Tensor | None = None,
    ) -> tuple[Tensor, EventOverlap, Callable[[], None] | None]: ...
    def get_next_low_latency_combine_buffer(self, handle: Any) -> Tensor: ...
    def low_latency_update_mask_buffer(self, rank_to_mask: int, mask: bool = False) -> None: ...
    def low_latency_query_mask_buffer(self, mask_status: Tensor) -> None: ...
    def low_latency_clean_mask_buffer(self) -> None: ...
