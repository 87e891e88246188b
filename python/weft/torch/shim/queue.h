/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of one process group, which run one at a time, in the order of issue.
 *
 * A synchronous call runs in its caller's thread if no earlier call is unfinished. All other calls
 * run in the group's thread, which starts with the first of them. */
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace weft {

using Milliseconds = std::chrono::milliseconds;

/* One call. wait() throws what the call has thrown, or after a timeout. */
class GroupCall : public c10d::Work {
  public:
    GroupCall(int rank, c10d::OpType type, const char *name, std::vector<at::Tensor> outputs,
              Milliseconds timeout, std::function<void()> act);

    /* Runs the call in this thread, and completes the work and its future. Never throws. */
    void run() noexcept;

    /* Completes the call without running it. */
    void drop(const char *reason);

    /* kNoTimeout: waits as long as the group's timeout. */
    bool wait(Milliseconds timeout = kNoTimeout) override;
    void synchronize() override {}
    void abort() override;
    std::vector<at::Tensor> result() override { return outputs_; }
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

  private:
    void complete(std::exception_ptr error);
    void tell(c10::ivalue::Future &future);

    const char *const name_;
    const std::vector<at::Tensor> outputs_;
    const Milliseconds timeout_;
    std::function<void()> act_; /* released when the call has run, with the tensors that it holds */
    std::mutex future_mutex_;   /* protects the following fields */
    bool told_ = false;         /* complete, so a new future is completed when it is made */
    c10::intrusive_ptr<c10::ivalue::Future> future_;
};

using GroupCallPtr = c10::intrusive_ptr<GroupCall>;

/* Lives as long as its process group or its thread, whichever ends last. */
class CallQueue : public std::enable_shared_from_this<CallQueue> {
  public:
    /* Runs the call now if it can, and returns when it is complete; else appends it. */
    void run(const GroupCallPtr &call);
    void append(const GroupCallPtr &call);

    /* Waits until all calls are complete, at most as long as the timeout. */
    void drain(Milliseconds timeout);

    /* Drops the calls that have not begun, and lets the thread end. Later calls are dropped. */
    void close(const char *reason);

  private:
    void work();

    std::mutex mutex_; /* protects the following fields; not held while a call runs */
    std::condition_variable changed_;
    std::deque<GroupCallPtr> waiting_;
    bool busy_ = false; /* a thread is running a call */
    bool has_thread_ = false;
    const char *closed_ = nullptr; /* the reason */
};

} // namespace weft
