/* SPDX-License-Identifier: BSD-3-Clause */
/* One allocation. It is local: other processes do not know of it before a rendezvous.
 *
 *   |--- data: as many bytes as requested ---|--- pad: 32-bit signals ---|- facts -|
 *   ^ 512-aligned                            ^ 512-aligned
 *
 * A block lives as long as its tensor, or the longest-lived handle on it. Its memory lives longer
 * if peers still have it mapped. */
#pragma once

#include "peers.h"

#include <c10/core/Device.h>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include <shmemx.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace weft {

/* The sizes that must be the same on all members; the last bytes of each block. */
struct Facts {
    int64_t bytes, pad_bytes;
};

class Block {
  public:
    /* Freeing a block waits for the GPU, which is not allowed while a graph is captured: a block
     * that is released during a capture is parked. */
    static std::shared_ptr<Block> make(size_t bytes, c10::Device device,
                                       const std::optional<std::string> &group);

    /* Frees the parked blocks. */
    static void free_parked();

    ~Block();
    Block(const Block &) = delete;
    Block &operator=(const Block &) = delete;

    char *data() const { return data_; }
    size_t bytes() const { return bytes_; }
    size_t pad_at() const { return pad_at_; }
    size_t pad_bytes() const { return pad_bytes_; }
    size_t facts_at() const { return facts_at_; }
    c10::Device device() const { return device_; }
    shmemx_block_t memory() const { return memory_; }

    /* The group that was named at the allocation. */
    const std::optional<std::string> &group() const { return group_; }

    /* Returns the access to the blocks of this group's members. Collective over the group, unless
     * an earlier call has the result. */
    std::shared_ptr<Peers> peers(const std::string &group);

  private:
    using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

    /* With one group. A name may refer to another group later. */
    struct Meeting {
        explicit Meeting(const Group &group) : of(group) {}
        c10::weak_intrusive_ptr<c10d::ProcessGroup> of;
        std::mutex under_way; /* held by the thread in a rendezvous; other groups' rendezvous are
                                 not blocked */
        std::shared_ptr<Peers> peers;
    };

    Block(size_t bytes, c10::Device device, const std::optional<std::string> &group);
    std::shared_ptr<Meeting> &meeting(const std::string &name, const Group &group);
    std::shared_ptr<Peers> meet(Meeting &meeting, const std::string &name);

    const size_t bytes_, pad_at_, pad_bytes_, facts_at_;
    const c10::Device device_;
    const std::optional<std::string> group_;
    shmemx_block_t memory_ = nullptr;
    char *data_ = nullptr;
    std::mutex mutex_; /* protects the following fields; held briefly */
    std::unordered_map<std::string, std::shared_ptr<Meeting>> meetings_;
};

} // namespace weft
