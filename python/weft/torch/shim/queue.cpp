/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue.h"

#include "gil.h"

#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>
#include <thread>

namespace weft {

/* --- One call --------------------------------------------------------------------------------- */

GroupCall::GroupCall(int rank, c10d::OpType type, const char *name, std::vector<at::Tensor> outputs,
                     Milliseconds timeout, std::function<void()> act)
    : Work(rank, type), name_(name), outputs_(std::move(outputs)), timeout_(timeout),
      act_(std::move(act)) {}

void GroupCall::run() noexcept {
    std::exception_ptr error;
    try {
        act_();
    } catch (...) {
        error = std::current_exception();
    }
    complete(error);
}

void GroupCall::drop(const char *reason) {
    complete(std::make_exception_ptr(c10::Error(
        {__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, c10::str("weft: ", name_, ": ", reason))));
}

void GroupCall::complete(std::exception_ptr error) {
    act_ = nullptr;
    finish(error);
    c10::intrusive_ptr<c10::ivalue::Future> future;
    {
        std::lock_guard<std::mutex> lock(future_mutex_);
        told_ = true;
        future = future_;
    }
    if (future)
        tell(*future);
}

/* Runs the future's callbacks, so no lock may be held. */
void GroupCall::tell(c10::ivalue::Future &future) {
    if (exception())
        future.setError(exception());
    else
        future.markCompleted(c10::IValue(outputs_));
}

c10::intrusive_ptr<c10::ivalue::Future> GroupCall::getFuture() {
    std::unique_lock<std::mutex> lock(future_mutex_);
    if (!future_) {
        future_ = c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()));
        if (told_) {
            auto future = future_;
            lock.unlock();
            tell(*future);
            return future;
        }
    }
    return future_;
}

bool GroupCall::wait(Milliseconds timeout) {
    WithoutGil waiting;
    auto limit = timeout == kNoTimeout ? timeout_ : timeout;
    std::unique_lock<std::mutex> lock(mutex_);
    bool complete = cv_.wait_for(lock, limit, [&] { return completed_; });
    TORCH_CHECK(complete, "weft: ", name_, ": not complete after ", limit.count(),
                " ms: another rank has not made this call, or an earlier one");
    if (exception_)
        std::rethrow_exception(exception_);
    return true;
}

void GroupCall::abort() {
    TORCH_CHECK(false, "weft: ", name_, ": one call cannot be aborted: abort the group");
}

/* --- All calls of a group --------------------------------------------------------------------- */

void CallQueue::run(const GroupCallPtr &call) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (closed_ || busy_ || !waiting_.empty()) {
        lock.unlock();
        append(call);
        call->wait();
        return;
    }
    busy_ = true;
    lock.unlock();
    call->run();
    lock.lock();
    busy_ = false;
    lock.unlock();
    changed_.notify_all();
}

void CallQueue::append(const GroupCallPtr &call) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (closed_) {
        lock.unlock();
        call->drop(closed_);
        return;
    }
    waiting_.push_back(call);
    if (!has_thread_) {
        has_thread_ = true;
        std::thread([self = shared_from_this()] { self->work(); }).detach();
    }
    lock.unlock();
    changed_.notify_all();
}

void CallQueue::work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return closed_ || (!busy_ && !waiting_.empty()); });
        if (closed_)
            return;
        busy_ = true;
        auto call = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        call->run();
        call.reset();
        lock.lock();
        busy_ = false;
        changed_.notify_all();
    }
}

void CallQueue::drain(Milliseconds timeout) {
    WithoutGil waiting;
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return closed_ || (!busy_ && waiting_.empty()); });
}

void CallQueue::close(const char *reason) {
    std::deque<GroupCallPtr> dropped;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!closed_)
            closed_ = reason;
        dropped.swap(waiting_);
    }
    changed_.notify_all();
    WithoutGil calling_back;
    for (auto &call : dropped)
        call->drop(reason);
}

} // namespace weft
