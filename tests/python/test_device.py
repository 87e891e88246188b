# SPDX-License-Identifier: BSD-3-Clause
"""Memory of GPUs from Python: a Buffer's interfaces, calls by the host, and calls on streams. On the machine's GPUs, or
on the pretended one of tests/gpu/driver (device.t).
"""
import array
import ctypes
import struct

import pytest
import weft

try:
    weft.empty(1, space="device").free()
except RuntimeError as missing:
    pytest.skip(f"no GPU: {missing}", allow_module_level=True)

DEFAULT = 0  # CUDA's default stream


def on_device(values, code="f", dtype="float32"):
    buffer = weft.empty(len(values), dtype, "device")
    weft.put(buffer, array.array(code, values), weft.my_pe())
    return buffer


def values_of(buffer, code="f"):
    got = array.array(code, [0] * buffer.size)
    weft.get(got, buffer, weft.my_pe())
    return got.tolist()


def raw(buffer):
    return memoryview(buffer.view(buffer.nbytes, "uint8"))


def catch_up():
    """Waits for the stream: streams do not hold memory, so a test must not leave work behind."""
    word = weft.zeros(1, "uint64")
    weft.signal(word, 1, weft.my_pe(), stream=DEFAULT)
    weft.wait(word, 1)


class Dlpack:
    """A tensor of a library that supports DLPack only; records the stream that it was asked with."""

    def __init__(self, buffer):
        self.buffer, self.streams = buffer, []

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        return self.buffer.__dlpack__(stream=stream, max_version=max_version)

    def __dlpack_device__(self):
        return self.buffer.__dlpack_device__()


class Cuda:
    """An array of a library that supports __cuda_array_interface__ only."""

    def __init__(self, buffer, **changes):
        self.__cuda_array_interface__ = {**buffer.__cuda_array_interface__, **changes}


def test_attributes():
    buffer = weft.zeros((2, 3), "float16", "device")
    assert (buffer.space, buffer.shape, buffer.nbytes) == ("device", (2, 3), 12)
    assert "GPU memory" in repr(buffer)
    assert buffer.__dlpack_device__() == (2, weft.device())
    interface = buffer.__cuda_array_interface__
    assert interface["data"] == (buffer.ptr, False) and interface["typestr"] == "<f2" and interface["version"] == 3
    assert interface["shape"] == (2, 3) and interface["strides"] is None
    with pytest.raises(BufferError, match="GPU memory cannot be shown to processors"):
        memoryview(buffer)
    assert not hasattr(weft.zeros(4, "bfloat16", "device"), "__cuda_array_interface__")


def test_zeros_and_put_and_get(me, n):
    assert values_of(weft.zeros(5, space="device")) == [0] * 5
    buffer = on_device([me] * 4)
    weft.barrier()
    got = array.array("f", [0] * 4)
    weft.get(got, buffer, (me + 1) % n)
    assert got.tolist() == [(me + 1) % n] * 4
    other = weft.empty(4, space="device")
    weft.put(other, buffer, (me + 1) % n)
    weft.barrier()
    assert values_of(other) == [(me - 1) % n] * 4


def test_peers(me, n):
    buffer = weft.zeros(4, space="device")
    for pe in range(n):
        peer = buffer.peer(pe)
        assert peer.__dlpack_device__() == buffer.__dlpack_device__() and (peer.ptr == buffer.ptr) == (pe == me)


def test_elements(me, n):
    """The library's own copies read and write numbers; a slice is a view."""
    buffer = weft.zeros((4, 6), "int32", "device")
    buffer[:] = [[10 * i + j for j in range(6)] for i in range(4)]
    assert buffer[2, 3] == 23 and buffer[-1, -1] == 35 and buffer[1].tolist() == list(range(10, 16))
    assert buffer[::2, ::-2].tolist() == [[5, 3, 1], [25, 23, 21]] and [int(x) for x in buffer[3]] == list(range(30, 36))
    part = buffer[1:3, 2:4]
    part[:] = array.array("h", [-1, -2])
    part[0, 0] = 7
    assert buffer.tolist()[1:3] == [[10, 11, 7, -2, 14, 15], [20, 21, -1, -2, 24, 25]]
    assert part.ptr == buffer.ptr + 32 and part.__cuda_array_interface__["strides"] == (24, 4)
    assert repr(part).endswith("in GPU memory: [[7, -2], [-1, -2]]>")
    large = weft.empty(600000, "float32", "device")
    large.fill(0.5)
    assert large[0] == large[-1] == large[299999] == 0.5 and repr(large).endswith("[0.5, 0.5, 0.5, ..., 0.5, 0.5, 0.5]>")
    large[1::100000] = range(6)
    assert large[::100000].tolist() == [0.5] * 6 and large[1::100000].tolist() == list(range(6))
    for wrong in (1.5, 2**31, "x", [1, 2]):
        with pytest.raises((TypeError, OverflowError, ValueError)):
            buffer[0] = wrong
    with pytest.raises(BufferError, match="cannot be shown to processors"):
        buffer.numpy()


def test_elements_of_both_spaces(me, n):
    host, device = weft.zeros(4, "float64"), weft.zeros(4, "float64", "device")
    host[:] = [1, 2, 3, 4]
    device[:] = host
    device[1:3] = host[::3]
    host[:] = device[::-1]
    assert host.tolist() == [4, 4, 1, 1] and device.tolist() == [1, 1, 4, 4]
    wide, other = weft.zeros(4, "complex128", "device"), weft.zeros(4, "float64", "device")
    wide[:] = device
    other[:] = device
    other[2:] = device[:2]
    other[:2] = Dlpack(host[:2])
    assert wide.tolist() == [1, 1, 4, 4] and other.tolist() == [4, 4, 1, 1]
    host[:] = Dlpack(device)
    assert host.tolist() == [1, 1, 4, 4]
    with pytest.raises(ValueError, match="an array of float64 on GPU . cannot be assigned to elements of complex128"):
        wide[:] = Dlpack(device)
    host[::2] = device[:2]
    other[::-3] = device[2:]
    assert host.tolist() == [1, 1, 1, 4] and other.tolist() == [4, 4, 1, 4]
    with pytest.raises(ValueError, match="that is not a Buffer can only be assigned to contiguous elements"):
        host[::2] = Dlpack(device[:2])
    with pytest.raises(NotImplementedError, match="GPU memory that is not symmetric"):
        weft.Block("device", 16).view(4, "float32")[0]


def test_overlapping_elements(me, n):
    """Views of one memory are assigned as if all of the value were read first."""
    count = 100000
    for whose in (me, (me + 1) % n):
        buffer = weft.zeros(count, "int32", "device")
        buffer[:] = array.array("i", range(count))
        weft.barrier()
        seen = buffer.peer(whose)
        seen[1:] = seen[:-1]
        weft.barrier()
        assert buffer.tolist() == [0, *range(count - 1)]
        weft.barrier()
        seen[:-2] = seen[2:]
        seen[:] = seen
        weft.barrier()
        assert buffer.tolist() == [*range(1, count - 1), count - 3, count - 2]
        weft.barrier()
    with pytest.raises(ValueError, match="that it does not overlap"):
        buffer[1:3] = Dlpack(buffer[:2])
    buffer[2:4] = Dlpack(buffer[:2])
    assert buffer[:5].tolist() == [1, 2, 1, 2, 5]


def test_reversed_and_empty_views():
    """Reversed dimensions are not exported, because torch does not check. The address of an empty array is 0."""
    buffer = weft.zeros((3, 4), space="device")
    for reversed_view, dim in ((buffer[::-1], 0), (buffer[:, ::-2], 1)):
        with pytest.raises(AttributeError, match=f"dimension {dim} of this Buffer is reversed"):
            reversed_view.__cuda_array_interface__
        with pytest.raises(BufferError, match=f"dimension {dim} is reversed"):
            reversed_view.__dlpack__()
    assert buffer[::-1][:1].__cuda_array_interface__["strides"] is None
    empty = buffer[:0].__cuda_array_interface__
    assert empty["data"] == (0, False) and empty["shape"] == (0, 4)


def test_polling_words(me, n):
    """A flag goes round the PEs in GPU memory, polled by atomics and by g: no such loop keeps other threads from
    running."""
    words, rounds = weft.zeros(2, "int64", "device"), 20
    weft.barrier()
    for turn in range(1, rounds + 1):
        for index, look in ((0, weft.atomic_fetch), (1, weft.g)):
            if me == 0:
                weft.atomic_set(words, turn, (me + 1) % n, index=index)
            while look(words, me, index=index) != turn:
                pass
            if me != 0:
                weft.atomic_add(words, 1, (me + 1) % n, index=index)
    weft.barrier()
    assert weft.atomic_swap(words, -1, me) == rounds and weft.atomic_compare_swap(words, -1, 5, me) == -1
    assert [weft.atomic_fetch_add(words, 2, me), weft.atomic_fetch_inc(words, me), words[0]] == [5, 7, 8]
    assert weft.atomic_fetch_or(words, 3, me) == 8 and weft.atomic_fetch_xor(words, 1, me) == 11
    assert weft.atomic_fetch_and(words, 2, me) == 10 and weft.g(words, me) == 2


def test_elements_of_peers(me, n):
    buffer = weft.zeros(4, "int64", "device")
    buffer.fill(me)
    weft.barrier()
    right = buffer.peer((me + 1) % n)
    assert right.tolist() == [(me + 1) % n] * 4 and right[1:][0] == (me + 1) % n
    weft.barrier()
    right[::2] = [100 + me, 200 + me]
    right.view(2, offset=8)[0] = -me
    weft.barrier()
    left = (me - 1) % n
    assert buffer.tolist() == [100 + left, -left, 200 + left, me]


def test_arrays_of_other_libraries(me):
    source = on_device([1, 2, 3, 4])
    for other in (Dlpack(source), Cuda(source), Cuda(source, strides=(4,))):
        dest = weft.zeros(4, space="device")
        weft.put(dest, other, me)
        assert values_of(dest) == [1, 2, 3, 4]
    asked = Dlpack(source)
    weft.put(dest, asked, me)
    weft.put(dest, asked, me, stream=DEFAULT)
    assert asked.streams == [-1, 1]
    catch_up()


def test_wrong_arrays(me):
    buffer = weft.zeros(4, space="device")
    for other, message in [
            (Cuda(buffer, typestr=">f4"), "elements of typestr >f4"), (Cuda(buffer, strides=(8,)), "not contiguous"),
            (Cuda(buffer, strides=(6,)), "not contiguous"), (Cuda(buffer, strides=(-4,)), "not contiguous"),
            (Cuda(buffer, mask=Cuda(buffer)), "has a mask: pass an array without one"),
            (Cuda(buffer, data=(buffer.ptr, True)), "argument dest is read-only"), (Cuda(buffer, shape=(5,)), "5 of float32")]:
        with pytest.raises(ValueError, match=message):
            weft.get(*(other, buffer) if "dest" in message else (buffer, other), me)
            weft.put(buffer, other, me)
    elsewhere = Dlpack(buffer)
    elsewhere.__class__ = type("Elsewhere", (Dlpack,), {"__dlpack_device__": lambda self: (10, 0)})
    with pytest.raises(ValueError, match="a device of DLPack's type 10"):
        weft.put(buffer, elsewhere, me)


def test_streams(me, n):
    """The stream moves data and signals; the host waits for the word that the stream sets at the end."""
    data, word = weft.zeros(4, space="device"), weft.zeros(1, "uint64")
    source = on_device([me + 1] * 4)
    for turn in range(1, 5):
        weft.put_signal(data, source, word, turn, (me + 1) % n, stream=DEFAULT)
        weft.wait(word, turn)
        assert values_of(data) == [(me - 1) % n + 1] * 4
        weft.barrier(stream=DEFAULT)
        weft.signal(word, 0, me, stream=DEFAULT)
        weft.wait(word, 0)
        weft.sync(stream=DEFAULT)
        weft.fence(stream=DEFAULT)
        weft.quiet(stream=DEFAULT)
        weft.barrier()


def test_the_stream_waits(me, n):
    go, done = weft.zeros(1, "uint64", "device"), weft.zeros(1, "uint64")
    weft.barrier()
    assert weft.wait(go, 1, stream=DEFAULT) is None
    weft.signal(done, 1, me, stream=DEFAULT)
    assert memoryview(done).tolist() == [0]
    weft.barrier()
    weft.signal(go, 1, (me + 1) % n)
    assert weft.wait(done, 1) == 1


@pytest.mark.parametrize("dtype, code", [("float32", "f"), ("float64", "d"), ("int32", "i"), ("uint8", "B")])
def test_collectives_on_a_stream(dtype, code, me, n):
    source, word = on_device([me + 1, 2], code, dtype), weft.zeros(1, "uint64")
    whole = on_device([10 * me + i for i in range(2 * n)], code, dtype)

    def result(call, *arguments, size=2, **options):
        dest = weft.zeros(size, dtype, "device")
        call(dest, *arguments, stream=DEFAULT, **options)
        weft.barrier(stream=DEFAULT)
        weft.signal(word, 1, me, op="add", stream=DEFAULT)
        result.calls += 1
        weft.wait(word, result.calls)
        return values_of(dest, code)
    result.calls = 0
    assert result(weft.all_reduce, source) == [n * (n + 1) // 2, 2 * n]
    assert result(weft.all_reduce, source, "max") == [n, 2]
    assert result(weft.all_gather, source, size=2 * n) == [x for pe in range(n) for x in (pe + 1, 2)]
    assert result(weft.broadcast, source, n - 1) == [n, 2]
    assert result(weft.reduce_scatter, whole) == [sum(10 * pe + 2 * me + i for pe in range(n)) for i in range(2)]
    assert result(weft.all_to_all, whole, size=2 * n) == [10 * pe + 2 * me + i for pe in range(n) for i in range(2)]


def test_reductions_of_every_type_on_a_stream(me, n):
    """Compared with the results of the calling thread, which test_collectives.py compares with numpy."""
    kinds = {"float16": "avg", "bfloat16": "sum", "float32": "avg", "float64": "prod", "bool": "max", "uint16": "sum",
             "complex64": "avg", "complex128": "prod"}
    for dtype, op in kinds.items():
        data = bytes((7 * i + 3 * me) % 2 if dtype == "bool" else (37 * i + me) % 64 for i in range(n * 32 * 16))
        whole = weft.empty(n * 32, dtype)
        raw(whole)[:] = data[:whole.nbytes]
        source, dest, part = (weft.empty(size, dtype, "device") for size in (n * 32, n * 32, 32))
        weft.put(source, whole, me)
        weft.all_reduce(dest, source, op, stream=DEFAULT)
        weft.reduce_scatter(part, source, op, stream=DEFAULT)
        catch_up()
        expected, got, of_part = weft.empty(n * 32, dtype), weft.empty(n * 32, dtype), weft.empty(32, dtype)
        weft.all_reduce(expected, whole, op)
        weft.get(got, dest, me)
        weft.get(of_part, part, me)
        assert raw(got) == raw(expected), dtype
        assert raw(of_part) == raw(expected)[me * part.nbytes:][:part.nbytes], dtype


def matrix(rows, cols, values):
    return on_device([values(i, j) for i in range(rows) for j in range(cols)]).view((rows, cols))


def test_products_on_a_stream(me, n):
    """Whole numbers, so that the results are exact. b is transposed, too."""
    shard, b = matrix(2, 3, lambda i, j: 10 * me + 3 * i + j), matrix(3, 4, lambda i, j: i - j)
    a = [[10 * pe + 3 * i + j for j in range(3)] for pe in range(n) for i in range(2)]
    product = [sum(row[k] * (k - j) for k in range(3)) for row in a for j in range(4)]
    c, again, whole = (weft.empty((2 * n, cols), space="device") for cols in (4, 4, 3))
    by_columns = matrix(4, 3, lambda i, j: j - i)
    weft.all_gather_matmul(c, shard, b, whole, stream=DEFAULT)
    weft.all_gather_matmul(again, shard, Cuda(by_columns, shape=(3, 4), strides=(4, 12)), stream=DEFAULT)
    catch_up()
    assert values_of(c.view(8 * n)) == values_of(again.view(8 * n)) == product
    assert values_of(whole.view(6 * n)) == [value for row in a for value in row]

    part, x = weft.empty((2, 4), space="device"), matrix(2 * n, 3, lambda i, j: i + j + me)
    total = weft.empty((2 * n, 4), space="device")
    weft.matmul_reduce_scatter(part, x, b, stream=DEFAULT)
    weft.matmul_all_reduce(total, x, b, "avg", stream=DEFAULT)
    catch_up()
    sums = [sum((i + k + pe) * (k - j) for k in range(3) for pe in range(n)) for i in range(2 * n) for j in range(4)]
    assert values_of(part.view(8)) == sums[8 * me:8 * me + 8]
    assert values_of(total.view(8 * n)) == pytest.approx([value / n for value in sums])
    with pytest.raises(ValueError, match="c.0..cols is 3"):
        weft.all_gather_matmul(whole, shard, b, stream=DEFAULT)


def test_what_is_not_there():
    f = weft.zeros(4, space="device")
    with pytest.raises(NotImplementedError, match="GPU memory: pass a stream"):
        weft.all_reduce(f)
    with pytest.raises(NotImplementedError, match="GPU memory: pass a stream"):
        weft.matmul_all_reduce(f.view((2, 2)), f.view((2, 2)), f.view((2, 2)))
    i = weft.zeros(4, "int16", "device")
    with pytest.raises(ValueError, match="op is WEFT_AVG, which WEFT_I16 does not have"):
        weft.all_reduce(i, op="avg", stream=DEFAULT)
    with pytest.raises(ValueError, match="not symmetric"):
        weft.all_gather(array.array("f", [0] * 4 * weft.n_pes()), array.array("f", [0] * 4), stream=DEFAULT)


def test_streams_of_other_libraries(me):
    class Torch:
        cuda_stream = DEFAULT

    class Protocol:
        def __cuda_stream__(self):
            return 0, DEFAULT

    class Cupy:
        ptr = DEFAULT
    for stream in (Torch(), Protocol(), Cupy()):
        weft.quiet(stream=stream)
    catch_up()
    Torch.cuda_stream = "x"
    for wrong in (Torch(), object(), "1", 1.5):
        with pytest.raises(ValueError, match="argument stream is"):
            weft.quiet(stream=wrong)


def test_freed_and_forgotten(me):
    first = weft.empty(1 << 20, "uint8", "device")
    place = first.ptr
    first.free()
    with pytest.raises(ValueError, match="was freed"):
        first.__dlpack__()
    second = weft.empty(1 << 20, "uint8", "device")
    assert second.ptr == place
    interface = second.__cuda_array_interface__
    second.free()  # the address's holder does not report when it is done, so the object decides
    third = weft.empty(1 << 20, "uint8", "device")
    assert third.ptr != interface["data"][0]


def test_blocks(me, n):
    """Memory of this GPU that others come to see; it is filled and read by way of symmetric memory."""
    block = weft.Block("device", 16)
    assert block.space == "device" and weft.block_of(block.ptr + 15) == block
    assert block.view(4, "float32").__dlpack_device__() == (2, weft.device())
    weft.get(block.view(4, "float32"), on_device([me + 1] * 4), me)
    share = block.share(range(n))
    weft.barrier()
    for member in range(n):
        seen = weft.empty(4, space="device")
        weft.put(seen, share.view(member, 4, "float32"), me)
        assert values_of(seen) == [member + 1] * 4
        seen.free()
    view = share.view((me + 1) % n, 4, "float32")
    del block, share
    weft.barrier()
    seen = weft.empty(4, space="device")
    weft.put(seen, view, me)
    assert values_of(seen) == [(me + 1) % n + 1] * 4
    weft.barrier()


def test_blocks_on_another_gpu(me, n):
    """C code makes them on any GPU; a Buffer of one names its GPU."""
    library, block = ctypes.CDLL(str(weft.get_library())), ctypes.c_void_p()
    library.shmemx_block_ptr.restype = ctypes.c_void_p
    other = 1 - weft.device() % 2
    if library.shmemx_block_alloc_on(other, ctypes.c_size_t(16), ctypes.byref(block)):
        pytest.skip(f"there is no GPU {other}")
    found = weft.block_of(library.shmemx_block_ptr(block))
    share = found.share(range(n))
    view = share.view(me, 4, "float32")
    assert view.__dlpack_device__() == (2, other)
    tensor = view.__dlpack__(dl_device=(2, other))
    with pytest.raises(BufferError, match=fr"the memory is on \(2, {other}\)"):
        view.__dlpack__(dl_device=(2, weft.device()))
    with pytest.raises(ValueError, match=f"is on GPU {other}, but this PE's streams work on GPU {weft.device()}"):
        weft.put(weft.empty(4, space="device"), view, me, stream=DEFAULT)
    weft.barrier()
    del tensor, view, share, found
    library.shmemx_block_free(block)


def test_pads_on_a_stream(me, n):
    share = weft.Block("device", 8 * n).share(range(n))
    pads, word = weft.empty(n, "uint64", "device"), weft.zeros(1, "uint64")
    weft.put(pads, array.array("Q", [share.ptr(r) for r in range(n)]), me)
    for turn in range(1, 4):
        weft.pad_put(pads, me, n, (me + 1) % n, 1, timeout_ms=20000, stream=DEFAULT)
        weft.pad_wait(pads, me, n, (me - 1) % n, 1, timeout_ms=20000, stream=DEFAULT)
        weft.pad_barrier(pads, me, n, 0, timeout_ms=20000, stream=DEFAULT)
        weft.signal(word, turn, me, stream=DEFAULT)
        weft.wait(word, turn)
    weft.barrier()


def test_engines_are_switched(me, n):
    """Selects what copies; the call returns the previous choice."""
    assert weft.set_engine("copy") == "auto"
    for engine, before in (("sm", "copy"), ("auto", "sm")):
        dest, source = weft.zeros(1000, space="device"), on_device([me + 1] * 1000)
        weft.barrier()
        weft.put(dest, source, (me + 1) % n, stream=DEFAULT)
        weft.barrier(stream=DEFAULT)
        catch_up()
        assert weft.set_engine(engine) == before
        weft.barrier()
    with pytest.raises(ValueError, match="'auto', 'sm', 'copy'"):
        weft.set_engine("dma")


# --- Calls by the thread ------------------------------------------------------------------------------

def test_atomics(me, n):
    right = (me + 1) % n
    for code, dtype in [("i", "int32"), ("Q", "uint64")]:
        words, fetch = on_device([5, 6, 7], code, dtype), array.array(code, [0])
        weft.barrier()
        assert weft.atomic_fetch_add(words, 10, right, index=1) == 6
        weft.atomic_inc(words, right)
        assert weft.atomic_compare_swap(words, 7, 9, right, index=2) == 7
        weft.atomic_fetch_or_nbi(fetch, words, 16, right)
        weft.quiet()
        assert fetch[0] == 6
        weft.barrier()
        assert values_of(words, code) == [22, 16, 9]
    reals = on_device([0.5])
    assert weft.atomic_swap(reals, 2.5, me) == 0.5 and weft.atomic_fetch(reals, me) == 2.5
    with pytest.raises(ValueError, match="argument fetch is in GPU memory"):
        weft.atomic_fetch_nbi(on_device([0]), reals, me)


def test_waits_and_tests(me, n):
    words, signal = on_device([0] * 3, "i", "int32"), weft.zeros(1, "uint64", "device")
    weft.barrier()
    for index in range(3):
        weft.atomic_set(words, index + 1, (me + 1) % n, index=index)
    weft.signal(signal, 4, (me + 1) % n)
    weft.wait_until_all(words, [1, 2, 3])
    weft.wait_until(words, 3, index=2)
    assert weft.wait_until_any(words, 3, ">=") == 2 and weft.wait_until_some(words, 1, ">") == [1, 2]
    assert weft.test(words, 1) and not weft.test_all(words, 1) and weft.test_some(words, 9) == []
    assert weft.wait(signal, 4) == 4 == weft.signal_fetch(signal)


def test_strided(me, n):
    dest, right, left = on_device([0] * 8), (me + 1) % n, (me - 1) % n
    weft.barrier()
    weft.iput(dest, array.array("f", [me + 1] * 4), right, dst=2)
    weft.ibput(dest, on_device([-1] * 8), right, 1, 4, 4, 1)
    weft.barrier()
    assert values_of(dest) == [-1, 0] + [left + 1, 0] * 3
    got = array.array("f", [0] * 4)
    weft.iget(got, dest, me, sst=2)
    assert got.tolist() == [-1] + [left + 1] * 3


def test_non_blocking_calls_keep_their_arrays(me, n):
    """What is put may go out of scope at once; by a context, too."""
    dest, right, many = on_device([0] * 100000), (me + 1) % n, 100000
    weft.barrier()
    for turn in range(10):
        weft.put_nbi(dest, array.array("f", [turn]) * many, right)
    weft.barrier()
    assert values_of(dest) == [9] * many
    weft.barrier()
    with weft.Ctx() as ctx:
        weft.put_nbi(dest, on_device([me] * many), right, ctx=ctx)
        ctx.quiet()
        weft.barrier()
        got = array.array("f", [0]) * many
        weft.get_nbi(got, dest, me, ctx=ctx)
        weft.quiet(ctx=ctx)
    assert got.tolist() == [(me - 1) % n] * many


def test_arrays_are_held_until_their_context_is_quiet(me):
    """An array that is held cannot be resized."""
    dest, by_default, by_ctx = on_device([0] * 4), array.array("f", [1] * 4), array.array("f", [2] * 4)
    with weft.Ctx() as ctx:
        weft.put_nbi(dest, by_default, me)
        weft.put_nbi(dest, by_ctx, me, ctx=ctx)
        ctx.quiet()
        by_ctx.append(0)
        with pytest.raises(BufferError):
            by_default.append(0)
        weft.barrier()
        by_default.append(0)
    signal = weft.zeros(1, "uint64")
    weft.put_signal_nbi(dest, by_default[:4], signal, 1, me)
    assert weft.wait(signal, 1) == 1 and values_of(dest) == [1] * 4


def test_arrays_are_let_go_with_their_team(me, n):
    """A team's end destroys its contexts, whose calls could not be completed afterwards."""
    dest, values = on_device([0] * 4), array.array("f", [3] * 4)
    team = weft.world.split(0, 1, n)
    ctx = weft.Ctx(team)
    weft.put_nbi(dest, values, me, ctx=ctx)
    with pytest.raises(BufferError):
        values.append(0)
    team.destroy()
    values.append(0)
    assert values_of(dest) == [3] * 4


def test_scans(me, n):
    values, dest = on_device([me + 1, 2], "i", "int32"), weft.zeros(2, "int32", "device")
    weft.inscan(dest, values)
    assert values_of(dest, "i") == [(me + 1) * (me + 2) // 2, 2 * (me + 1)]
    weft.exscan(values)
    assert values_of(values, "i") == [me * (me + 1) // 2, 2 * me]
    weft.all_reduce(dest, op="or")
    assert values_of(dest, "i")[1] == (2 | 4 * (n > 1))


def test_what_is_in_reach(me, n):
    buffer = on_device([1])
    assert weft.addr_accessible(buffer, n - 1) and weft.ptr(buffer, me) == buffer.ptr
    with pytest.raises(ValueError, match="lock has 1 elements of int64 in GPU memory"):
        weft.set_lock(weft.zeros(1, "int64", "device"))


FIELDS = "=IIiiiIqQQQQQqIIQQIIIIII"  # of weft_device_team


def in_gpu_memory(address, nbytes):
    """Returns the content, copied through symmetric memory."""
    class At:
        __cuda_array_interface__ = {"shape": (nbytes,), "typestr": "|u1", "data": (address, False), "version": 3}

    seen = weft.empty(nbytes, "uint8", "device")
    weft.put(seen, At(), weft.my_pe())
    return bytes(values_of(seen, "B"))


def test_device_teams(me, n):
    with weft.device_team(channels=3, slot_bytes=48) as team:
        fields = struct.unpack(FIELDS, team.bytes)
        assert len(team.bytes) == 128 and fields[2:5] == (me, n, me) and fields[13:15] == (3, 48)
        assert (team.me, team.n, team.channels, team.slot_bytes) == (me, n, 3, 48)
        assert in_gpu_memory(team.address, 128) == team.bytes
        assert repr(team) == f"<weft.DeviceTeam, rank {me} of {n}>"
        other = weft.device_team()
        assert other.address != team.address and (other.channels, other.slot_bytes) == (64, 4096)
        other.free()
    assert repr(team) == f"<weft.DeviceTeam, rank {me} of {n}, gone>"
    for use in (lambda: team.address, lambda: team.bytes, lambda: team.channels, team.free):
        with pytest.raises(ValueError, match="this DeviceTeam was freed"):
            use()


def test_device_teams_of_some(me, n):
    with weft.team([n - 1 - pe for pe in range(n)]) as backwards:
        handle = weft.device_team(backwards)
        assert (handle.me, handle.n) == (n - 1 - me, n)
    handle.free()


def test_device_teams_of_wrong_arguments(me, n):
    for channels, slot_bytes in ((0, 16), (1025, 16), (1 << 40, 16), (1, 8), (1, 1 << 40)):
        with pytest.raises(ValueError, match="device_team: argument (channels|slot_bytes) is"):
            weft.device_team(None, channels, slot_bytes)
    with pytest.raises(TypeError, match="channels"):
        weft.device_team(channels="many")
    with pytest.raises(TypeError, match="argument team"):
        weft.device_team(7)
    if n == 1:
        return
    with pytest.raises((TypeError, ValueError), match="argument channels" if me == 0 else "PE 0 has failed"):
        weft.device_team(channels="many" if me == 0 else 1)
