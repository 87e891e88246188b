/* SPDX-License-Identifier: BSD-3-Clause */
#include "process_group.h"

#include "gil.h"
#include "team_call.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <numeric>

namespace weft {

using c10d::OpType;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;

GroupBackend::GroupBackend(shmem_team_t team, int rank, int size, Milliseconds timeout)
    : Backend(rank, size), team_(team), timeout_(timeout), timeout_default_(kBackendDefaultTimeout) {}

/* The thread may be in a call that never returns; it keeps what it needs. */
GroupBackend::~GroupBackend() {
    queue_->close("the process group has been destroyed");
}

c10::intrusive_ptr<c10d::Backend::Options> GroupBackend::getBackendOptions() {
    return c10::make_intrusive<Options>("weft", timeout_.load());
}

/* Makes a call whose work is act(TeamCall). A synchronous call needs another thread only if it has a
 * timeout of the program's choice, because a call of the library has none. */
template <typename Given, typename Act>
WorkPtr GroupBackend::issue(OpType type, const char *name, const Given &options, Tensors outputs,
                            Act act) {
    auto timeout = options.timeout > kNoTimeout ? options.timeout : timeout_.load();
    TeamCall team = {name, team_, rank_, size_};
    auto call = c10::make_intrusive<GroupCall>(
        rank_, type, name, std::move(outputs), timeout, [team, act = std::move(act)] {
            c10::NoGradGuard no_gradients;
            at::AutoDispatchBelowADInplaceOrView plain;
            act(team);
        });
    sequence_++;
    WithoutGil waiting;
    if (options.asyncOp) {
        queue_->append(call);
    } else if (timeout != timeout_default_) {
        queue_->append(call);
        call->wait();
    } else {
        queue_->run(call);
        call->wait();
    }
    return call;
}

static void check_one(const char *name, size_t tensors) {
    TORCH_CHECK(tensors == 1, "weft: ", name, ": got ", tensors, " tensors, expected one");
}

static void check_plain(const char *name, const Tensors &tensors) {
    for (auto &tensor : tensors)
        TORCH_CHECK(tensor.device().is_cpu() && tensor.layout() == at::kStrided, "weft: ", name,
                    ": got a tensor of layout ", tensor.layout(), " on ", tensor.device(),
                    ", expected a dense tensor on the CPU");
}

static void check_root(const char *name, int64_t root, int size) {
    TORCH_CHECK(root >= 0 && root < size, "weft: ", name, ": got root ", root, ", expected 0 to ",
                size - 1);
}

static void check_list(const char *name, const Tensors &tensors, int size) {
    TORCH_CHECK(tensors.size() == static_cast<size_t>(size), "weft: ", name, ": got a list of ",
                tensors.size(), " tensors, expected one for each of ", size, " ranks");
    check_plain(name, tensors);
}

/* --- Reductions ------------------------------------------------------------------------------- */

WorkPtr GroupBackend::allreduce(Tensors &tensors, const c10d::AllreduceOptions &options) {
    check_one("all_reduce", tensors.size());
    check_plain("all_reduce", tensors);
    return issue(OpType::ALLREDUCE, "all_reduce", options, tensors,
                 [tensor = tensors[0], op = options.reduceOp](const TeamCall &team) {
                     team.all_reduce(tensor, tensor, op);
                 });
}

WorkPtr GroupBackend::allreduce_coalesced(Tensors &tensors,
                                          const c10d::AllreduceCoalescedOptions &options) {
    check_plain("all_reduce_coalesced", tensors);
    return issue(OpType::ALLREDUCE_COALESCED, "all_reduce_coalesced", options, tensors,
                 [tensors, op = options.reduceOp](const TeamCall &team) {
                     for (auto &tensor : tensors)
                         team.all_reduce(tensor, tensor, op);
                 });
}

/* The tensors of the other ranks are not changed. */
WorkPtr GroupBackend::reduce(Tensors &tensors, const c10d::ReduceOptions &options) {
    check_one("reduce", tensors.size());
    check_plain("reduce", tensors);
    check_root("reduce", options.rootRank, size_);
    bool root = options.rootRank == rank_;
    return issue(OpType::REDUCE, "reduce", options, tensors,
                 [tensor = tensors[0], root, op = options.reduceOp](const TeamCall &team) {
                     team.all_reduce(root ? tensor : at::empty_like(tensor), tensor, op);
                 });
}

WorkPtr GroupBackend::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                           const c10d::ReduceScatterOptions &options) {
    check_plain("reduce_scatter_tensor", {output, input});
    return issue(OpType::_REDUCE_SCATTER_BASE, "reduce_scatter_tensor", options, {output},
                 [output, input, op = options.reduceOp](const TeamCall &team) {
                     team.reduce_scatter(output, input, op);
                 });
}

WorkPtr GroupBackend::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                      const c10d::ReduceScatterOptions &options) {
    const char *name = "reduce_scatter_tensor_coalesced";
    TORCH_CHECK(outputs.size() == inputs.size(), "weft: ", name, ": got ", outputs.size(),
                " outputs and ", inputs.size(), " inputs");
    check_plain(name, outputs);
    check_plain(name, inputs);
    return issue(OpType::COALESCED, name, options, outputs,
                 [outputs, inputs, op = options.reduceOp](const TeamCall &team) {
                     for (size_t i = 0; i < outputs.size(); i++)
                         team.reduce_scatter(outputs[i], inputs[i], op);
                 });
}

WorkPtr GroupBackend::reduce_scatter(Tensors &outputs, TensorLists &inputs,
                                     const c10d::ReduceScatterOptions &options) {
    check_one("reduce_scatter", outputs.size());
    check_one("reduce_scatter", inputs.size());
    check_plain("reduce_scatter", outputs);
    check_list("reduce_scatter", inputs[0], size_);
    return issue(OpType::REDUCE_SCATTER, "reduce_scatter", options, outputs,
                 [output = outputs[0], sources = inputs[0],
                  op = options.reduceOp](const TeamCall &team) {
                     team.reduce_scatter_list(output, sources, op);
                 });
}

/* --- Gathers ---------------------------------------------------------------------------------- */

WorkPtr GroupBackend::_allgather_base(at::Tensor &output, at::Tensor &input,
                                      const c10d::AllgatherOptions &options) {
    check_plain("all_gather_into_tensor", {output, input});
    return issue(
        OpType::_ALLGATHER_BASE, "all_gather_into_tensor", options, {output},
        [output, input](const TeamCall &team) { team.all_gather(output, input); });
}

WorkPtr GroupBackend::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                      const c10d::AllgatherOptions &options) {
    const char *name = "all_gather_into_tensor_coalesced";
    TORCH_CHECK(outputs.size() == inputs.size(), "weft: ", name, ": got ", outputs.size(),
                " outputs and ", inputs.size(), " inputs");
    check_plain(name, outputs);
    check_plain(name, inputs);
    return issue(OpType::COALESCED, name, options, outputs,
                 [outputs, inputs](const TeamCall &team) {
                     for (size_t i = 0; i < outputs.size(); i++)
                         team.all_gather(outputs[i], inputs[i]);
                 });
}

WorkPtr GroupBackend::allgather(TensorLists &outputs, Tensors &inputs,
                                const c10d::AllgatherOptions &options) {
    check_one("all_gather", outputs.size());
    check_one("all_gather", inputs.size());
    check_list("all_gather", outputs[0], size_);
    check_plain("all_gather", inputs);
    return issue(OpType::ALLGATHER, "all_gather", options, outputs[0],
                 [dests = outputs[0], source = inputs[0]](const TeamCall &team) {
                     team.all_gather_list(dests, source);
                 });
}

/* outputs[r][i] receives rank r's inputs[i]. */
WorkPtr GroupBackend::allgather_coalesced(TensorLists &outputs, Tensors &inputs,
                                          const c10d::AllgatherOptions &options) {
    const char *name = "all_gather_coalesced";
    Tensors all;
    TensorLists by_input(inputs.size());
    TORCH_CHECK(outputs.size() == static_cast<size_t>(size_), "weft: ", name, ": got ",
                outputs.size(), " lists, expected one for each of ", size_, " ranks");
    check_plain(name, inputs);
    for (auto &list : outputs) {
        TORCH_CHECK(list.size() == inputs.size(), "weft: ", name, ": got a list of ", list.size(),
                    " tensors for ", inputs.size(), " inputs");
        check_plain(name, list);
        for (size_t i = 0; i < list.size(); i++)
            by_input[i].push_back(list[i]);
        all.insert(all.end(), list.begin(), list.end());
    }
    return issue(OpType::ALLGATHER_COALESCED, name, options, all,
                 [by_input, inputs](const TeamCall &team) {
                     for (size_t i = 0; i < inputs.size(); i++)
                         team.all_gather_list(by_input[i], inputs[i]);
                 });
}

/* Checks the arguments of gather or scatter: every rank has one tensor, and the root a list of
 * them. Returns the list on the root, and none elsewhere. */
static Tensors list_of_root(const char *name, int64_t root, bool is_root, int size,
                            const Tensors &tensors, const TensorLists &lists) {
    check_root(name, root, size);
    check_one(name, tensors.size());
    check_plain(name, tensors);
    if (!is_root)
        return {};
    check_one(name, lists.size());
    check_list(name, lists[0], size);
    return lists[0];
}

/* Returns tensors for an exchange with one rank only: those of other ranks are empty. */
static Tensors list_for(int64_t rank, int size, const at::Tensor &tensor) {
    Tensors list(static_cast<size_t>(size), tensor.new_empty({0}));
    list[static_cast<size_t>(rank)] = tensor;
    return list;
}

WorkPtr GroupBackend::gather(TensorLists &outputs, Tensors &inputs,
                             const c10d::GatherOptions &options) {
    auto root = options.rootRank;
    auto dests = list_of_root("gather", root, root == rank_, size_, inputs, outputs);
    return issue(OpType::GATHER, "gather", options, dests,
                 [dests, root, input = inputs[0]](const TeamCall &team) {
                     team.exchange_lists(dests, list_for(root, team.size, input));
                 });
}

WorkPtr GroupBackend::scatter(Tensors &outputs, TensorLists &inputs,
                              const c10d::ScatterOptions &options) {
    auto root = options.rootRank;
    auto sources = list_of_root("scatter", root, root == rank_, size_, outputs, inputs);
    return issue(OpType::SCATTER, "scatter", options, outputs,
                 [sources, root, output = outputs[0]](const TeamCall &team) {
                     team.exchange_lists(list_for(root, team.size, output), sources);
                 });
}

/* --- Exchanges -------------------------------------------------------------------------------- */

WorkPtr GroupBackend::alltoall(Tensors &outputs, Tensors &inputs,
                               const c10d::AllToAllOptions &options) {
    check_list("all_to_all", outputs, size_);
    check_list("all_to_all", inputs, size_);
    return issue(
        OpType::ALLTOALL, "all_to_all", options, outputs,
        [outputs, inputs](const TeamCall &team) { team.exchange_lists(outputs, inputs); });
}

/* Stores the elements for each rank. Returns a complaint, or "". */
static std::string find_counts(const char *what, const at::Tensor &tensor,
                         const std::vector<int64_t> &splits, int size, TeamCall::Counts &counts) {
    auto rows = tensor.dim() ? tensor.size(0) : 0;
    auto each = rows ? tensor.numel() / rows : 0;
    if (splits.empty()) {
        counts.assign(static_cast<size_t>(size), rows / size * each);
        return rows % size ? c10::str("got ", rows, " rows of the ", what,
                                      " without splits, expected a multiple of ", size)
                           : "";
    }
    auto sum = std::accumulate(splits.begin(), splits.end(), int64_t(0));
    if (splits.size() != static_cast<size_t>(size) || sum != rows)
        return c10::str("got ", splits.size(), " ", what, " splits with a sum of ", sum,
                        ", expected ", size, " with a sum of ", rows);
    for (auto part : splits) {
        if (part < 0)
            return c10::str("got a negative number in the ", what, " splits");
        counts.push_back(part * each);
    }
    return "";
}

/* Some ranks may pass splits and others none, so all of them exchange with counts. */
WorkPtr GroupBackend::alltoall_base(at::Tensor &output, at::Tensor &input,
                                    std::vector<int64_t> &output_splits,
                                    std::vector<int64_t> &input_splits,
                                    const c10d::AllToAllOptions &options) {
    check_plain("all_to_all_single", {output, input});
    TeamCall::Counts received, sent;
    auto complaint = find_counts("output", output, output_splits, size_, received);
    if (complaint.empty())
        complaint = find_counts("input", input, input_splits, size_, sent);
    if (complaint.empty() && output.scalar_type() != input.scalar_type())
        complaint = c10::str("got ", output.scalar_type(), " for the output, expected ",
                             input.scalar_type(), ", as the input");
    return issue(OpType::ALLTOALL_BASE, "all_to_all_single", options, {output},
                 [output, input, received, sent, complaint](const TeamCall &team) {
                     auto to = output.contiguous();
                     team.exchange(to, received, input.contiguous(), sent, complaint);
                     if (!to.is_same(output))
                         output.copy_(to);
                 });
}

/* --- The rest --------------------------------------------------------------------------------- */

WorkPtr GroupBackend::broadcast(Tensors &tensors, const c10d::BroadcastOptions &options) {
    check_one("broadcast", tensors.size());
    check_plain("broadcast", tensors);
    check_root("broadcast", options.rootRank, size_);
    return issue(OpType::BROADCAST, "broadcast", options, tensors,
                 [tensor = tensors[0], root = options.rootRank](const TeamCall &team) {
                     team.broadcast(tensor, root);
                 });
}

WorkPtr GroupBackend::barrier(const c10d::BarrierOptions &options) {
    return issue(OpType::BARRIER, "barrier", options, {},
                 [](const TeamCall &team) { team.barrier(); });
}

void GroupBackend::monitoredBarrier(const c10d::BarrierOptions &options, bool) {
    auto queued = options;
    queued.asyncOp = true;
    issue(OpType::BARRIER, "monitored_barrier", queued, {},
          [](const TeamCall &team) { team.barrier(); })
        ->wait(kNoTimeout);
}

[[noreturn]] static void refuse(const char *name) {
    TORCH_CHECK(false, "weft: ", name,
                ": the backend \"weft\" has no messages between two ranks: call it on a group of "
                "new_group(backend=\"gloo\")");
}

WorkPtr GroupBackend::send(Tensors &, int, int) {
    refuse("send");
}

WorkPtr GroupBackend::recv(Tensors &, int, int) {
    refuse("recv");
}

WorkPtr GroupBackend::recvAnysource(Tensors &, int) {
    refuse("recv");
}

void GroupBackend::shutdown() {
    queue_->drain(timeout_);
    queue_->close("the process group has been destroyed");
}

void GroupBackend::abort() {
    queue_->close("the process group has been aborted");
}

} // namespace weft
