/* SPDX-License-Identifier: BSD-3-Clause */
/* PyTorch's allocator of symmetric tensors, one for each type of device. It knows its blocks by
 * address, also from inside, because memory pools hand out parts of them. */
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

    /* By any thread, at any time, without a word to anyone. A handle keeps what it needs. */
    void free(void *ptr) override;
    size_t get_alloc_size(void *ptr) override;

    /* Collective over the group when the block is new to it. Null, at once, for memory that is not
     * this allocator's. */
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
