# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Iterable, Iterator, Sequence
from types import EllipsisType, TracebackType
from typing import Any, Literal, NoReturn, Protocol, SupportsIndex, TypeAlias, final, runtime_checkable

@runtime_checkable
class _Dlpack(Protocol):
    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

@runtime_checkable
class _Cuda(Protocol):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

# Objects with the buffer protocol have no type of their own before Python 3.12.
_Array: TypeAlias = Buffer | bytes | bytearray | memoryview | _Dlpack | _Cuda | Any
_Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
_Space: TypeAlias = Literal["host", "device"]
_Number: TypeAlias = SupportsIndex | _Array
_Stream: TypeAlias = int | Any | None
_Dtype: TypeAlias = str | type | Any
_Index: TypeAlias = SupportsIndex | slice | EllipsisType | None
_Cmp: TypeAlias = Literal["==", "!=", ">", ">=", "<", "<="]
_Value: TypeAlias = SupportsIndex | float
_Values: TypeAlias = SupportsIndex | Iterable[SupportsIndex] | _Array
_Status: TypeAlias = Iterable[Any] | None

@final
class Buffer:
    @property
    def ptr(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def ndim(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def space(self) -> _Space: ...
    @property
    def freed(self) -> bool: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def peer(self, pe: SupportsIndex) -> Buffer: ...
    def view(self, shape: _Shape | None = None, dtype: _Dtype | None = None, offset: SupportsIndex = 0) -> Buffer: ...
    def reshape(self, *shape: SupportsIndex | Sequence[SupportsIndex]) -> Buffer: ...
    def fill(self, value: complex | SupportsIndex) -> None: ...
    def tolist(self) -> Any: ...
    def numpy(self) -> Any: ...
    def free(self) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, key: _Index | tuple[_Index, ...], /) -> Any: ...
    def __setitem__(self, key: _Index | tuple[_Index, ...], value: Any, /) -> None: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __enter__(self) -> Buffer: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

@final
class Team:
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def pes(self) -> tuple[int, ...]: ...
    @property
    def handle(self) -> int: ...
    def split(self, start: SupportsIndex, stride: SupportsIndex, size: SupportsIndex) -> Team | None: ...
    def split_2d(self, xrange: SupportsIndex) -> tuple[Team, Team]: ...
    def translate_pe(self, pe: SupportsIndex, team: Team | None = None) -> int | None: ...
    def sync(self) -> None: ...
    def barrier(self) -> None: ...
    def destroy(self) -> None: ...
    def __enter__(self) -> Team: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

@final
class Ctx:
    def __new__(
        cls, team: Team | None = None, *, private: bool = False, serialized: bool = False, nostore: bool = False
    ) -> Ctx: ...
    @property
    def team(self) -> Team: ...
    @property
    def handle(self) -> int: ...
    def fence(self) -> None: ...
    def quiet(self) -> None: ...
    def destroy(self) -> None: ...
    def __enter__(self) -> Ctx: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

@final
class MoE:
    def __new__(
        cls,
        experts: SupportsIndex,
        top_k: SupportsIndex,
        cols: SupportsIndex,
        tokens_max: SupportsIndex,
        rows_max: SupportsIndex = 0,
        scale_cols: SupportsIndex = 0,
        *,
        dtype: _Dtype = "float32",
        team: Team | None = None,
    ) -> MoE: ...
    @property
    def team(self) -> Team: ...
    @property
    def rows_max(self) -> int: ...
    @property
    def experts_each(self) -> int: ...
    def dispatch(
        self,
        tokens: _Array,
        experts: _Array,
        data: _Array,
        sources: _Array,
        offsets: _Array,
        *,
        weights: _Array | None = None,
        row_weights: _Array | None = None,
        scales: _Array | None = None,
        row_scales: _Array | None = None,
        stream: _Stream | None = None,
    ) -> None: ...
    def combine(
        self,
        tokens: _Array,
        experts: _Array,
        data: _Array,
        sources: _Array,
        offsets: _Array,
        *,
        weights: _Array | None = None,
        row_weights: _Array | None = None,
        factors: _Array | None = None,
        stream: _Stream | None = None,
    ) -> None: ...
    def destroy(self) -> None: ...
    def __enter__(self) -> MoE: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

@final
class Block:
    def __new__(cls, space: _Space, nbytes: SupportsIndex) -> Block: ...
    @property
    def ptr(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def space(self) -> _Space: ...
    @property
    def handle(self) -> int: ...
    def share(self, pes: Sequence[SupportsIndex], tag: SupportsIndex = 0) -> Share: ...
    def view(self, shape: _Shape | None = None, dtype: _Dtype = "uint8", offset: SupportsIndex = 0) -> Buffer: ...
    def free(self) -> None: ...

@final
class Share:
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def handle(self) -> int: ...
    def ptr(self, member: SupportsIndex) -> int: ...
    def view(
        self,
        member: SupportsIndex,
        shape: _Shape | None = None,
        dtype: _Dtype = "uint8",
        offset: SupportsIndex = 0,
    ) -> Buffer: ...
    def release(self) -> None: ...

@final
class DeviceTeam:
    @property
    def address(self) -> int: ...
    @property
    def bytes(self) -> bytes: ...
    @property
    def me(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def channels(self) -> int: ...
    @property
    def slot_bytes(self) -> int: ...
    def free(self) -> None: ...
    def __enter__(self) -> DeviceTeam: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

world: Team

def init(
    rank: int | None = None, size: int | None = None, uniqueid: bytes | None = None, allgather: Any = None
) -> None: ...
def finalize() -> None: ...
def global_exit(status: SupportsIndex = 0) -> NoReturn: ...
def initialized() -> bool: ...
def uniqueid() -> bytes: ...
def my_pe() -> int: ...
def n_pes() -> int: ...
def device() -> int: ...
def team(pes: Sequence[SupportsIndex], tag: SupportsIndex = 0) -> Team: ...
def device_team(
    team: Team | None = None, channels: SupportsIndex = 64, slot_bytes: SupportsIndex = 4096
) -> DeviceTeam: ...
def empty(shape: _Shape, dtype: _Dtype = "float32", space: _Space = "host") -> Buffer: ...
def zeros(shape: _Shape, dtype: _Dtype = "float32", space: _Space = "host") -> Buffer: ...
def block_of(ptr: SupportsIndex) -> Block | None: ...
def put(
    dest: _Array, source: _Array, pe: SupportsIndex, *, ctx: Ctx | None = None, stream: _Stream = None
) -> None: ...
def get(
    dest: _Array, source: _Array, pe: SupportsIndex, *, ctx: Ctx | None = None, stream: _Stream = None
) -> None: ...
def put_nbi(dest: _Array, source: _Array, pe: SupportsIndex, *, ctx: Ctx | None = None) -> None: ...
def get_nbi(dest: _Array, source: _Array, pe: SupportsIndex, *, ctx: Ctx | None = None) -> None: ...
def p(
    dest: _Array, value: complex | SupportsIndex, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> None: ...
def g(
    source: _Array, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> int | float | complex: ...
def iput(
    dest: _Array,
    source: _Array,
    pe: SupportsIndex,
    dst: SupportsIndex = 1,
    sst: SupportsIndex = 1,
    nelems: SupportsIndex | None = None,
    *,
    ctx: Ctx | None = None,
) -> None: ...
def iget(
    dest: _Array,
    source: _Array,
    pe: SupportsIndex,
    dst: SupportsIndex = 1,
    sst: SupportsIndex = 1,
    nelems: SupportsIndex | None = None,
    *,
    ctx: Ctx | None = None,
) -> None: ...
def ibput(
    dest: _Array,
    source: _Array,
    pe: SupportsIndex,
    bsize: SupportsIndex,
    dst: SupportsIndex,
    sst: SupportsIndex,
    nblocks: SupportsIndex | None = None,
    *,
    ctx: Ctx | None = None,
) -> None: ...
def ibget(
    dest: _Array,
    source: _Array,
    pe: SupportsIndex,
    bsize: SupportsIndex,
    dst: SupportsIndex,
    sst: SupportsIndex,
    nblocks: SupportsIndex | None = None,
    *,
    ctx: Ctx | None = None,
) -> None: ...
def put_signal(
    dest: _Array,
    source: _Array,
    signal: _Array,
    value: SupportsIndex,
    pe: SupportsIndex,
    *,
    op: Literal["set", "add"] = "set",
    ctx: Ctx | None = None,
    stream: _Stream = None,
) -> None: ...
def put_signal_nbi(
    dest: _Array,
    source: _Array,
    signal: _Array,
    value: SupportsIndex,
    pe: SupportsIndex,
    *,
    op: Literal["set", "add"] = "set",
    ctx: Ctx | None = None,
) -> None: ...
def signal(
    signal: _Array,
    value: SupportsIndex,
    pe: SupportsIndex,
    *,
    op: Literal["set", "add"] = "set",
    ctx: Ctx | None = None,
    stream: _Stream = None,
) -> None: ...
def signal_fetch(signal: _Array) -> int: ...
def wait(
    signal: _Array,
    value: SupportsIndex,
    cmp: _Cmp = "==",
    *,
    stream: _Stream = None,
) -> int | None: ...
def wait_until(ivar: _Array, value: SupportsIndex, cmp: _Cmp = "==", *, index: SupportsIndex = 0) -> None: ...
def test(ivar: _Array, value: SupportsIndex, cmp: _Cmp = "==", *, index: SupportsIndex = 0) -> bool: ...
def wait_until_all(ivars: _Array, value: _Values, cmp: _Cmp = "==", *, status: _Status = None) -> None: ...
def wait_until_any(ivars: _Array, value: _Values, cmp: _Cmp = "==", *, status: _Status = None) -> int | None: ...
def wait_until_some(ivars: _Array, value: _Values, cmp: _Cmp = "==", *, status: _Status = None) -> list[int]: ...
def test_all(ivars: _Array, value: _Values, cmp: _Cmp = "==", *, status: _Status = None) -> bool: ...
def test_any(ivars: _Array, value: _Values, cmp: _Cmp = "==", *, status: _Status = None) -> int | None: ...
def test_some(ivars: _Array, value: _Values, cmp: _Cmp = "==", *, status: _Status = None) -> list[int]: ...
def atomic_fetch(
    source: _Array, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> int | float: ...
def atomic_fetch_nbi(
    fetch: _Array, source: _Array, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> None: ...
def atomic_set(
    dest: _Array, value: _Value, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> None: ...
def atomic_swap(
    dest: _Array, value: _Value, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> int | float: ...
def atomic_swap_nbi(
    fetch: _Array, dest: _Array, value: _Value, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> None: ...
def atomic_compare_swap(
    dest: _Array,
    cond: SupportsIndex,
    value: SupportsIndex,
    pe: SupportsIndex,
    *,
    index: SupportsIndex = 0,
    ctx: Ctx | None = None,
) -> int: ...
def atomic_compare_swap_nbi(
    fetch: _Array,
    dest: _Array,
    cond: SupportsIndex,
    value: SupportsIndex,
    pe: SupportsIndex,
    *,
    index: SupportsIndex = 0,
    ctx: Ctx | None = None,
) -> None: ...
def atomic_inc(dest: _Array, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None) -> None: ...
def atomic_fetch_inc(dest: _Array, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None) -> int: ...
def atomic_fetch_inc_nbi(
    fetch: _Array, dest: _Array, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> None: ...
def atomic_add(
    dest: _Array, value: SupportsIndex, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> None: ...
def atomic_fetch_add(
    dest: _Array, value: SupportsIndex, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> int: ...
def atomic_fetch_add_nbi(
    fetch: _Array,
    dest: _Array,
    value: SupportsIndex,
    pe: SupportsIndex,
    *,
    index: SupportsIndex = 0,
    ctx: Ctx | None = None,
) -> None: ...
def atomic_and(
    dest: _Array, value: SupportsIndex, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> None: ...
def atomic_fetch_and(
    dest: _Array, value: SupportsIndex, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> int: ...
def atomic_fetch_and_nbi(
    fetch: _Array,
    dest: _Array,
    value: SupportsIndex,
    pe: SupportsIndex,
    *,
    index: SupportsIndex = 0,
    ctx: Ctx | None = None,
) -> None: ...
def atomic_or(
    dest: _Array, value: SupportsIndex, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> None: ...
def atomic_fetch_or(
    dest: _Array, value: SupportsIndex, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> int: ...
def atomic_fetch_or_nbi(
    fetch: _Array,
    dest: _Array,
    value: SupportsIndex,
    pe: SupportsIndex,
    *,
    index: SupportsIndex = 0,
    ctx: Ctx | None = None,
) -> None: ...
def atomic_xor(
    dest: _Array, value: SupportsIndex, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> None: ...
def atomic_fetch_xor(
    dest: _Array, value: SupportsIndex, pe: SupportsIndex, *, index: SupportsIndex = 0, ctx: Ctx | None = None
) -> int: ...
def atomic_fetch_xor_nbi(
    fetch: _Array,
    dest: _Array,
    value: SupportsIndex,
    pe: SupportsIndex,
    *,
    index: SupportsIndex = 0,
    ctx: Ctx | None = None,
) -> None: ...
def set_lock(lock: _Array) -> None: ...
def test_lock(lock: _Array) -> bool: ...
def clear_lock(lock: _Array) -> None: ...
def pe_accessible(pe: SupportsIndex) -> bool: ...
def addr_accessible(array: _Array, pe: SupportsIndex) -> bool: ...
def ptr(array: _Array, pe: SupportsIndex, *, team: Team | None = None) -> int | None: ...
def network() -> str | None: ...
def info_get_version() -> tuple[int, int]: ...
def info_get_name() -> str: ...
def set_engine(engine: Literal["auto", "sm", "copy"]) -> Literal["auto", "sm", "copy"]: ...
def put_slice(
    dest: _Array,
    source: _Array,
    nelems: _Number,
    pe: SupportsIndex,
    dest_begin: _Number = 0,
    source_begin: _Number = 0,
    *,
    stream: _Stream = None,
) -> None: ...
def get_slice(
    dest: _Array,
    source: _Array,
    nelems: _Number,
    pe: SupportsIndex,
    dest_begin: _Number = 0,
    source_begin: _Number = 0,
    *,
    stream: _Stream = None,
) -> None: ...
def put_slice_signal(
    dest: _Array,
    source: _Array,
    nelems: _Number,
    pe: SupportsIndex,
    dest_begin: _Number,
    source_begin: _Number,
    signals: _Array,
    value: _Number,
    *,
    op: Literal["set", "add"] = "set",
    index: _Number = 0,
    stream: _Stream = None,
) -> None: ...
def signal32(
    signals: _Array,
    value: _Number,
    pe: SupportsIndex,
    *,
    op: Literal["set", "add"] = "set",
    index: _Number = 0,
    stream: _Stream = None,
) -> None: ...
def wait32(
    signals: _Array,
    value: _Number,
    cmp: _Cmp = "==",
    *,
    index: _Number = 0,
    stream: _Stream = None,
) -> None: ...
def fence(*, ctx: Ctx | None = None, stream: _Stream = None) -> None: ...
def quiet(*, ctx: Ctx | None = None, stream: _Stream = None) -> None: ...
def session_start(
    *, ctx: Ctx | None = None, batch: bool = False, total_ops: SupportsIndex | None = None
) -> None: ...
def session_stop(*, ctx: Ctx | None = None) -> None: ...
def sync(team: Team | None = None, *, stream: _Stream = None) -> None: ...
def barrier(team: Team | None = None, *, stream: _Stream = None) -> None: ...

_Op: TypeAlias = Literal["sum", "avg", "max", "min", "prod"]
_Reduction: TypeAlias = Literal["sum", "avg", "max", "min", "prod", "and", "or", "xor"]
_Mean: TypeAlias = Literal["sum", "avg"]

def all_reduce(
    dest: _Array,
    source: _Array | None = None,
    op: _Reduction = "sum",
    *,
    team: Team | None = None,
    stream: _Stream = None,
) -> None: ...
def collect(dest: _Array, source: _Array, *, team: Team | None = None) -> tuple[int, ...]: ...
def inscan(dest: _Array, source: _Array | None = None, *, team: Team | None = None) -> None: ...
def exscan(dest: _Array, source: _Array | None = None, *, team: Team | None = None) -> None: ...
def all_gather(dest: _Array, source: _Array, *, team: Team | None = None, stream: _Stream = None) -> None: ...
def reduce_scatter(
    dest: _Array, source: _Array, op: _Op = "sum", *, team: Team | None = None, stream: _Stream = None
) -> None: ...
def broadcast(
    dest: _Array,
    source: _Array | None = None,
    root: SupportsIndex = 0,
    *,
    team: Team | None = None,
    stream: _Stream = None,
) -> None: ...
def all_to_all(dest: _Array, source: _Array, *, team: Team | None = None, stream: _Stream = None) -> None: ...
def all_to_alls(
    dest: _Array,
    source: _Array,
    dst: SupportsIndex = 1,
    sst: SupportsIndex = 1,
    nelems: SupportsIndex | None = None,
    *,
    team: Team | None = None,
) -> None: ...
def all_to_allv(
    dest: _Array,
    source: _Array,
    dest_nelems: Sequence[SupportsIndex],
    source_nelems: Sequence[SupportsIndex],
    *,
    dest_offsets: Sequence[SupportsIndex] | None = None,
    source_offsets: Sequence[SupportsIndex] | None = None,
    nparts: SupportsIndex = 1,
    team: Team | None = None,
    stream: _Stream = None,
) -> None: ...
def all_to_allv_on_device(
    dest: _Array,
    source: _Array,
    dest_splits: _Array,
    dest_offsets: _Array,
    source_splits: _Array,
    source_offsets: _Array | None = None,
    *,
    nparts: SupportsIndex = 1,
    source_by_part: bool = False,
    dest_by_part: bool = False,
    align: SupportsIndex = 0,
    team: Team | None = None,
    stream: _Stream | None = None,
) -> None: ...
def all_reduce_rms_norm(
    out: _Array,
    source: _Array,
    residual_out: _Array,
    *,
    bias: _Array | None = None,
    residual: _Array | None = None,
    weight: _Array | None = None,
    epsilon: float = 1e-6,
    quantized: _Array | None = None,
    scales: _Array | None = None,
    group: SupportsIndex = 0,
    team: Team | None = None,
    stream: _Stream | None = None,
) -> None: ...
def kv_shuffle(
    caches: Sequence[_Array],
    peer_and_role: _Array,
    from_blocks: _Array | None = None,
    to_blocks: _Array | None = None,
    *,
    team: Team | None = None,
    stream: _Stream | None = None,
) -> None: ...
def reserve(team: Team, nbytes: SupportsIndex) -> None: ...
def all_gather_matmul(
    c: _Array | Sequence[_Array],
    a_shard: _Array,
    b: _Array | Sequence[_Array],
    a_full: _Array | None = None,
    *,
    team: Team | None = None,
    stream: _Stream = None,
) -> None: ...
def all_gather_scaled_matmul(
    c: _Array | Sequence[_Array],
    a_shard: _Array,
    b: _Array | Sequence[_Array],
    a_scale: _Array | float,
    b_scale: _Array | float | Sequence[_Array | float],
    bias: _Array | None | Sequence[_Array | None] = None,
    a_full: _Array | None = None,
    *,
    team: Team | None = None,
    stream: _Stream = None,
) -> None: ...
def scaled_matmul_reduce_scatter(
    c_shard: _Array,
    a: _Array,
    b: _Array,
    a_scale: _Array | float,
    b_scale: _Array | float,
    bias: _Array | None = None,
    op: _Mean = "sum",
    *,
    team: Team | None = None,
    stream: _Stream = None,
) -> None: ...
def matmul_reduce_scatter(
    c_shard: _Array, a: _Array, b: _Array, op: _Mean = "sum", *, team: Team | None = None, stream: _Stream = None
) -> None: ...
def matmul_all_reduce(
    c: _Array, a: _Array, b: _Array, op: _Mean = "sum", *, team: Team | None = None, stream: _Stream = None
) -> None: ...
def pad_put(
    pads: _Array | int,
    rank: SupportsIndex,
    n: SupportsIndex,
    peer: SupportsIndex,
    channel: SupportsIndex,
    *,
    timeout_ms: SupportsIndex = 0,
    stream: _Stream = None,
) -> None: ...
def pad_wait(
    pads: _Array | int,
    rank: SupportsIndex,
    n: SupportsIndex,
    peer: SupportsIndex,
    channel: SupportsIndex,
    *,
    timeout_ms: SupportsIndex = 0,
    stream: _Stream = None,
) -> None: ...
def pad_barrier(
    pads: _Array | int,
    rank: SupportsIndex,
    n: SupportsIndex,
    channel: SupportsIndex,
    *,
    timeout_ms: SupportsIndex = 0,
    stream: _Stream = None,
) -> None: ...
