# SPDX-License-Identifier: BSD-3-Clause
"""Gradients of the operators, computed by the operators.

    all_gather                 reduce_scatter(sum)
    reduce_scatter(sum, avg)   all_gather, divided for avg
    all_reduce(sum, avg)       all_reduce of the same
    all_to_all                 all_to_all with the splits exchanged
    C = gather(A) x B          dA: fused_matmul_reduce_scatter of dC x B^T;  dB = gather(A)^T x dC
    C = reduce(A x B)          dA: all_reduce(dC) x B^T;  dB = A^T x all_reduce(dC)
    C = scatter(A x B)         dA: fused_all_gather_matmul of dC and B^T;  dB = A^T x gather(dC)

Backward is collective like forward: if one member needs a gradient, all must compute it. A sum over members adds the
contributions of every member's loss, as in PyTorch.
"""
import torch
import torch.distributed.distributed_c10d as c10d

from weft.torch import _operators
from weft.torch._check import check_differentiable

ops = torch.ops.weft


def _weighted(grad, reduce_op, group_name):
    return grad if reduce_op == "sum" else grad / c10d._get_group_size_by_name(group_name)


# --- all_gather, reduce_scatter, all_reduce, all_to_all -----------------------------------------


def all_gather_setup(ctx, inputs, output):
    _, ctx.dim, ctx.group_name = inputs


def all_gather_backward(ctx, grad):
    return ops.reduce_scatter(grad, "sum", ctx.dim, ctx.group_name), None, None


def reduce_scatter_setup(ctx, inputs, output):
    _, ctx.reduce_op, ctx.dim, ctx.group_name = inputs


def reduce_scatter_backward(ctx, grad):
    check_differentiable("reduce_scatter", ctx.reduce_op)
    spread = ops.all_gather(_weighted(grad, ctx.reduce_op, ctx.group_name), ctx.dim, ctx.group_name)
    return spread, None, None, None


def all_reduce_setup(ctx, inputs, output):
    _, ctx.reduce_op, ctx.group_name = inputs


def all_reduce_backward(ctx, grad):
    check_differentiable("all_reduce", ctx.reduce_op)
    return ops.all_reduce(grad, ctx.reduce_op, ctx.group_name), None, None


def all_to_all_setup(ctx, inputs, output):
    _, ctx.output_splits, ctx.input_splits, ctx.group_name = inputs


def all_to_all_backward(ctx, grad):
    back = ops.all_to_all(grad, ctx.input_splits, ctx.output_splits, ctx.group_name)
    return back, None, None, None


# --- Fused products ------------------------------------------------------------------------------


def gather_matmul_setup(ctx, inputs, keyword_only_inputs, output):
    A, Bs, ctx.dim, ctx.group_name = inputs
    ctx.save_for_backward(A, *Bs)


def gather_matmul_backward(ctx, grad_whole, grads):
    needs_a, needs_bs = ctx.needs_input_grad[:2]
    return *_gather_matmul_grads(ctx, needs_a, needs_bs, grad_whole, grads), None, None


def _gather_matmul_grads(ctx, needs_a, needs_bs, grad_whole, grads):
    """Returns A's gradient and those of Bs, None where none is needed. Gathers A again instead of keeping it from forward
    to backward."""
    A, *Bs = ctx.saved_tensors
    pairs = [(grad, b) for grad, b in zip(grads, Bs) if grad is not None]
    grad_a = _gathered_grad(ctx, grad_whole, pairs) if needs_a else None
    whole = ops.all_gather(A, ctx.dim, ctx.group_name) if any(needs_bs) else None
    grad_bs = [_product_of_rows(whole, grad) if needed and grad is not None else None
               for needed, grad in zip(needs_bs, grads)]
    return grad_a, grad_bs


def _gathered_grad(ctx, grad_whole, pairs):
    """Computes one product for all Bs, with their columns side by side."""
    parts = []
    if pairs:
        grad, b = pairs[0]
        if len(pairs) > 1:
            grad, b = torch.cat([grad for grad, _ in pairs], -1), torch.cat([b for _, b in pairs], 1)
        parts.append(_operators.fused_matmul_reduce_scatter(grad, b.t(), "sum", ctx.dim, ctx.group_name))
    if grad_whole is not None:
        parts.append(ops.reduce_scatter(grad_whole, "sum", ctx.dim, ctx.group_name))
    return sum(parts[1:], parts[0]) if parts else None


def _product_of_rows(left, right):
    """Returns left^T x right over all their rows."""
    return left.flatten(0, -2).t() @ right.flatten(0, -2)


def matmul_scatter_setup(ctx, inputs, output):
    A, B, ctx.reduce_op, ctx.dim, ctx.group_name = inputs
    ctx.save_for_backward(A, B)


def matmul_scatter_backward(ctx, grad):
    A, B = ctx.saved_tensors
    needs_a, needs_b = ctx.needs_input_grad[:2]
    grad = _weighted(grad, ctx.reduce_op, ctx.group_name)
    bs = [B.t()] if needs_a else []
    whole, products = _operators.fused_all_gather_matmul(grad, bs, ctx.dim, ctx.group_name, return_A=needs_b)
    return (products[0] if needs_a else None, _product_of_rows(A, whole) if needs_b else None,
            None, None, None)


def matmul_reduce_setup(ctx, inputs, output):
    A, B, ctx.reduce_op, ctx.group_name = inputs
    ctx.save_for_backward(A, B)


def matmul_reduce_backward(ctx, grad):
    A, B = ctx.saved_tensors
    needs_a, needs_b = ctx.needs_input_grad[:2]
    whole = ops.all_reduce(grad, ctx.reduce_op, ctx.group_name)
    return whole @ B.t() if needs_a else None, _product_of_rows(A, whole) if needs_b else None, None, None


# --- Without the dispatcher ----------------------------------------------------------------------


def recorded(name, kernel, setup, backward):
    """Returns an operator, whose last argument is the group, as a function that records its gradient itself, which takes
    less time than the same rules in PyTorch's dispatcher (docs/performance.md). It has no setup_context(), because
    PyTorch looks up the signature in every call of a function that has one."""
    def forward(ctx, *inputs):
        output = kernel(*inputs)
        setup(ctx, (*inputs[:-1], inputs[-1].name), output)
        return output
    return _function(name, forward, backward)


def _function(name, forward, backward):
    return type(name, (torch.autograd.Function,),
                {"forward": staticmethod(forward), "backward": staticmethod(backward)}).apply


def recorded_gather_matmul(name, kernel):
    """Like recorded(). Autograd sees only tensors that are arguments and results themselves, not those in lists."""
    def forward(ctx, return_A, dim, group, A, *Bs):
        whole, products = kernel(A, Bs, dim, group, return_A=return_A)
        gather_matmul_setup(ctx, (A, Bs, dim, group.name), None, None)
        return whole, *products

    def backward(ctx, grad_whole, *grads):
        _, _, _, needs_a, *needs_bs = ctx.needs_input_grad
        grad_a, grad_bs = _gather_matmul_grads(ctx, needs_a, needs_bs, grad_whole, grads)
        return None, None, None, grad_a, *grad_bs

    function = _function(name, forward, backward)

    def call(A, Bs, dim, group, *, return_A=True):
        whole, *products = function(return_A, dim, group, A, *Bs)
        return whole, products
    return call
