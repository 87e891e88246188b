/* SPDX-License-Identifier: BSD-3-Clause */
/* PyTorch's handle on a symmetric tensor: a block, a group's access to it, and the offset of the
 * tensor's storage in it. The signal protocol is exactly PyTorch's, so that its kernels and
 * Helion's can use the same pads.
 *
 * The class has every member that a version of PyTorch since 2.9 requires; members that some
 * versions lack are not marked as overriding. */
#pragma once

#include "block.h"

#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>

namespace weft {

class Handle : public c10d::symmetric_memory::SymmetricMemory {
  public:
    Handle(std::shared_ptr<Block> block, std::shared_ptr<Peers> peers, size_t offset)
        : block_(std::move(block)), peers_(std::move(peers)), offset_(offset) {}

    std::vector<void *> get_buffer_ptrs() override { return peers_->data(); }
    std::vector<void *> get_signal_pad_ptrs() override { return peers_->pads(); }
    void **get_buffer_ptrs_dev() override { return peers_->data_on_device(); }
    void **get_signal_pad_ptrs_dev() override { return peers_->pads_on_device(); }
    size_t get_buffer_size() override { return block_->bytes(); }
    size_t get_signal_pad_size() { return block_->pad_bytes(); }
    size_t get_offset() override { return offset_; }

    bool has_multicast_support() override { return false; }
    void *get_multicast_ptr() override { return nullptr; }

    int get_rank() override { return peers_->rank(); }
    int get_world_size() override { return peers_->size(); }
    c10::Device get_device() override { return block_->device(); }
    const std::vector<int> &get_rank_to_global_rank() override { return peers_->pes(); }
    int *get_rank_to_global_rank_dev() override { return peers_->pes_on_device(); }
    bool world_within_direct_access() override { return true; }

    void barrier(int channel, size_t timeout_ms) override;
    void put_signal(int dst_rank, int channel, size_t timeout_ms) override;
    void wait_signal(int src_rank, int channel, size_t timeout_ms) override;

  private:
    void check_channel(int channel) const;
    void check_rank(const char *argument, int rank) const;
    template <typename Act> void on_pads(size_t timeout_ms, Act act);

    std::shared_ptr<Block> block_;
    std::shared_ptr<Peers> peers_; /* destroyed before its block */
    size_t offset_;
};

} // namespace weft
