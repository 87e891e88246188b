/* SPDX-License-Identifier: BSD-3-Clause */
/* PyTorch's allocator of symmetric tensors, one for each type of device. It finds a block by any
 * address in it, because memory pools hand out parts of blocks. */
#pragma once

#include "block.h"

#include <map>
#include <shared_mutex>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>

namespace weft {

class Allocator : public c10d::symmetric_memory::SymmetricMemoryAllocator {
  public:
    explicit Allocator(c10::DeviceType type) : type_(type) {}

    void *alloc(size_t size, int device_idx, const std::optional<std::string> &group_name) override;

    /* Called by any thread, at any time; local. Handles keep the memory that they need. */
    void free(void *ptr) override;
    size_t get_alloc_size(void *ptr) override;

    /* Collective over the group if the block is new to it. Returns null immediately for memory that
     * is not this allocator's. */
    c10::intrusive_ptr<c10d::symmetric_memory::SymmetricMemory> rendezvous(
        void *ptr, const std::optional<std::string> &group_name) override;

    bool has_multicast_support(int) override { return false; }
    c10::DeviceType supported_device_type() override { return type_; }
    std::string name() override { return "WEFT"; }
    bool has_allocation(void *ptr) { return find(ptr) != nullptr; }

  private:
    std::shared_ptr<Block> find(const void *p);

    const c10::DeviceType type_;
    std::shared_mutex mutex_;
    std::map<const char *, std::shared_ptr<Block>> blocks_;
};

} // namespace weft
