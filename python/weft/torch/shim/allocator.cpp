/* SPDX-License-Identifier: BSD-3-Clause */
#include "allocator.h"

#include "count.h"
#include "handle.h"
#include "stream.h"

#include <c10/util/Exception.h>

namespace weft {

void *Allocator::alloc(size_t size, int device_idx, const std::optional<std::string> &group_name) {
    auto device = open_device(type_, device_idx);
    OnDevice here(device);
    become_pe();
    auto block = Block::make(size, device, group_name);
    std::unique_lock<std::shared_mutex> lock(mutex_);
    blocks_.emplace(block->data(), block);
    return block->data();
}

std::shared_ptr<Block> Allocator::find(const void *p) {
    auto at = static_cast<const char *>(p);
    std::shared_lock<std::shared_mutex> lock(mutex_);
    auto after = blocks_.upper_bound(at);
    if (after == blocks_.begin())
        return nullptr;
    auto &block = std::prev(after)->second;
    bool inside = at == block->data() || at < block->data() + block->bytes();
    return inside ? block : nullptr;
}

void Allocator::free(void *ptr) {
    if (c10d::symmetric_memory::is_finalizing())
        return;
    std::unique_lock<std::shared_mutex> lock(mutex_);
    auto at = blocks_.find(static_cast<char *>(ptr));
    TORCH_CHECK(at != blocks_.end(), "weft: ", ptr, " is freed, and is no symmetric tensor");
    auto block =
        std::move(at->second); /* outside of the lock, because it may be the last reference */
    blocks_.erase(at);
    lock.unlock();
}

size_t Allocator::get_alloc_size(void *ptr) {
    auto block = find(ptr);
    TORCH_CHECK(block, "weft: get_alloc_size of ", ptr, ", which is no symmetric tensor");
    return block->bytes();
}

static const std::string &group_of(const Block &block, const std::optional<std::string> &named) {
    if (named && !named->empty())
        return *named;
    TORCH_CHECK(block.group() && !block.group()->empty(),
                "weft: rendezvous: `group_name` is neither specified during allocation nor passed "
                "to rendezvous().");
    return *block.group();
}

c10::intrusive_ptr<c10d::symmetric_memory::SymmetricMemory> Allocator::rendezvous(
    void *ptr, const std::optional<std::string> &group_name) {
    auto block = find(ptr);
    if (!block) {
        counts.rendezvous_none++;
        return nullptr;
    }
    auto peers = block->peers(group_of(*block, group_name));
    auto offset = static_cast<size_t>(static_cast<char *>(ptr) - block->data());
    return c10::make_intrusive<Handle>(std::move(block), std::move(peers), offset);
}

} // namespace weft
