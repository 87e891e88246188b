/* SPDX-License-Identifier: BSD-3-Clause */
#include "team_call.h"

#include "call.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <numeric>

namespace weft {

using c10d::ReduceOp;

/* Calls call(true), or call(false) if there is a complaint: then the call's type is invalid. */
template <typename Call> void TeamCall::make(const std::string &complaint, Call call) const {
    bool valid = complaint.empty();
    int rc = guarded([&] { return call(valid); });
    TORCH_CHECK(valid, "weft: ", name, ": ", complaint);
    TORCH_CHECK(rc == 0, "weft: ", name, ": ", error_text(rc));
}

static weft_dtype valid_if(bool valid, weft_dtype type) {
    return valid ? type : static_cast<weft_dtype>(0);
}

/* --- Arguments -------------------------------------------------------------------------------- */

static weft_dtype reduced_type(at::ScalarType type) {
    switch (type) {
    case at::kFloat:
        return WEFT_F32;
    case at::kDouble:
        return WEFT_F64;
    case at::kBFloat16:
        return WEFT_BF16;
    case at::kHalf:
        return WEFT_F16;
    case at::kChar:
        return WEFT_I8;
    case at::kShort:
        return WEFT_I16;
    case at::kInt:
        return WEFT_I32;
    case at::kLong:
        return WEFT_I64;
    case at::kByte:
        return WEFT_U8;
    case at::kUInt16:
        return WEFT_U16;
    case at::kUInt32:
        return WEFT_U32;
    case at::kUInt64:
        return WEFT_U64;
    case at::kBool:
        return WEFT_BOOL;
    case at::kComplexFloat:
        return WEFT_C64;
    case at::kComplexDouble:
        return WEFT_C128;
    default:
        return static_cast<weft_dtype>(0);
    }
}

static bool is_bitwise(const ReduceOp &op) {
    return op.op_ == ReduceOp::BAND || op.op_ == ReduceOp::BOR || op.op_ == ReduceOp::BXOR;
}

static weft_op reduction(const ReduceOp &op) {
    switch (op.op_) {
    case ReduceOp::AVG:
        return WEFT_AVG;
    case ReduceOp::PRODUCT:
        return WEFT_PROD;
    case ReduceOp::MIN:
        return WEFT_MIN;
    case ReduceOp::MAX:
        return WEFT_MAX;
    default: /* PREMUL_SUM is the sum of sources that are scaled before */
        return WEFT_SUM;
    }
}

static std::string complaint_of_reduction(const at::Tensor &source, const ReduceOp &op) {
    auto type = source.scalar_type();
    if (op.op_ >= ReduceOp::UNUSED)
        return c10::str("operation ", static_cast<int>(op.op_), " is unknown");
    if (is_bitwise(op) && !at::isIntegralType(type, true))
        return c10::str("bitwise operations take integers and bool, got ", type);
    if (reduced_type(type) == 0)
        return c10::str("cannot reduce ", type);
    return "";
}

/* Returns the tensor's elements in order, in memory without gaps: the tensor itself if it is so. */
static at::Tensor dense(const at::Tensor &tensor) {
    return tensor.contiguous();
}

static at::Tensor scaled(const at::Tensor &source, const ReduceOp &op) {
    if (op.op_ != ReduceOp::PREMUL_SUM || !op.supplement_)
        return dense(source);
    /* The name in all versions, of factors for any backend. */
    auto by = static_cast<c10d::NCCLPreMulSumSupplement *>(op.supplement_.get());
    auto product =
        by->tensor_factor.defined() ? source.mul(by->tensor_factor) : source.mul(by->double_factor);
    return dense(product.to(source.scalar_type()));
}

/* The tensor, or dense memory whose elements are stored in the tensor by keep(). */
struct Target {
    explicit Target(at::Tensor tensor)
        : tensor(tensor), memory(tensor.is_contiguous()
                                     ? tensor
                                     : at::empty(tensor.sizes(), tensor.options())) {}
    void keep() {
        if (!memory.is_same(tensor))
            tensor.copy_(memory);
    }
    at::Tensor tensor, memory;
};

static std::string complaint_of_sizes(const at::Tensor &dest, int64_t dest_parts,
                                      const at::Tensor &source, int64_t source_parts) {
    if (dest.scalar_type() != source.scalar_type())
        return c10::str("got ", dest.scalar_type(), " for the output, expected ",
                        source.scalar_type(), ", as the input");
    if (dest.numel() * source_parts != source.numel() * dest_parts)
        return c10::str("got an output of ", dest.numel(), " elements for an input of ",
                        source.numel(), ", expected ", source.numel() * dest_parts / source_parts);
    return "";
}

/* --- Moving ----------------------------------------------------------------------------------- */

void TeamCall::broadcast(at::Tensor tensor, int64_t root) const {
    Target target(tensor);
    if (rank == root && !target.memory.is_same(tensor))
        target.memory.copy_(tensor);
    auto at = target.memory.data_ptr();
    auto bytes = target.memory.nbytes();
    make("", [&](bool) {
        return weft_broadcast(team, at, at, bytes, WEFT_U8, static_cast<int>(root),
                              WEFT_STREAM_HOST);
    });
    target.keep();
}

void TeamCall::all_gather(at::Tensor dest, const at::Tensor &source) const {
    Target target(dest);
    auto from = dense(source);
    auto to = target.memory.data_ptr();
    auto at = from.const_data_ptr();
    auto bytes = from.nbytes();
    make(complaint_of_sizes(dest, size, source, 1), [&](bool valid) {
        return weft_all_gather(team, to, at, bytes, valid_if(valid, WEFT_U8), WEFT_STREAM_HOST);
    });
    target.keep();
}

void TeamCall::exchange(at::Tensor dest, const Counts &dest_counts, const at::Tensor &source,
                        const Counts &source_counts, std::string complaint) const {
    auto &given = source.defined() ? source : dest;
    auto bytes = given.defined() ? given.element_size() : 1;
    std::vector<size_t> sent, received;
    for (auto count : source_counts)
        sent.push_back(static_cast<size_t>(count * bytes));
    for (auto count : dest_counts)
        received.push_back(static_cast<size_t>(count * bytes));
    sent.resize(static_cast<size_t>(size));
    received.resize(static_cast<size_t>(size));
    auto to = dest.defined() ? dest.data_ptr() : nullptr;
    auto from = source.defined() ? source.const_data_ptr() : nullptr;
    make(complaint, [&](bool valid) {
        return weft_all_to_allv(team, to, received.data(), nullptr, from, sent.data(), nullptr, 1,
                                valid_if(valid, WEFT_U8), WEFT_STREAM_HOST);
    });
}

void TeamCall::barrier() const {
    make("", [&](bool) { return shmem_team_sync(team); });
}

/* --- Lists ------------------------------------------------------------------------------------ */

static at::Tensor joined(const TeamCall::Tensors &tensors) {
    if (tensors.empty())
        return {};
    TeamCall::Tensors flat;
    for (auto &tensor : tensors)
        flat.push_back(tensor.reshape({-1}));
    return at::cat(flat);
}

static TeamCall::Counts counts_of(const TeamCall::Tensors &tensors) {
    TeamCall::Counts counts;
    for (auto &tensor : tensors)
        counts.push_back(tensor.numel());
    return counts;
}

static void store_parts(const TeamCall::Tensors &dests, const at::Tensor &from) {
    int64_t begin = 0;
    for (auto dest : dests) {
        dest.copy_(from.narrow(0, begin, dest.numel()).view(dest.sizes()));
        begin += dest.numel();
    }
}

static std::string complaint_of_types(const TeamCall::Tensors &dests,
                                      const TeamCall::Tensors &sources) {
    auto &first = sources.empty() ? dests.front() : sources.front();
    for (auto list : {&dests, &sources})
        for (auto &tensor : *list)
            if (tensor.scalar_type() != first.scalar_type())
                return c10::str("got tensors of ", tensor.scalar_type(), " and ",
                                first.scalar_type(), ", expected one type");
    return "";
}

void TeamCall::exchange_lists(const Tensors &dests, const Tensors &sources,
                              std::string complaint) const {
    if (complaint.empty() && !(dests.empty() && sources.empty()))
        complaint = complaint_of_types(dests, sources);
    if (!complaint.empty()) {
        exchange({}, {}, {}, {}, complaint);
        return;
    }
    auto to_counts = counts_of(dests), from_counts = counts_of(sources);
    auto nelems = std::accumulate(to_counts.begin(), to_counts.end(), int64_t(0));
    auto to = dests.empty() ? at::Tensor() : at::empty({nelems}, dests.front().options());
    exchange(to, to_counts, joined(sources), from_counts);
    store_parts(dests, to);
}

void TeamCall::all_gather_list(const Tensors &dests, const at::Tensor &source) const {
    bool even = true;
    for (auto &dest : dests)
        even = even && dest.numel() == dests.front().numel();
    auto complaint = complaint_of_sizes(dests[static_cast<size_t>(rank)], 1, source, 1);
    if (!even || !complaint.empty()) {
        exchange_lists(dests, Tensors(dests.size(), source), complaint);
        return;
    }
    auto to = at::empty({source.numel() * size}, source.options());
    all_gather(to, source);
    store_parts(dests, to);
}

void TeamCall::reduce_scatter_list(at::Tensor dest, const Tensors &sources,
                                   const ReduceOp &op) const {
    reduce_scatter(dest, joined(sources), op);
}

/* --- Reducing --------------------------------------------------------------------------------- */

static void combine_bits(at::Tensor &into, const at::Tensor &with, const ReduceOp &op) {
    if (op.op_ == ReduceOp::BAND)
        into.bitwise_and_(with);
    else if (op.op_ == ReduceOp::BOR)
        into.bitwise_or_(with);
    else
        into.bitwise_xor_(with);
}

/* The library has no bitwise reductions of ordinary memory: the members exchange their parts, and
 * each combines its own. Both tensors are dense. */
void TeamCall::reduce_bits(at::Tensor dest, const at::Tensor &source, const ReduceOp &op,
                           const std::string &complaint) const {
    auto parts = at::empty_like(source);
    auto to = parts.data_ptr();
    auto from = source.const_data_ptr();
    auto bytes = source.nbytes() / static_cast<size_t>(size);
    make(complaint, [&](bool valid) {
        return weft_all_to_all(team, to, from, bytes, valid_if(valid, WEFT_U8), WEFT_STREAM_HOST);
    });
    auto each = parts.view({size, -1});
    auto mine = dest.view({-1});
    mine.copy_(each[0]);
    for (int i = 1; i < size; i++)
        combine_bits(mine, each[i], op);
}

void TeamCall::all_reduce(at::Tensor dest, const at::Tensor &source, const ReduceOp &op) const {
    auto complaint = complaint_of_reduction(source, op);
    if (is_bitwise(op)) {
        auto nelems = source.numel(), part = (nelems + size - 1) / size;
        auto padded = at::zeros({part * size}, source.options());
        padded.narrow(0, 0, nelems).copy_(source.reshape({-1}));
        auto mine = at::empty({part}, source.options());
        reduce_bits(mine, padded, op, complaint);
        all_gather(padded, mine);
        dest.copy_(padded.narrow(0, 0, nelems).view(dest.sizes()));
        return;
    }
    Target target(dest);
    auto from = scaled(source, op);
    auto to = target.memory.data_ptr();
    auto at = from.const_data_ptr();
    auto nelems = static_cast<size_t>(from.numel());
    auto type = reduced_type(from.scalar_type());
    auto how = reduction(op);
    make(complaint, [&](bool valid) {
        return weft_all_reduce(team, to, at, nelems, valid_if(valid, type), how, WEFT_STREAM_HOST);
    });
    target.keep();
}

void TeamCall::reduce_scatter(at::Tensor dest, const at::Tensor &source, const ReduceOp &op) const {
    auto complaint = complaint_of_sizes(dest, 1, source, size);
    if (complaint.empty())
        complaint = complaint_of_reduction(source, op);
    Target target(dest);
    if (is_bitwise(op)) {
        reduce_bits(target.memory, dense(source), op, complaint);
        target.keep();
        return;
    }
    auto from = scaled(source, op);
    auto to = target.memory.data_ptr();
    auto at = from.const_data_ptr();
    auto nelems = static_cast<size_t>(dest.numel());
    auto type = reduced_type(from.scalar_type());
    auto how = reduction(op);
    make(complaint, [&](bool valid) {
        return weft_reduce_scatter(team, to, at, nelems, valid_if(valid, type), how,
                                   WEFT_STREAM_HOST);
    });
    target.keep();
}

} // namespace weft
