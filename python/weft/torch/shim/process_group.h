/* SPDX-License-Identifier: BSD-3-Clause */
/* PyTorch's backend "weft" of a process group: its operations on CPU tensors are Weft's
 * collectives on a team of the group's members.
 *
 * A call with a wrong argument enters the library with an invalid type, so that all members of the
 * group raise and none waits for the others. */
#pragma once

#include "queue.h"

#include <atomic>
#include <shmemx.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace weft {

class GroupBackend : public c10d::Backend {
    using WorkPtr = c10::intrusive_ptr<c10d::Work>;
    using Tensors = std::vector<at::Tensor>;
    using TensorLists = std::vector<Tensors>;

  public:
    /* The team lives until the process exits. */
    GroupBackend(shmem_team_t team, int rank, int size, Milliseconds timeout);
    ~GroupBackend() override;

    const std::string getBackendName() const override { return "weft"; }
    c10::intrusive_ptr<Options> getBackendOptions();
    void setTimeout(Milliseconds timeout) { timeout_ = timeout; }
    void setSequenceNumberForGroup() override {}
    uint64_t getSequenceNumberForGroup() override { return sequence_; }

    WorkPtr broadcast(Tensors &, const c10d::BroadcastOptions &) override;
    WorkPtr allreduce(Tensors &, const c10d::AllreduceOptions &) override;
    WorkPtr allreduce_coalesced(Tensors &, const c10d::AllreduceCoalescedOptions &) override;
    WorkPtr reduce(Tensors &, const c10d::ReduceOptions &) override;
    WorkPtr allgather(TensorLists &, Tensors &, const c10d::AllgatherOptions &) override;
    WorkPtr _allgather_base(at::Tensor &, at::Tensor &, const c10d::AllgatherOptions &) override;
    WorkPtr allgather_coalesced(TensorLists &, Tensors &, const c10d::AllgatherOptions &) override;
    WorkPtr allgather_into_tensor_coalesced(Tensors &, Tensors &,
                                            const c10d::AllgatherOptions &) override;
    WorkPtr gather(TensorLists &, Tensors &, const c10d::GatherOptions &) override;
    WorkPtr scatter(Tensors &, TensorLists &, const c10d::ScatterOptions &) override;
    WorkPtr reduce_scatter(Tensors &, TensorLists &, const c10d::ReduceScatterOptions &) override;
    WorkPtr _reduce_scatter_base(at::Tensor &, at::Tensor &,
                                 const c10d::ReduceScatterOptions &) override;
    WorkPtr reduce_scatter_tensor_coalesced(Tensors &, Tensors &,
                                            const c10d::ReduceScatterOptions &) override;
    WorkPtr alltoall_base(at::Tensor &, at::Tensor &, std::vector<int64_t> &,
                          std::vector<int64_t> &, const c10d::AllToAllOptions &) override;
    WorkPtr alltoall(Tensors &, Tensors &, const c10d::AllToAllOptions &) override;
    WorkPtr barrier(const c10d::BarrierOptions &) override;
    void monitoredBarrier(const c10d::BarrierOptions &, bool wait_all_ranks) override;

    /* Raise: there are no messages between two ranks yet. */
    WorkPtr send(Tensors &, int, int) override;
    WorkPtr recv(Tensors &, int, int) override;
    WorkPtr recvAnysource(Tensors &, int) override;

    /* shutdown() waits for the calls that have been made, at most as long as the timeout; abort()
     * drops those that have not begun. */
    void shutdown() override;
    void abort() override;

  private:
    template <typename Given, typename Act>
    WorkPtr issue(c10d::OpType type, const char *name, const Given &options, Tensors outputs,
                  Act act);

    const shmem_team_t team_;
    std::atomic<Milliseconds> timeout_;
    const Milliseconds timeout_default_;
    std::atomic<uint64_t> sequence_{0};
    std::shared_ptr<CallQueue> queue_ = std::make_shared<CallQueue>();
};

} // namespace weft
