/* SPDX-License-Identifier: BSD-3-Clause */
#include "block.h"

#include "call.h"
#include "count.h"
#include "gil.h"
#include "stream.h"

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>

namespace weft {

Counts counts;

static size_t up_to(size_t bytes, size_t multiple) {
    return (bytes + multiple - 1) / multiple * multiple;
}

Block::Block(size_t bytes, c10::Device device, const std::optional<std::string> &group)
    : bytes_(bytes), pad_at_(up_to(bytes, 512)),
      pad_bytes_(c10d::symmetric_memory::get_signal_pad_size()),
      facts_at_(up_to(pad_at_ + pad_bytes_, sizeof(Facts))), device_(device), group_(group) {
    size_t whole = facts_at_ + sizeof(Facts);
    int rc = guarded([&] {
        return is_host(device) ? shmemx_block_alloc(SHMEMX_SPACE_HOST, whole, &memory_)
                               : shmemx_block_alloc_on(device.index(), whole, &memory_);
    });
    TORCH_CHECK(rc == 0, "weft: no symmetric tensor of ", bytes, " bytes on ", device, ": ",
                error_text(rc));
    data_ = static_cast<char *>(shmemx_block_ptr(memory_));
    counts.allocations++;
}

Block::~Block() {
    WithoutGil waiting;
    meetings_.clear();
    int rc = guarded([&] { return shmemx_block_free(memory_), 0; });
    counts.releases += rc == 0;
}

/* --- The end of blocks ------------------------------------------------------------------------ */

/* Never destroyed, because blocks may be freed after all other objects. */
struct Parking {
    std::mutex mutex;
    std::vector<Block *> blocks;
};
static Parking &parking = *new Parking;

/* The process exit frees its memory. */
static void retire(Block *block) {
    if (c10d::symmetric_memory::is_finalizing())
        return;
    if (!is_capturing(block->device())) {
        delete block;
        return;
    }
    std::lock_guard<std::mutex> lock(parking.mutex);
    parking.blocks.push_back(block);
}

void Block::free_parked() {
    std::vector<Block *> blocks;
    {
        std::lock_guard<std::mutex> lock(parking.mutex);
        blocks.swap(parking.blocks);
    }
    for (Block *block : blocks)
        retire(block);
}

std::shared_ptr<Block> Block::make(size_t bytes, c10::Device device,
                                   const std::optional<std::string> &group) {
    free_parked();
    return std::shared_ptr<Block>(new Block(bytes, device, group), retire);
}

/* --- Rendezvous ------------------------------------------------------------------------------- */

std::shared_ptr<Block::Meeting> &Block::meeting(const std::string &name, const Group &group) {
    auto &meeting = meetings_[name];
    if (!meeting || meeting->of._unsafe_get_target() != group.get() || meeting->of.expired())
        meeting = std::make_shared<Meeting>(group);
    return meeting;
}

std::shared_ptr<Peers> Block::meet(Meeting &meeting, const std::string &name) {
    WithoutGil waiting;
    std::lock_guard<std::mutex> under_way(meeting.under_way);
    if (!meeting.peers) {
        auto peers = std::make_shared<Peers>(*this, name);
        std::lock_guard<std::mutex> lock(mutex_);
        meeting.peers = std::move(peers);
        counts.rendezvous++;
    }
    return meeting.peers;
}

std::shared_ptr<Peers> Block::peers(const std::string &name) {
    auto group = c10d::resolve_process_group(name);
    std::unique_lock<std::mutex> lock(mutex_);
    auto with = meeting(name, group);
    if (!with->peers) {
        lock.unlock();
        return meet(*with, name);
    }
    counts.rendezvous_kept++;
    return with->peers;
}

} // namespace weft
