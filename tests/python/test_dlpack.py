# SPDX-License-Identifier: BSD-3-Clause
"""DLPack in and out: producers and consumers of every version, layouts, types, and lifetimes; with torch if it is
installed.
"""
import array
import ctypes
import gc
import threading

import pytest
import weft

np = pytest.importorskip("numpy")
try:
    import torch
except ImportError:
    torch = None
needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


class Old:
    """A tensor of DLPack before version 1, without max_version."""

    def __init__(self, buffer):
        self.buffer = buffer

    def __dlpack__(self, stream=None):
        return self.buffer.__dlpack__()

    def __dlpack_device__(self):
        return self.buffer.__dlpack_device__()


class New(Old):
    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self.buffer.__dlpack__(max_version=max_version)


def show(shape, dtype="float32"):
    buffer = weft.zeros(shape, dtype)
    return buffer, np.asarray(buffer)


@pytest.mark.parametrize("kind", [Old, New])
def test_producers_of_every_age(kind, me):
    source, array_ = show((2, 3))
    array_[:] = np.arange(6).reshape(2, 3)
    dest, got = show((2, 3))
    weft.put(dest, kind(source), me)
    assert got.tolist() == [[0, 1, 2], [3, 4, 5]]
    weft.get(kind(dest), weft.zeros((2, 3)), me)
    assert (got == 0).all()
    weft.all_reduce(kind(source))


def test_producers_that_fail(me):
    buffer = weft.zeros(4)

    class Broken(Old):
        def __dlpack__(self, **options):
            raise OSError("out of order")

    class Nothing(Old):
        def __dlpack__(self, **options):
            return None

    class Nowhere(Old):
        def __dlpack_device__(self):
            return ()

    class Elsewhere(Old):
        def __dlpack_device__(self):
            return (7, 0)
    for kind, error in [(Broken, OSError), (Nothing, ValueError), (Nowhere, IndexError), (Elsewhere, ValueError)]:
        with pytest.raises(error):
            weft.put(buffer, kind(buffer), me)
        with pytest.raises((error, ValueError)):
            weft.all_reduce(kind(buffer))


def test_wrong_arguments_of_dlpack():
    buffer = weft.zeros(4)
    for wrong in (3, "1.0", (1,), (1, 0, 0), ("a", 0), [1, 0]):
        with pytest.raises(TypeError, match=r"Buffer.__dlpack__: argument max_version"):
            buffer.__dlpack__(max_version=wrong)
        with pytest.raises(TypeError, match=r"Buffer.__dlpack__: argument dl_device"):
            buffer.__dlpack__(dl_device=wrong)


class Layout(ctypes.Structure):
    """DLManagedTensorVersioned, for tensors that no library produces."""
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p),
                ("device", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Crafted:
    def __init__(self, values, shape, strides=None, **changes):
        self.values = (ctypes.c_float * len(values))(*values)
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = strides and (ctypes.c_int64 * len(strides))(*strides)
        fields = dict(major=1, minor=1, data=ctypes.addressof(self.values), device=1, ndim=len(shape), code=2, bits=32,
                      lanes=1, shape=self.shape, **({"strides": self.strides} if strides else {}))
        self.layout = Layout(**{**fields, **changes})

    def __dlpack_device__(self):
        return self.layout.device, self.layout.device_id

    def __dlpack__(self, **options):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.layout), b"dltensor_versioned", None)


def test_layouts(me):
    dest, got = show(4)
    for source, expected in [
            (Crafted([1, 2, 3, 4], [4]), [1, 2, 3, 4]), (Crafted([1, 2, 3, 4], [4], [1]), [1, 2, 3, 4]),
            (Crafted([1, 2, 3, 4], [2, 2]), [1, 2, 3, 4]), (Crafted([1, 2, 3, 4], [1, 4], [99, 1]), [1, 2, 3, 4]),
            (Crafted([9, 1, 2, 3, 4], [4], byte_offset=4), [1, 2, 3, 4]),
            (Crafted([1, 2, 3, 4], [4], device=3), [1, 2, 3, 4]), (Crafted([1, 2, 3, 4], [4], flags=1), [1, 2, 3, 4])]:
        weft.put(dest, source, me)
        assert got.tolist() == expected
    for source, message in [
            (Crafted([1] * 8, [4], [2]), "not contiguous"), (Crafted([1] * 4, [2, 2], [1, 2]), "not contiguous"),
            (Crafted([1] * 4, [4], major=2), "DLPack version 2"), (Crafted([1] * 4, [2], lanes=2), "2 lanes"),
            (Crafted([1] * 4, [4], code=9), "DLPack's code 9 of 32 bits"), (Crafted([1] * 4, [4], bits=128), "128 bits")]:
        with pytest.raises(ValueError, match=message):
            weft.put(dest, source, me)
    with pytest.raises(ValueError, match="argument dest is read-only"):
        weft.get(Crafted([0] * 4, [4], flags=1), dest, me)


def test_rows_of_matrices(me):
    """A leading dimension by DLPack's strides, in elements."""
    a = Crafted(range(8), [2, 3], [4, 1])
    b, c = np.eye(3, dtype="f"), np.zeros((2, 3), "f")
    weft.matmul_all_reduce(c, a, b, "avg")
    assert c.tolist() == [[0, 1, 2], [4, 5, 6]]
    weft.matmul_all_reduce(c, Crafted(range(8), [2, 3], [1, 2]), b, "avg")
    assert c.tolist() == [[0, 2, 4], [1, 3, 5]]
    for strides in ([2, 1], [-4, 1], [1, 1], [1, -2], [0, 1]):
        with pytest.raises(ValueError, match="argument a does not have contiguous rows or columns"):
            weft.matmul_all_reduce(c, Crafted(range(8), [2, 3], strides), b)


def test_out_to_numpy(me):
    for dtype in ("float32", "float64", "float16", "int8", "uint64", "complex64"):
        buffer = weft.zeros((2, 0, 3) if dtype == "int8" else (2, 3), dtype)
        got = np.from_dlpack(buffer)
        assert got.dtype == dtype and got.shape == buffer.shape


# --- torch ------------------------------------------------------------------------------------------

@needs_torch
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "uint8",
                                   "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "bool", "complex64"])
def test_torch_both_ways(dtype, me, n):
    kind = getattr(torch, dtype)
    buffer = weft.zeros((2, 3), dtype)
    tensor = torch.from_dlpack(buffer)
    assert tensor.dtype == kind and tensor.shape == (2, 3) and tensor.data_ptr() == buffer.ptr
    source = torch.tensor([[1, 0, 1], [0, 1, me % 2]]).to(kind)
    weft.put(buffer, source, (me + 1) % n)
    weft.barrier()
    expected = torch.tensor([[1, 0, 1], [0, 1, (me - 1) % n % 2]]).to(kind)
    assert torch.equal(tensor.view(torch.uint8), expected.view(torch.uint8))
    assert weft.empty(3, kind).dtype == dtype


@needs_torch
def test_torch_layouts(me, n):
    values = torch.arange(12, dtype=torch.bfloat16).reshape(3, 4)
    for wrong in (values.t(), values[:, :2]):
        with pytest.raises(ValueError, match="argument dest is not contiguous"):
            weft.all_reduce(wrong)
    weft.all_reduce(values[1:])
    weft.all_reduce(torch.nn.Parameter(torch.zeros(3)).detach())
    weft.all_reduce(torch.zeros(()))
    weft.all_reduce(torch.zeros(0))
    a = torch.ones(3, 6)[:, 1:5]
    c = torch.zeros(3, 2)
    weft.matmul_all_reduce(c, a, torch.ones(4, 2))
    assert (c == 4 * n).all()
    with pytest.raises(TypeError, match="pass an array"):
        weft.all_reduce(torch.float32)


@needs_torch
def test_torch_keeps_the_memory(me):
    """Tensors are freed by any thread, also after the Buffer was collected or freed."""
    gc.collect()
    weft.empty(1).free()
    buffer = weft.zeros(1000)
    place = buffer.ptr
    tensors = [torch.from_dlpack(buffer) for _ in range(4)]
    tensors[0].fill_(7)
    buffer.free()
    del buffer
    assert weft.empty(1000).ptr != place and (tensors[3] == 7).all()
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    weft.empty(1).free()
    gc.collect()
    weft.empty(1).free()
    assert weft.empty(1000).ptr == place


@needs_torch
def test_torch_and_blocks(me, n):
    block = weft.Block("host", 64)
    tensor = torch.from_dlpack(block.view((2, 8), "float32"))
    assert weft.block_of(tensor.data_ptr()) == block
    share = weft.block_of(tensor.data_ptr()).share(range(n))
    tensor.fill_(me)
    del block
    weft.barrier()
    peers = [torch.from_dlpack(share.view(r, (2, 8), "float32")) for r in range(n)]
    del share
    gc.collect()
    assert [peer[1, 7].item() for peer in peers] == list(range(n))
    weft.barrier()


@needs_torch
def test_torch_on_a_gpu(me, n):
    if not torch.cuda.is_available():
        pytest.skip("no GPU for torch")
    buffer = weft.zeros((2, 3), "bfloat16", "device")
    torch.cuda.set_device(weft.device())
    tensor = torch.from_dlpack(buffer)
    assert tensor.is_cuda and tensor.data_ptr() == buffer.ptr and tensor.device.index == weft.device()
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        source = torch.full((2, 3), me + 1, dtype=torch.bfloat16, device="cuda")
        weft.put(buffer, source, (me + 1) % n, stream=stream)
        weft.barrier(stream=stream)
        peer = torch.from_dlpack(buffer.peer((me + 1) % n)).clone()
    # A stream of another's: the producer's work, on torch's current one, comes first.
    other = torch.cuda.Stream()
    torch.cuda._sleep(10_000_000)
    late = torch.full((2, 3), 50.0 + me, dtype=torch.bfloat16, device="cuda")
    stream.synchronize()
    assert (tensor == (me - 1) % n + 1).all() and (peer == me + 1).all()
    weft.barrier()
    weft.put(buffer, late, (me + 1) % n, stream=other)
    weft.barrier(stream=other)
    other.synchronize()
    assert (tensor == 50 + (me - 1) % n).all()
    if torch.cuda.device_count() > 1:
        elsewhere = torch.zeros(2, 3, dtype=torch.bfloat16, device=f"cuda:{(weft.device() + 1) % torch.cuda.device_count()}")
        with pytest.raises((ValueError, BufferError), match="is on GPU|different CUDA device"):  # or torch's own
            weft.put(buffer, elsewhere, me, stream=stream)
    assert array.array("f", [0]).tolist() == [0]


@needs_torch
def test_lazy_tensors(me):
    """The memory differs from the tensor's values, so reading and writing are refused."""
    tensor = torch.tensor([1 + 2j, 3 + 4j])
    buffer = weft.zeros(2, "complex64")
    for lazy, text in [(tensor.conj(), "resolve_conj"), (torch._neg_view(tensor), "resolve_neg"),
                       (torch.nn.Parameter(tensor, requires_grad=False).conj(), "resolve_conj")]:
        for call in (lambda: weft.put(buffer, lazy, me), lambda: weft.get(lazy, buffer, me),
                     lambda: weft.put_slice(buffer, lazy, 2, me)):
            with pytest.raises(BufferError, match=text):
                call()
        with pytest.raises((BufferError, ValueError)):
            weft.all_reduce(lazy)
    assert torch.from_dlpack(buffer).tolist() == [0, 0] and tensor.tolist() == [1 + 2j, 3 + 4j]
    weft.put(buffer, tensor.conj().resolve_conj(), me)
    assert torch.from_dlpack(buffer).tolist() == [1 - 2j, 3 - 4j]
    imag = weft.zeros(2)
    with pytest.raises((BufferError, ValueError), match="resolve_neg"):
        weft.put(imag, torch._neg_view(torch.ones(2)), me)
    weft.put(imag, torch.tensor([1 + 2j, 3 + 4j]).conj().imag.contiguous(), me)
    assert torch.from_dlpack(imag).tolist() == [-2, -4]


@needs_torch
def test_tensors_that_require_grad(me):
    """Such tensors may be read, but not written, because autograd would not notice."""
    parameter, buffer = torch.nn.Parameter(torch.ones(2)), weft.zeros(2)
    for tensor in (parameter, torch.ones(2, requires_grad=True), parameter * 1):
        weft.put(buffer, tensor, me)
        assert torch.from_dlpack(buffer).tolist() == [1, 1]
        with pytest.raises(BufferError, match="requires grad.*detach"):
            weft.get(tensor, buffer, me)
        with pytest.raises(BufferError, match="all_reduce: argument dest requires grad"):
            weft.all_reduce(tensor)
        weft.all_reduce(buffer, tensor)
        assert tensor.tolist() == [1, 1] and torch.from_dlpack(buffer).tolist() == [weft.n_pes()] * 2
    weft.all_reduce(parameter.detach())
    assert parameter.tolist() == [weft.n_pes()] * 2


@needs_torch
@pytest.mark.filterwarnings("ignore:Accessing the data pointer")
def test_tensors_without_memory(me):
    """Tensors with elements but without memory: with an emptied storage, and stand-ins for others."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    emptied = torch.ones(2)
    emptied.untyped_storage().resize_(0)
    with FakeTensorMode():
        fake = torch.ones(2)
    word, buffer = weft.zeros(1, "uint64"), weft.zeros(2)
    for tensor in (emptied, fake, torch._to_functional_tensor(torch.ones(2))):
        for name, call in [("source", lambda: weft.put(buffer, tensor, me)),
                           ("dest", lambda: weft.get(tensor, buffer, me)),
                           ("source", lambda: weft.put_signal(buffer, tensor, word, 1, me)),
                           ("source", lambda: weft.put_slice(buffer, tensor, 2, me)),
                           ("dest", lambda: weft.get_slice(tensor, buffer, 2, me)),
                           ("dest", lambda: weft.all_reduce(tensor)),
                           ("source", lambda: weft.all_reduce(buffer, tensor))]:
            with pytest.raises(ValueError, match=f"argument {name} has 2 elements of float32 and no memory"):
                call()
    weft.put(weft.zeros(0), torch.ones(0), me)
