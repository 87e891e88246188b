# SPDX-License-Identifier: BSD-3-Clause
"""The common part of gpu_backend.py's scenes: this rank, tensors with new data each time, and comparisons, whose errors
are kept by name.

With Here.device on the CPU, to try the scenes out, scenes that need a GPU are left out.
"""
import contextlib

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

import job

DTYPES = (torch.float32, torch.bfloat16)
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}
SCENES, ERRORS = [], {}


def scene(function):
    """A scene for either backend; if its name contains weft_, for Weft only."""
    SCENES.append(function)
    return function


def gpu_scene(function):
    """Needs CUDA itself."""
    function.needs_gpu = True
    return scene(function)


class Here:
    """This rank; filled in by main."""


def setup(backend):
    Here.rank, Here.size = job.place()
    Here.gpu = torch.cuda.is_available()
    Here.device = torch.device("cuda", Here.rank % torch.cuda.device_count()) if Here.gpu else torch.device("cpu")
    if Here.gpu:
        torch.cuda.set_device(Here.device)
    if backend == "WEFT":
        import weft.torch
        weft.torch.install()
    Here.backend = backend
    Here.world = job.start(job.kind_for(Here.device), seconds_max=None)
    Here.group = Here.world.group_name
    dist.barrier()


def empty(*shape, dtype=torch.float32):
    return symm_mem.empty(*shape, dtype=dtype, device=Here.device)


def symmetric(values):
    """Returns a symmetric copy, and the values of all ranks in float64."""
    tensor = empty(*values.shape, dtype=values.dtype)
    assert symm_mem.rendezvous(tensor, Here.group) is not None
    tensor.copy_(values)
    return tensor, gathered(values)


def gathered(values):
    """(ranks, *shape) in float64."""
    parts = [torch.empty_like(values) for _ in range(Here.size)]
    dist.all_gather(parts, values.contiguous())
    return torch.stack([part.double() for part in parts])


def random(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=Here.device).to(dtype)


def poisoned(*shape, dtype=torch.float32):
    return torch.full(shape, float("nan"), dtype=torch.float32, device=Here.device).to(dtype)


def near(name, got, wanted, tolerance):
    """The error in units of the largest wanted value, kept under this name."""
    assert got.shape == wanted.shape, f"{name}: shape {tuple(got.shape)}, wanted {tuple(wanted.shape)}"
    error = (got.double() - wanted).abs().max().item() / max(wanted.abs().max().item(), 1e-30)
    ERRORS[name] = max(ERRORS.get(name, 0.0), error if error == error else float("inf"))
    assert error <= tolerance, f"{name}: error {error:.3g}, at most {tolerance:.3g}"


def same(got, wanted, what=""):
    assert torch.equal(got, wanted), f"{what}: got {got.flatten()[:8]}, wanted {wanted.flatten()[:8]}"


def same_on_all(tensor):
    """Bit by bit."""
    bits = tensor.contiguous().view(torch.uint8)
    parts = [torch.empty_like(bits) for _ in range(Here.size)]
    dist.all_gather(parts, bits)
    for rank, part in enumerate(parts):
        same(part, bits, f"bits of rank {rank}")


def raises(kind, text, function):
    try:
        function()
    except kind as error:
        assert text in str(error), f"error says {error!s}, without {text!r}"
        return
    raise AssertionError(f"no {kind.__name__} with {text!r}")


class Array:
    """Device memory as NumPy's interface describes it."""

    def __init__(self, address, count):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<i8", "data": (address, False),
                                         "version": 3}


def wait_for_gpu():
    if Here.gpu:
        torch.cuda.synchronize()


def stream():
    """A context: another stream, of a thread that may be new."""
    if not Here.gpu:
        return contextlib.nullcontext()
    torch.cuda.set_device(Here.device)
    return torch.cuda.stream(torch.cuda.Stream())
