# SPDX-License-Identifier: BSD-3-Clause
from typing import TypeAlias

import torch
from torch import Tensor
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import DeviceMesh

_Group: TypeAlias = str | ProcessGroup | DeviceMesh

class Rows:
    data: Tensor
    weights: Tensor | None
    scales: Tensor | None
    sources: Tensor
    offsets: Tensor
    experts: Tensor
    def __init__(
        self,
        data: Tensor,
        weights: Tensor | None,
        scales: Tensor | None,
        sources: Tensor,
        offsets: Tensor,
        experts: Tensor,
    ) -> None: ...
    def split(self, tensor: Tensor | None = None) -> list[Tensor]: ...

class MoE:
    top_k: int
    rows_max: int
    experts_each: int
    def __init__(
        self,
        experts: int,
        top_k: int,
        cols: int,
        tokens_max: int,
        *,
        rows_max: int = 0,
        scale_cols: int = 0,
        dtype: torch.dtype = ...,
        group: _Group | None = None,
    ) -> None: ...
    def dispatch(
        self, x: Tensor, experts: Tensor, weights: Tensor | None = None, scales: Tensor | None = None
    ) -> Rows: ...
    def combine(self, results: Tensor, rows: Rows) -> Tensor: ...
    def destroy(self) -> None: ...
