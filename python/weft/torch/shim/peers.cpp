/* SPDX-License-Identifier: BSD-3-Clause */
#include "peers.h"

#include "block.h"
#include "call.h"
#include "gil.h"
#include "stream.h"

#include <ATen/Functions.h>
#include <ATen/ops/from_blob.h>
#include <algorithm>
#include <atomic>
#include <c10/util/Exception.h>
#include <cstring>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>

namespace weft {

Members members_of;

static std::vector<int> ask_members(const std::string &group) {
    char text[512] = "";
    std::vector<int> pes(4096);
    int count = members_of(group.c_str(), pes.data(), static_cast<int>(pes.size()), text,
                           static_cast<int>(sizeof text));
    TORCH_CHECK(count > 0, "weft: rendezvous in group \"", group, "\": ", text);
    pes.resize(static_cast<size_t>(count));
    return pes;
}

void become_pe() {
    static std::atomic<bool> is_pe{false};
    if (is_pe)
        return;
    WithoutGil waiting;
    char text[512] = "";
    int rc = members_of(nullptr, nullptr, 0, text, static_cast<int>(sizeof text));
    TORCH_CHECK(rc == 0, "weft: ", text);
    is_pe = true;
}

static int rank_of_self(const std::vector<int> &pes, const std::string &group) {
    auto self = std::find(pes.begin(), pes.end(), shmem_my_pe());
    TORCH_CHECK(self != pes.end(), "weft: rendezvous in group \"", group, "\": PE ", shmem_my_pe(),
                " is no member of it");
    return static_cast<int>(self - pes.begin());
}

/* Several threads may be in calls for groups with the same members. */
static uint64_t tag_of(const std::string &group) {
    uint64_t tag = 14695981039346656037u; /* FNV-1a: the same hash in every process */
    for (char c : group)
        tag = (tag ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return tag;
}

static at::Tensor words_at(void *p, int64_t count, c10::Device device) {
    return at::for_blob(p, {count})
        .options(at::TensorOptions().dtype(at::kLong).device(device))
        .target_device(device)
        .make_tensor();
}

/* Returns a copy of a vector in the device's memory, complete for any stream on return. */
template <typename T>
static at::Tensor copy_to(c10::Device device, const std::vector<T> &values, at::ScalarType type) {
    auto host = at::for_blob(const_cast<T *>(values.data()), {static_cast<int64_t>(values.size())})
                    .options(at::TensorOptions().dtype(type))
                    .make_tensor();
    return at::empty(host.sizes(), host.options().device(device)).copy_(host);
}

Peers::Peers(const Block &block, const std::string &group)
    : pes_(ask_members(group)), rank_(rank_of_self(pes_, group)) {
    OnDevice here(block.device());
    TORCH_CHECK(
        !is_capturing(block.device()), "weft: rendezvous in group \"", group,
        "\" of memory that is new to it, while a graph is being captured: the members "
        "communicate then, which a graph cannot repeat; call rendezvous before the capture");
    SideStream aside(block.device());
    attach(block, group);
    try {
        compare(block, group);
        for (int i = 0; i < size(); i++) {
            data_.push_back(i == rank_ ? block.data() : shmemx_share_ptr(share_, i));
            pads_.push_back(static_cast<char *>(data_.back()) + block.pad_at());
        }
        static_assert(sizeof(void *) == sizeof(int64_t), "addresses are sent as 64-bit words");
        data_on_device_ = copy_to(block.device(), data_, at::kLong);
        pads_on_device_ = copy_to(block.device(), pads_, at::kLong);
        pes_on_device_ = copy_to(block.device(), pes_, at::kInt);
    } catch (...) {
        release();
        throw;
    }
}

void Peers::attach(const Block &block, const std::string &group) {
    auto facts = words_at(block.data() + block.facts_at(), 2, block.device());
    facts.copy_(
        at::tensor({static_cast<int64_t>(block.bytes()), static_cast<int64_t>(block.pad_bytes())}));
    auto tag = tag_of(group);
    int rc = guarded(
        [&] { return shmemx_share_attach(block.memory(), pes_.data(), size(), tag, &share_); });
    TORCH_CHECK(rc == 0, "weft: rendezvous in group \"", group, "\": ", error_text(rc));
}

/* Blocks of one size may have different parts. All members compare all facts, so all of them
 * refuse. */
void Peers::compare(const Block &block, const std::string &group) const {
    for (int i = 0; i < size(); i++) {
        auto at = static_cast<char *>(shmemx_share_ptr(share_, i)) + block.facts_at();
        auto facts = words_at(at, 2, block.device()).cpu();
        auto theirs = facts.const_data_ptr<int64_t>();
        TORCH_CHECK(theirs[0] == static_cast<int64_t>(block.bytes()) &&
                        theirs[1] == static_cast<int64_t>(block.pad_bytes()),
                    "weft: rendezvous in group \"", group, "\": rank ", i, " has ", theirs[0],
                    " bytes and a signal pad of ", theirs[1], ", and rank ", rank_, " has ",
                    block.bytes(), " and ", block.pad_bytes(), ": use tensors of the same size");
    }
}

void Peers::release() {
    guarded([&] { return shmemx_share_release(share_), 0; });
}

Peers::~Peers() {
    if (share_ && !c10d::symmetric_memory::is_finalizing())
        release();
}

} // namespace weft
