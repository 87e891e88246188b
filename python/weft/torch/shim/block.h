/* SPDX-License-Identifier: BSD-3-Clause */
/* One allocation. It is local: no other process hears of it before a rendezvous.
 *
 *   |--- data: as many bytes as were asked for ---|--- pad: 32-bit signals ---|- facts -|
 *   ^ 512-aligned                                 ^ 512-aligned
 *
 * A block lives as long as its tensor, or the longest-lived handle on it. Its memory outlives it
 * where peers have it mapped still. */
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

/* What members have to agree on; the last bytes of each block. */
struct Facts {
    int64_t bytes, pad_bytes;
};

class Block {
  public:
    /* The GPU is waited for before a block's memory goes, which must not be while a graph is being
     * captured: a block that nobody holds any more by then is parked. */
    static std::shared_ptr<Block> make(size_t bytes, c10::Device device,
                                       const std::optional<std::string> &group);

    /* Frees what has been parked. */
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

    /* The group that was named when the block was made. */
    const std::optional<std::string> &group() const { return group_; }

    /* What the members of this group have of each other's blocks. Collective over the group, unless
     * it has been asked for before. */
    std::shared_ptr<Peers> peers(const std::string &group);

  private:
    using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

    /* With one group. A name may come to mean another group. */
    struct Meeting {
        explicit Meeting(const Group &group) : of(group) {}
        c10::weak_intrusive_ptr<c10d::ProcessGroup> of;
        std::mutex under_way; /* held by the thread that meets; other groups' meetings go on */
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
    std::mutex mutex_; /* of what follows; held for moments */
    std::unordered_map<std::string, std::shared_ptr<Meeting>> meetings_;
};

} // namespace weft
