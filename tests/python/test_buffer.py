# SPDX-License-Identifier: BSD-3-Clause
"""Buffers: their attributes, their interfaces to other libraries, and when their memory is freed."""
import gc
import threading
import weakref

import pytest
import weft

DTYPES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "uint8": 1,
          "int8": 1, "uint16": 2, "int16": 2, "uint32": 4, "int32": 4, "uint64": 8, "int64": 8, "bool": 1,
          "complex64": 8, "complex128": 16}


@pytest.mark.parametrize("dtype", DTYPES)
def test_attributes(dtype):
    buffer = weft.empty((2, 3), dtype)
    assert (buffer.shape, buffer.ndim, buffer.size, len(buffer)) == ((2, 3), 2, 6, 2)
    assert (buffer.dtype, buffer.itemsize, buffer.nbytes) == (dtype, DTYPES[dtype], 6 * DTYPES[dtype])
    assert (buffer.space, buffer.freed) == ("host", False)
    assert buffer.ptr % 16 == 0
    assert dtype in repr(buffer) and "(2, 3)" in repr(buffer)


@pytest.mark.parametrize("shape, expected", [(5, (5,)), ([4, 1], (4, 1)), ((), ()), (0, (0,)), ((3, 0, 2), (3, 0, 2))])
def test_shapes(shape, expected):
    buffer = weft.zeros(shape)
    assert buffer.shape == expected
    assert memoryview(buffer).shape == expected


def test_types_by_other_names():
    np = pytest.importorskip("numpy")
    for name in (np.float32, np.dtype("int16"), "torch.bfloat16", float, int):
        assert weft.empty(1, name).dtype in ("float32", "int16", "bfloat16", "float64", "int64")


def test_buffer_protocol():
    buffer = weft.zeros((2, 3), "int32")
    view = memoryview(buffer)
    assert (view.format, view.shape, view.strides, view.readonly) == ("i", (2, 3), (12, 4), False)
    view[1, 2] = 7
    assert memoryview(buffer).tolist() == [[0, 0, 0], [0, 0, 7]]
    assert bytes(buffer.view(dtype="uint8"))[20] == 7


def test_numpy_shows_the_memory():
    np = pytest.importorskip("numpy")
    buffer = weft.zeros((2, 3), "float64")
    array = np.asarray(buffer)
    array[1] = 5
    assert not array.flags.owndata and array.ctypes.data == buffer.ptr
    assert np.from_dlpack(buffer).tolist() == [[0, 0, 0], [5, 5, 5]]


def test_types_without_a_format_say_so():
    for dtype in ("bfloat16", "float8_e4m3fn"):
        buffer = weft.zeros(4, dtype)
        with pytest.raises(BufferError, match=f"no format for {dtype}: use DLPack, or view"):
            memoryview(buffer)
        assert len(memoryview(buffer.view(dtype="uint8"))) == buffer.nbytes


def test_dlpack_by_hand():
    buffer = weft.zeros(3)
    assert buffer.__dlpack_device__() == (1, 0)
    assert '"dltensor"' in repr(buffer.__dlpack__())
    assert '"dltensor_versioned"' in repr(buffer.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(buffer.__dlpack__(stream=None, max_version=(0, 8), dl_device=(1, 0), copy=False))
    with pytest.raises(BufferError, match=r"argument dl_device is \(2, 0\), but the memory is on \(1, 0\)"):
        buffer.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="copies are not supported"):
        buffer.__dlpack__(copy=True)
    assert not hasattr(buffer, "__cuda_array_interface__")


def test_peers(me, n, mapped):
    buffer = weft.empty(2, "int64")
    memoryview(buffer)[:] = memoryview(bytearray(16)).cast("q")
    memoryview(buffer)[0] = me
    weft.barrier()
    for pe in range(n):
        assert memoryview(buffer.peer(pe)).tolist() == [pe, 0]
    weft.barrier()
    memoryview(buffer.peer((me + 1) % n))[1] = 100 + me
    weft.barrier()
    assert memoryview(buffer).tolist() == [me, 100 + (me - 1) % n]
    for pe in (-1, n):
        with pytest.raises(ValueError, match=f"argument pe is {pe}: the job has PEs 0 to {n - 1}"):
            buffer.peer(pe)
    if n > 1:
        with pytest.raises(ValueError, match="not this PE's own"):
            buffer.peer((me + 1) % n).peer(0)


def test_far_peers(me, n, far):
    buffer = weft.zeros(3, "int64")
    if not far:
        pytest.skip("all memory is mapped here")
    for pe in far:
        with pytest.raises(RuntimeError, match=f"the memory of PE {pe} is not mapped here.*weft.put, weft.get"):
            buffer.peer(pe)
        assert weft.ptr(buffer, pe) is None and weft.addr_accessible(buffer, pe)
    right = (me + 1) % n
    weft.p(buffer, me, right, index=1)
    weft.barrier()
    assert buffer.tolist() == [0, (me - 1) % n, 0] and weft.g(buffer, right, index=1) == me


def test_view():
    buffer = weft.zeros(8, "uint8")
    memoryview(buffer)[4] = 1
    assert memoryview(buffer.view(dtype="uint32")).tolist() == [0, 1]
    assert memoryview(buffer.view(1, "uint32", 4)).tolist() == [1]
    assert buffer.view((2, 2), offset=2).shape == (2, 2)
    with pytest.raises(ValueError, match="asks for 8 bytes from byte 4 on, but there are 8 in all"):
        buffer.view(8, offset=4)
    with pytest.raises(ValueError, match="offset is 2, but must be a multiple of the 4 bytes of uint32"):
        buffer.view(1, "uint32", 2)
    with pytest.raises(ValueError, match="asks for"):
        buffer.view(offset=9)


def test_weak_references():
    buffer = weft.zeros(1)
    reference = weakref.ref(buffer)
    assert reference() is buffer
    del buffer
    gc.collect()
    assert reference() is None


# --- Wrong arguments, on all PEs or on one: the error is on all, and nobody waits. --------------------

@pytest.mark.parametrize("arguments, message", [
    (("x",), "argument shape is 'x'|argument shape"), ((-1,), "argument shape is -1"),
    ((1, "float33"), "argument dtype is 'float33': pass one of float32"),
    ((1, "float32", "gpu"), "argument space is 'gpu': pass 'host', 'device'"),
    (((2**62, 4),), "more elements than memory"), (([1] * 17,), "more than 16 dimensions")])
def test_wrong_arguments(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        weft.zeros(*arguments)


def test_a_wrong_argument_on_one_pe(me, n):
    if n == 1:
        pytest.skip("needs a peer")
    with pytest.raises(ValueError, match="dtype is 'nothing'" if me == n - 1 else "another PE cannot take part"):
        weft.empty(4, "nothing" if me == n - 1 else "float32")


def test_different_sizes(me, n):
    if n == 1:
        pytest.skip("needs a peer")
    with pytest.raises(ValueError, match=f"PEs ask for 4 to {4 * n}"):
        weft.empty(me + 1)


def test_too_much_is_a_memory_error():
    with pytest.raises(MemoryError):
        weft.empty(2**55, "uint8")
    assert weft.zeros(1).size == 1


# --- When memory comes back -------------------------------------------------------------------------

def drain():
    """Frees the memory that all PEs have let go of."""
    gc.collect()
    weft.empty(1).free()


def test_freed_buffers_are_refused():
    buffer = weft.zeros(4)
    part = buffer.view(2)
    buffer.free()
    assert buffer.freed and part.freed and "freed" in repr(buffer)
    for use in (lambda: buffer.ptr, lambda: buffer.peer(0), lambda: memoryview(buffer), lambda: part.__dlpack__(),
                lambda: weft.put(buffer, buffer, 0), buffer.free, lambda: part.view(1)):
        with pytest.raises(ValueError, match="was freed"):
            use()


def test_memory_of_freed_buffers_is_used_anew():
    drain()
    first = weft.empty(1000)
    place = first.ptr
    first.free()
    assert weft.empty(1000).ptr == place


def test_memory_of_forgotten_buffers_is_used_anew():
    drain()
    first = weft.empty(1000)
    place = first.ptr
    del first
    assert weft.empty(1000).ptr == place


def test_memory_waits_for_every_pe(me, n):
    drain()
    first = weft.empty(1000)
    place = first.ptr
    if me == 0:
        first.free()
    second = weft.empty(1000)
    assert n == 1 or second.ptr != place
    second.free()
    if me != 0:
        first.free()
    drain()
    assert weft.empty(1000).ptr == place


def test_memory_waits_for_views(me, n):
    drain()
    first = weft.zeros(1000, "uint8")
    place, view = first.ptr, memoryview(first) if me == n - 1 else None
    first.free()
    assert weft.zeros(1000, "uint8").ptr != place
    if view:
        view[0] = 3
        assert view[0] == 3
        view.release()
    drain()
    assert weft.zeros(1000, "uint8").ptr == place


def test_memory_waits_for_capsules(me):
    drain()
    first = weft.zeros(1000)
    place, capsule = first.ptr, first.__dlpack__(max_version=(1, 0)) if me == 0 else None
    first.free()
    assert weft.zeros(1000).ptr != place
    del capsule
    drain()
    assert weft.zeros(1000).ptr == place


def test_with():
    with weft.zeros(4) as buffer:
        assert not buffer.freed
    assert buffer.freed


def test_views_go_in_any_thread():
    np = pytest.importorskip("numpy")
    drain()
    first = weft.zeros(1000)
    place = first.ptr
    holders = [np.from_dlpack(first) for _ in range(8)]
    first.free()

    def let_go():
        while holders:
            try:
                holders.pop()
            except IndexError:
                return
    threads = [threading.Thread(target=let_go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drain()
    assert weft.zeros(1000).ptr == place


def test_types_that_are_not_there_name_those_that_are(me):
    """For example numpy's short names: the message lists all names."""
    names = ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "uint8", "int8", "uint16",
             "int16", "uint32", "int32", "uint64", "int64", "bool", "complex64", "complex128"]
    for wrong in ("f4", "<f4", "float128", ""):
        with pytest.raises(ValueError, match=f"argument dtype is {wrong!r}: pass one of {' '.join(names)}$"):
            weft.zeros(1, wrong)


def test_no_gpu(me, n):
    """Same as device() on every PE; if only one PE asks for device memory, the other PEs get an error."""
    try:
        weft.device()
    except RuntimeError as missing:
        reason = str(missing).removeprefix("device: ")
        with pytest.raises(RuntimeError) as raised:
            weft.empty(3, space="device")
        assert str(raised.value) == f"empty: {reason}"
        with pytest.raises(RuntimeError, match="^device_team: "):
            weft.device_team()
        if n > 1:
            with pytest.raises(RuntimeError if me == 0 else ValueError):
                weft.zeros(3, space="device" if me == 0 else "host")
