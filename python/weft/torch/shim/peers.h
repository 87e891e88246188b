/* SPDX-License-Identifier: BSD-3-Clause */
/* A group's access to its members' blocks: the addresses of each member's data and pad, for the
 * host and, as arrays in the device's memory, for kernels. */
#pragma once

#include <ATen/core/Tensor.h>
#include <shmemx.h>
#include <string>
#include <vector>

namespace weft {

class Block;

/* Stores the PEs of a group in pes[room], in order of rank. Returns their number, or -1 with text.
 * Calls Python, which also makes this process a PE. If `group` is NULL, only makes this process a
 * PE, and returns 0. */
using Members = int (*)(const char *group, int *pes, int room, char *text, int text_bytes);
extern Members members_of;

/* Makes this process a PE, unless it is a PE already. */
void become_pe();

class Peers {
  public:
    /* Collective over the group's members: their first rendezvous with this block. */
    Peers(const Block &block, const std::string &group);
    ~Peers();
    Peers(const Peers &) = delete;
    Peers &operator=(const Peers &) = delete;

    int rank() const { return rank_; }
    int size() const { return static_cast<int>(pes_.size()); }
    const std::vector<int> &pes() const { return pes_; }
    const std::vector<void *> &data() const { return data_; }
    const std::vector<void *> &pads() const { return pads_; }
    void **data_on_device() const { return static_cast<void **>(data_on_device_.data_ptr()); }
    void **pads_on_device() const { return static_cast<void **>(pads_on_device_.data_ptr()); }
    int *pes_on_device() const { return static_cast<int *>(pes_on_device_.data_ptr()); }

  private:
    void attach(const Block &block, const std::string &group);
    void compare(const Block &block, const std::string &group) const;
    void release();

    std::vector<int> pes_;
    int rank_ = -1;
    shmemx_share_t share_ = nullptr;
    std::vector<void *> data_, pads_;
    at::Tensor data_on_device_, pads_on_device_, pes_on_device_;
};

} // namespace weft
