# SPDX-License-Identifier: BSD-3-Clause
"""The functions of libweft_device.bc for weft.triton, as Triton externs. Arguments are converted to the types of the C
function; pointers become addresses.
"""
import triton.language as tl
from triton.language import core


def _converted(value, name, position, dtype, semantic):
    value = semantic.to_tensor(value)
    kind = value.dtype
    if not (kind.is_int() or kind.is_ptr()):
        raise TypeError(f"{name}: argument {position} is of type {kind}, expected an integer or a pointer")
    return value if kind == dtype else semantic.cast(value, dtype)


def _function(name, types, result="int32", pure=False, scalar=None):
    """Makes an extern of this name, or of the name `scalar` if no argument is a tensor. Unless it is pure, all of its
    calls are kept, in order.
    """
    dtypes = tuple(core.dtype(word) for word in types.split())

    def call(*arguments, _semantic=None):
        if len(arguments) != len(dtypes):
            raise TypeError(f"{name} takes {len(dtypes)} arguments, not {len(arguments)}")
        converted = [_converted(value, name, position, dtype, _semantic)
                     for position, (value, dtype) in enumerate(zip(arguments, dtypes))]
        symbol = name if not scalar or any(value.type.is_block() for value in converted) else scalar
        symbols = {dtypes: (symbol, core.dtype(result))}
        return core.extern_elementwise("", "", converted, symbols, is_pure=pure, _semantic=_semantic)
    call.__name__ = call.__qualname__ = name
    return core.extern(call)


_COPY = "int64 int64 int64 int64 int32"
_SIGNAL = "int64 int64 uint64"

me = _function("weft_me", "int64", pure=True)
n = _function("weft_n", "int64", pure=True)
at = _function("weft_at", "int64 int64 int32", "int64", pure=True)
abort = _function("weft_abort", "int64 int32")
put_b = _function("weft_put_b", _COPY)
get_b = _function("weft_get_b", _COPY)
put_signal_b = _function("weft_put_signal_b", "int64 int64 int64 int64 int64 uint64 int32 int32")
wait_until_b = _function("weft_wait_until_b", "int64 int64 int32 uint64")
stores_wait = _function("weft_stores_wait", "")
fence_b = _function("weft_fence_b", "")
fence_async = _function("weft_fence_async", "")
arrive_b = _function("weft_arrive_b", "int64 uint32")
depart_b = _function("weft_depart_b", "int64 uint32")
barrier_b = _function("weft_barrier_b", "int64 uint32")
sync_b = _function("weft_sync_b", "int64 uint32")
barrier_grid = _function("weft_barrier_grid", "int64")
p32 = _function("weft_p32", "int64 int64 uint32 int32", scalar="weft_p32_b")
p64 = _function("weft_p64", "int64 int64 uint64 int32", scalar="weft_p64_b")
g32 = _function("weft_g32", "int64 int64 int32", "uint32", scalar="weft_g32_b")
g64 = _function("weft_g64", "int64 int64 int32", "uint64", scalar="weft_g64_b")
signal_fetch_b = _function("weft_signal_fetch_b", "int64 int64", "uint64")
ll_epoch_begin = _function("weft_ll_epoch_begin", "int64 uint32", "uint64")
ll_epoch_end = _function("weft_ll_epoch_end", "int64 uint32 uint64")
ll_send = _function("weft_ll_send", "int64 uint32 uint32 uint64 uint64 int32")
ll_bcast = _function("weft_ll_bcast", "int64 uint32 uint32 uint64 uint64")
ll_data = _function("weft_ll_data", "int64 uint32 uint32 int32 uint64", "uint64")
