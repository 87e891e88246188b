# SPDX-License-Identifier: BSD-3-Clause
"""The operators of tensor parallelism on DTensors. Results are those of the whole tensors: for example,
fused_matmul_all_reduce(A, B, "sum", group) is A @ B. The group is one dimension of the tensors' mesh. On this dimension:

                                            arguments                           results
    all_gather                              Shard(gather_dim)                   Replicate
    reduce_scatter                          Partial(reduce_op)                  Shard(scatter_dim)
    all_reduce                              Partial(reduce_op)                  Replicate
    fused_all_gather_[scaled_]matmul        A Shard(gather_dim), B Shard(1)     A Replicate, A @ B Shard(last)
    fused_[scaled_]matmul_reduce_scatter    A Shard(last), B Shard(0)           Shard(scatter_dim)
    fused_matmul_all_reduce                 A Shard(last), B Shard(0)           Replicate

Arguments with other placements are redistributed first, except Partial ones. On the mesh's other dimensions a reduction
keeps all placements. Products and all_gather keep the shards of A's rows (of any dimension, for all_gather), and
replicate everything else.

Each function here gets the operator on the ranks' own tensors as its first argument. Checks use the sizes of the whole
tensors, so all ranks raise the same error. torch.distributed.tensor takes a second to import and is not imported here:
a program that passes a DTensor has imported it.
"""
import math

import torch
import torch.distributed as dist
from torch.autograd.function import once_differentiable
from torch.distributed.device_mesh import DeviceMesh

from weft.torch._check import check_differentiable, check_dim
from weft.torch._fused import check_product
from weft.torch._groups import check_in_mesh, group_name
from weft.torch._scaled import check_lists, check_operands

PARTIAL_OPS = {"prod": "product"}  # DTensor's names of reductions, where they differ from the operators'


def _replicate():
    return dist.tensor.Replicate()


def _shard(dim):
    return dist.tensor.Shard(dim)


def _is_shard(placement):
    return type(placement) is dist.tensor.Shard


class _Place:
    """The mesh of one call's tensors, and the dimension of it that is the group. tensors: by the arguments' names."""

    def __init__(self, call, group, tensors):
        self.call, self.mesh = call, None
        for name, tensor in tensors.items():
            self.check(name, tensor)
        check_in_mesh(self.mesh)
        self.dim = self._dim_of(group)
        self.group = self.mesh.get_group(self.dim).group_name
        self.size, self.rank = self.mesh.size(self.dim), self.mesh.get_local_rank(self.dim)

    def check(self, name, tensor):
        if not isinstance(tensor, dist.tensor.DTensor):
            raise TypeError(f"{self.call}: got {name} of type {type(tensor).__name__} beside a DTensor, expected a DTensor "
                            "of the same mesh: pass distribute_tensor(x, mesh, placements) or DTensor.from_local(); or "
                            "pass to_local() of the others")
        if self.mesh is None:
            self.mesh = tensor.device_mesh
        elif tensor.device_mesh != self.mesh:
            raise ValueError(f"{self.call}: got {name} on {tensor.device_mesh}, expected the mesh of the other tensors, "
                             f"{self.mesh}")

    def _dim_of(self, group):
        """Returns the dimension of the mesh whose group this is. Dimensions of size 1 may share a group; a mesh as the
        group also has the dimension's name."""
        wanted, names = group_name(group), self.mesh.mesh_dim_names or ()
        of_dims = [self.mesh.get_group(dim).group_name for dim in range(self.mesh.ndim)]
        if wanted not in of_dims:
            raise ValueError(f"{self.call}: got the group {wanted!r}, expected the group of one dimension of the tensors' "
                             f"{self.mesh}, whose groups are {of_dims}")
        if isinstance(group, DeviceMesh) and group.mesh_dim_names and group.mesh_dim_names[0] in names:
            dim = names.index(group.mesh_dim_names[0])
            if of_dims[dim] == wanted:
                return dim
        return of_dims.index(wanted)

    def with_group(self, placements, wanted):
        """Returns the placements with `wanted` on the group's dimension."""
        return (*placements[:self.dim], wanted, *placements[self.dim + 1:])

    def everywhere(self):
        return (_replicate(),) * self.mesh.ndim

    def rows_of(self, tensor, wanted, cut, dims):
        """Returns the tensor's placements with `wanted` on the group's dimension. On others, shards of the tensor's first
        `dims` dimensions stay, and the rest becomes Replicate. The group cuts the dimension `cut`: shards of `cut` stay
        only before the group's dimension, because DTensor cuts in the order of the mesh's dimensions."""
        def stays(at, placement):
            return _is_shard(placement) and placement.dim < dims and (placement.dim != cut or at < self.dim)
        return self.with_group([each if stays(at, each) else _replicate() for at, each in enumerate(tensor.placements)],
                               wanted)

    def check_cut(self, sizes, dim, placements):
        """Checks that all ranks have equal parts of dimension `dim`, in tensors of these sizes and placements."""
        parts = math.prod([self.mesh.size(at) for at, each in enumerate(placements) if each == _shard(dim)])
        if sizes[dim] % parts:
            raise ValueError(f"{self.call}: got {sizes[dim]} in dimension {dim} of {list(sizes)}, expected a multiple of "
                             f"the {parts} parts into which {tuple(placements)} cut it on {self.mesh}")

    def column(self, tensor, wanted, rows):
        """Returns the rank's part of B, with `wanted` on the group's dimension and replicated on others. rows: the
        placements of A. On a dimension that cuts A's rows, each rank computes only a summand of B's gradient."""
        grads = [dist.tensor.Partial() if _is_shard(each) else _replicate() for each in rows]
        return local(tensor, self.with_group(self.everywhere(), wanted), self.with_group(grads, wanted))

    def whole(self, tensor, placements, shape, outermost=0):
        """Returns the DTensor of the ranks' results, whose layout has `outermost` as the outermost dimension."""
        return dist.tensor.DTensor.from_local(tensor, self.mesh, placements, run_check=False, shape=torch.Size(shape),
                                              stride=strides(shape, outermost))


def local(tensor, placements, grads=None):
    """Returns the rank's own part of a DTensor after redistribution to the placements. grads: the placements of its
    gradient, if they differ."""
    placements = tuple(placements)
    if tensor.placements != placements:
        tensor = tensor.redistribute(placements=placements)
    return tensor.to_local(grad_placements=placements if grads is None else grads)


def strides(shape, outermost):
    order = [outermost, *(dim for dim in range(len(shape)) if dim != outermost)]
    steps, step = [1] * len(shape), 1
    for dim in reversed(order[:len(shape)]):
        steps[dim] = step
        step *= max(1, shape[dim])
    return tuple(steps)


# --- Gradients ------------------------------------------------------------------------------------
# An operator's own gradient adds up the ranks' losses. Replicated tensors have the same gradient on all ranks, which
# would be counted once for each rank, so these functions replace the operator's gradient. They also communicate less.


class _Gathered(torch.autograd.Function):
    """Returns the gathered tensor; the gradient of the rank's shard is its part of the whole gradient."""

    @staticmethod
    def forward(ctx, whole, shard, dim, rank, size):
        ctx.part = dim, rank, size
        return whole.view_as(whole)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        dim, rank, size = ctx.part
        return None, grad.chunk(size, dim)[rank], None, None, None


class _Reduced(torch.autograd.Function):
    """Returns the reduced tensor. A reduction changes where a tensor is stored, not its value, so the gradient is the
    result's, on all ranks. dim: the dimension that was scattered, or None."""

    @staticmethod
    def forward(ctx, reduced, partial, reduce_op, dim, group):
        ctx.reduce_op, ctx.dim, ctx.group = reduce_op, dim, group
        return reduced.view_as(reduced)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        check_differentiable("all_reduce" if ctx.dim is None else "reduce_scatter", ctx.reduce_op)
        return None, grad if ctx.dim is None else torch.ops.weft.all_gather(grad, ctx.dim, ctx.group), None, None, None


class _Product(torch.autograd.Function):
    """Returns the sum of the ranks' products a @ b, which all ranks have."""

    @staticmethod
    def forward(ctx, product, a, b):
        ctx.save_for_backward(a, b)
        return product.view_as(product)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        _, needs_a, needs_b = ctx.needs_input_grad
        return (None, grad @ b.t() if needs_a else None,
                a.flatten(0, -2).t() @ grad.flatten(0, -2) if needs_b else None)


# --- all_gather, reduce_scatter, all_reduce -------------------------------------------------------


def all_gather(operator, input, gather_dim, group):
    place = _Place("all_gather", group, {"input": input})
    dim = check_dim("all_gather", "gather_dim", gather_dim, input)
    placed = place.rows_of(input, _shard(dim), dim, input.dim())
    place.check_cut(input.shape, dim, placed)
    shard = local(input, placed)
    gathered = _Gathered.apply(operator(shard.detach(), dim, place.group), shard, dim, place.rank, place.size)
    return place.whole(gathered, place.with_group(placed, _replicate()), input.shape, dim)


def _partial(place, input, reduce_op):
    """Returns the rank's part of a Partial tensor, whose gradient is that of the whole tensor."""
    placement = input.placements[place.dim]
    expected = PARTIAL_OPS.get(reduce_op, reduce_op)
    if type(placement) is not dist.tensor.Partial or placement.reduce_op != expected:
        raise ValueError(f"{place.call}: got input with {input.placements} on {place.mesh}, expected Partial({expected!r}) "
                         f"on the group's dimension {place.dim} for reduce_op {reduce_op!r}; redistribute() changes other "
                         "placements")
    return local(input, input.placements, [_replicate() if each.is_partial() else each for each in input.placements])


def reduce_scatter(operator, input, reduce_op, scatter_dim, group):
    place = _Place("reduce_scatter", group, {"input": input})
    dim = check_dim("reduce_scatter", "scatter_dim", scatter_dim, input)
    placed = place.with_group(input.placements, _shard(dim))
    if _shard(dim) in placed[place.dim + 1:]:
        raise ValueError(f"reduce_scatter: got input with {input.placements} on {place.mesh}, expected no {_shard(dim)} after "
                         f"the group's dimension {place.dim}, because DTensor cuts in the order of the mesh's dimensions")
    place.check_cut(input.shape, dim, placed)
    part = _partial(place, input, reduce_op)
    reduced = operator(part.detach(), reduce_op, dim, place.group)
    return place.whole(_Reduced.apply(reduced, part, reduce_op, dim, place.group), placed, input.shape)


def all_reduce(operator, input, reduce_op, group):
    place = _Place("all_reduce", group, {"input": input})
    part = _partial(place, input, reduce_op)
    reduced = operator(part.detach(), reduce_op, place.group)
    return place.whole(_Reduced.apply(reduced, part, reduce_op, None, place.group),
                       place.with_group(input.placements, _replicate()), input.shape)


# --- Products -------------------------------------------------------------------------------------


def _factors(call, A, Bs):
    if not isinstance(Bs, (list, tuple)):
        raise TypeError(f"{call}: got Bs of type {type(Bs).__name__}, expected a list")
    return {"A": A, **{f"Bs[{at}]": B for at, B in enumerate(Bs)}}


def _check_sum(call, reduce_op):
    if reduce_op != "sum":
        raise ValueError(f"{call}: got reduce_op {reduce_op!r}, expected 'sum': with DTensors the ranks have parts of one "
                         "product, of which only the sum has a meaning")


def _gather_results(place, A, placed, whole, products, Bs, outermost):
    """Returns a gather's results as DTensors: A, or None, and the products."""
    columns = place.with_group(placed, _shard(A.dim() - 1))
    return (None if whole is None else place.whole(whole, place.with_group(placed, _replicate()), A.shape, outermost),
            [place.whole(product, columns, [*A.shape[:-1], B.shape[1]], outermost) for product, B in zip(products, Bs)])


def fused_all_gather_matmul(operator, A, Bs, gather_dim, group, *, return_A=True):
    call = "fused_all_gather_matmul"
    place = _Place(call, group, _factors(call, A, Bs))
    check_product(call, A, Bs, gather_dim, "gather_dim", 1)
    last = A.dim() - 1
    placed = place.rows_of(A, _shard(gather_dim), gather_dim, last)
    place.check_cut(A.shape, gather_dim, placed)
    shard = local(A, placed)
    whole, products = operator(shard, [place.column(B, _shard(1), placed) for B in Bs], gather_dim, place.group,
                               return_A=return_A)
    if whole is not None:
        whole = _Gathered.apply(whole.detach(), shard, gather_dim, place.rank, place.size)
    return _gather_results(place, A, placed, whole, products, Bs, gather_dim if gather_dim < last else 0)


def fused_matmul_reduce_scatter(operator, A, B, reduce_op, scatter_dim, group):
    call = "fused_matmul_reduce_scatter"
    place = _Place(call, group, {"A": A, "B": B})
    _check_sum(call, reduce_op)
    check_product(call, A, [B], scatter_dim, "scatter_dim", 1)
    sizes, placed = [*A.shape[:-1], B.shape[1]], place.rows_of(A, _shard(A.dim() - 1), scatter_dim, A.dim() - 1)
    scattered = place.with_group(placed, _shard(scatter_dim))
    place.check_cut(sizes, scatter_dim, scattered)
    product = operator(local(A, placed), place.column(B, _shard(0), placed), "sum", scatter_dim, place.group)
    return place.whole(product, scattered, sizes)


def fused_matmul_all_reduce(operator, A, B, reduce_op, group):
    call = "fused_matmul_all_reduce"
    place = _Place(call, group, {"A": A, "B": B})
    _check_sum(call, reduce_op)
    check_product(call, A, [B], 0, "dimension", 1)
    placed = place.rows_of(A, _shard(A.dim() - 1), None, A.dim() - 1)
    a, b = local(A, placed), place.column(B, _shard(0), placed)
    product = _Product.apply(operator(a.detach(), b.detach(), "sum", place.group), a, b)
    return place.whole(product, place.with_group(placed, _replicate()), [*A.shape[:-1], B.shape[1]])


# --- Products of 8-bit floats --------------------------------------------------------------------


def _number(place, scale):
    """Returns one number, or None, as an ordinary tensor."""
    return local(scale, place.everywhere()) if isinstance(scale, dist.tensor.DTensor) else scale


def _rows_scale(place, scale, A, placements):
    """Returns the rank's part of A's scale. placements: those of A's rows."""
    if scale.numel() == 1:
        return _number(place, scale)
    place.check("A_scale", scale)
    if list(scale.shape) != [*A.shape[:-1], 1]:
        raise ValueError(f"{place.call}: got A_scale of {list(scale.shape)}, expected one number or {[*A.shape[:-1], 1]}")
    return local(scale, placements)


def _columns(place, name, given, B, sharded):
    """Returns the rank's part of B's scales or bias, sharded like B's columns or replicated."""
    if given is None:
        return None
    place.check(name, given)
    if given.dim() == 0 or given.shape[-1] != B.shape[1] or given.numel() != B.shape[1]:
        raise ValueError(f"{place.call}: got {name} of {list(given.shape)}, expected {[1, B.shape[1]]}")
    return local(given, place.with_group(place.everywhere(), _shard(given.dim() - 1) if sharded else _replicate()))


def _columns_scale(place, name, scale, B, sharded):
    return _number(place, scale) if scale.numel() == 1 else _columns(place, name, scale, B, sharded)


def fused_all_gather_scaled_matmul(operator, A, Bs, A_scale, B_scales, gather_dim, group, biases, result_scales,
                                   out_dtypes, use_fast_accum):
    call = "fused_all_gather_scaled_matmul"
    place = _Place(call, group, _factors(call, A, Bs))
    check_operands(call, A, Bs, gather_dim, "gather_dim")
    check_lists(call, Bs, B_scales=B_scales, biases=biases, result_scales=result_scales, out_dtypes=out_dtypes,
                use_fast_accum=use_fast_accum)
    placed = place.rows_of(A, _shard(gather_dim), gather_dim, A.dim() - 1)
    place.check_cut(A.shape, gather_dim, placed)
    scales = [_columns_scale(place, "B_scales", scale, B, True) for scale, B in zip(B_scales, Bs)]
    biases = [_columns(place, "biases", bias, B, True) for bias, B in zip(biases, Bs)]
    whole, products = operator(
        local(A, placed), [place.column(B, _shard(1), placed) for B in Bs], _rows_scale(place, A_scale, A, placed), scales,
        gather_dim, place.group, biases, [_number(place, scale) for scale in result_scales], out_dtypes, use_fast_accum)
    return _gather_results(place, A, placed, whole, products, Bs, gather_dim)


def fused_scaled_matmul_reduce_scatter(operator, A, B, A_scale, B_scale, reduce_op, orig_scatter_dim,
                                       scatter_dim_after_maybe_reshape, group, output_shape, bias=None,
                                       result_scale=None, out_dtype=None, use_fast_accum=False):
    call, dim = "fused_scaled_matmul_reduce_scatter", orig_scatter_dim
    place = _Place(call, group, {"A": A, "B": B})
    _check_sum(call, reduce_op)
    check_operands(call, A, [B], dim, "scatter dim for 2D tensor input to scaled_mm")
    sizes, placed = [*A.shape[:-1], B.shape[1]], place.rows_of(A, _shard(A.dim() - 1), dim, A.dim() - 1)
    if scatter_dim_after_maybe_reshape != dim or (output_shape is not None and list(output_shape) != sizes):
        raise ValueError(f"{call}: got scatter dimensions {dim} and {scatter_dim_after_maybe_reshape} and output_shape "
                         f"{output_shape}, expected {dim} twice and {sizes} for a DTensor A of {list(A.shape)}, which needs "
                         "no reshape")
    scattered = place.with_group(placed, _shard(dim))
    place.check_cut(sizes, dim, scattered)
    bias = _columns(place, "bias", bias, B, False)
    product = operator(
        local(A, placed), place.column(B, _shard(0), placed),
        _rows_scale(place, A_scale, A, place.with_group(placed, _replicate())),
        _columns_scale(place, "B_scale", B_scale, B, False), "sum", dim, dim, place.group, None,
        bias if place.rank == 0 else None,  # the ranks' biases would be added up
        _number(place, result_scale), out_dtype, use_fast_accum)
    return place.whole(product, scattered, sizes)
