# SPDX-License-Identifier: BSD-3-Clause
"""Registration of the operators.

torch.ops.weft.* are functions of tensors with gradients, for CPU and CUDA; they can be compiled. torch.ops.symm_mem.*
are PyTorch's operators, which have kernels for CUDA only: their CPU kernels are registered here, so that the same
program runs without a GPU.
"""
import functools

import torch
import torch.distributed._symmetric_memory as torch_symm_mem

from weft.torch._backend import fused_runs
from weft.torch import (_collectives, _collectives_cuda, _eager, _exchange, _fused, _gradients, _moe, _norm, _peers, _products,
                        _scaled, _shapes)

_weft = torch.library.Library("weft", "DEF")
_symm_mem = torch.library.Library("symm_mem", "FRAGMENT")


def _define(schema, cpu, cuda, shape, setup=None, backward=None):
    """Registers one operator of torch.ops.weft."""
    name = schema.partition("(")[0]
    _weft.define(schema, tags=[torch._C.Tag.needs_fixed_stride_order])
    _weft.impl(name, cpu, "CPU")
    _weft.impl(name, cuda, "CUDA")
    torch.library.register_fake(f"weft::{name}", shape, lib=_weft)
    if backward is not None:
        torch.library.register_autograd(f"weft::{name}", backward, setup_context=setup, lib=_weft)


def _on_cpu(name, kernel):
    """Registers the CPU kernel of a PyTorch operator, if this version has the operator."""
    if hasattr(torch.ops.symm_mem, name):
        _symm_mem.impl(name, kernel, "CPU")


def _returns(name, argument):
    """Registers the shape function of an operator that returns its argument, if PyTorch has none."""
    key = f"symm_mem::{name}"
    if hasattr(torch.ops.symm_mem, name) and not torch._C._dispatch_has_kernel_for_dispatch_key(
            key, "Meta"):
        _symm_mem.impl(name, lambda *args: None if argument is None else args[argument], "Meta")


def _counted(kernel):
    name = kernel.__name__
    fused_runs[name] = 0

    @functools.wraps(kernel)
    def call(*args, **kwargs):
        result = kernel(*args, **kwargs)
        fused_runs[name] += 1
        return result
    return call


def _or_fallback(name, kernel):
    """Returns the kernel; within _test_mode() PyTorch's fallback runs instead, on functional collectives."""
    fallback = getattr(torch_symm_mem, f"_{name}_fallback")

    def chosen(*args, **kwargs):
        return (fallback if torch_symm_mem._is_test_mode else kernel)(*args, **kwargs)
    return chosen


def _no_multicast(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"{name} requires multicast support (NVSwitch / NVLS): got a device without it, or "
                                  "Weft's memory, which does not support it; use one_shot_all_reduce and "
                                  "all_gather")
    return refuse


def _of_newer(schema):
    """Registers a multicast operator that some versions of PyTorch lack, to be refused on every device."""
    name = schema.partition("(")[0]
    if not hasattr(torch.ops.symm_mem, name):
        _symm_mem.define(schema)
        _symm_mem.impl(name, _no_multicast(name), "CUDA")
    _on_cpu(name, _no_multicast(name))


_define("all_gather(Tensor input, int gather_dim, str group_name) -> Tensor",
        _collectives.all_gather, _collectives_cuda.all_gather, _shapes.all_gather,
        _gradients.all_gather_setup, _gradients.all_gather_backward)
_define("reduce_scatter(Tensor input, str reduce_op, int scatter_dim, str group_name) -> Tensor",
        _collectives.reduce_scatter, _collectives_cuda.reduce_scatter, _shapes.reduce_scatter,
        _gradients.reduce_scatter_setup, _gradients.reduce_scatter_backward)
_define("all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor",
        _collectives.all_reduce, _collectives_cuda.all_reduce, _shapes.all_reduce,
        _gradients.all_reduce_setup, _gradients.all_reduce_backward)
_define("all_to_all(Tensor input, SymInt[]? output_splits, SymInt[]? input_splits, str group_name)"
        " -> Tensor",
        _exchange.all_to_all, _collectives_cuda.all_to_all, _shapes.all_to_all,
        _gradients.all_to_all_setup, _gradients.all_to_all_backward)

_define("moe_dispatch(Tensor x, Tensor experts, Tensor? weights, Tensor? scales, int moe)"
        " -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
        _moe.dispatch, _moe.dispatch, _moe.dispatch_shape, _moe.dispatch_setup, _moe.dispatch_backward)
_define("moe_combine(Tensor data, Tensor? factors, Tensor? row_weights, Tensor experts, Tensor sources, Tensor offsets,"
        " int moe) -> (Tensor, Tensor)",
        _moe.combine, _moe.combine, _moe.combine_shape, _moe.combine_setup, _moe.combine_backward)

_define("all_reduce_rms_norm(Tensor x, Tensor? weight, float epsilon, Tensor? residual, Tensor? bias, str group_name)"
        " -> (Tensor, Tensor)", _norm.rms_norm, _norm.rms_norm, _norm.shape)
_define("all_reduce_rms_norm_f8(Tensor x, Tensor? weight, float epsilon, Tensor? residual, Tensor? bias, Tensor? scale,"
        " int group_size, str group_name) -> (Tensor, Tensor, Tensor, Tensor)",
        _norm.rms_norm_f8, _norm.rms_norm_f8, _norm.shape_f8)

_fused_rules = {
    "fused_all_gather_matmul": (_gradients.gather_matmul_setup, _gradients.gather_matmul_backward),
    "fused_matmul_reduce_scatter": (_gradients.matmul_scatter_setup, _gradients.matmul_scatter_backward),
    "fused_matmul_all_reduce": (_gradients.matmul_reduce_setup, _gradients.matmul_reduce_backward),
}


def _define_product(schema, kernel, cpu, cuda):
    """Registers a fused operator: for the dispatcher, and the kernel itself for calls without it (_products.py)."""
    name = schema.partition("(")[0]
    rules = _fused_rules.get(name, ())
    direct = _products.operators[name] = _eager.first(kernel)
    if name == "fused_all_gather_matmul":
        _products.recorded[name] = _gradients.recorded_gather_matmul(name, direct)
    elif rules:
        _products.recorded[name] = _gradients.recorded(name, direct, *rules)
    _define(schema, cpu, cuda, getattr(_shapes, name), *rules)


def _define_products():
    ours = _counted(_fused.fused_matmul_all_reduce)  # PyTorch has no such operator
    _define_product("fused_matmul_all_reduce(Tensor A, Tensor B, str reduce_op, str group_name) -> Tensor",
                    ours, ours, _collectives_cuda.with_memory(ours))
    for function in (_fused.fused_all_gather_matmul, _fused.fused_matmul_reduce_scatter,
                     _scaled.fused_all_gather_scaled_matmul, _scaled.fused_scaled_matmul_reduce_scatter):
        name, kernel = function.__name__, _counted(function)
        chosen = _or_fallback(name, kernel)
        schema = str(getattr(torch.ops.symm_mem, name).default._schema).partition("::")[2]
        _define_product(schema, kernel, chosen, _collectives_cuda.forward(name))
        _on_cpu(name, chosen)


_define_products()
for _kernel in (
        _collectives.one_shot_all_reduce, _collectives.one_shot_all_reduce_out,
        _collectives.one_shot_all_reduce_copy, _collectives.one_shot_all_reduce_copy_out,
        _collectives.two_shot_all_reduce_, _collectives.two_shot_all_reduce_out,
        _collectives.reduce_scatter_out, _exchange.all_to_all_vdev, _exchange.all_to_all_vdev_2d,
        _exchange.all_to_all_vdev_2d_offset, _peers.get_remote_tensors, _peers.nvshmem_put,
        _peers.nvshmem_get, _peers.nvshmem_put_with_signal,
        _peers.nvshmem_wait_for_signal, _peers.nvshmem_broadcast,
        _peers.nvshmem_all_to_all, _peers.tile_reduce, _peers.multi_root_tile_reduce,
        _peers.stream_write_value32_, _peers.memset32_):
    _on_cpu(_kernel.__name__, _kernel)
_on_cpu("_low_contention_all_gather", _collectives.low_contention_all_gather)
_on_cpu("_low_contention_reduce_scatter", _collectives.low_contention_reduce_scatter)

for _name in ("multimem_all_reduce_", "multimem_one_shot_all_reduce",
              "multimem_one_shot_all_reduce_out", "multimem_one_shot_reduce_out",
              "multimem_all_gather_out"):
    _on_cpu(_name, _no_multicast(_name))

for _schema in (
        "_low_contention_all_gather_ce_multicast(Tensor tensor, str group_name) -> Tensor",
        "_low_contention_all_gather_ce_multicast_out(Tensor tensor, str group_name, Tensor(a!) out) -> Tensor(a!)",
        "memcpy_to_multicast_(Tensor(a!) symm_mem_out, Tensor src, int byte_offset, str group_name) -> Tensor(a!)"):
    _of_newer(_schema)

for _name, _argument in (
        ("one_shot_all_reduce_out", 3), ("one_shot_all_reduce_copy_out", 4),
        ("two_shot_all_reduce_", 0), ("two_shot_all_reduce_out", 3), ("reduce_scatter_out", 3),
        ("all_to_all_vdev", None), ("stream_write_value32_", 0), ("memset32_", 0)):
    _returns(_name, _argument)
