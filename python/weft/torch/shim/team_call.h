/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of a team on CPU tensors. Each function throws the library's text if the call fails.
 * A complaint about this member's arguments is thrown, too, after the call has been made with an
 * invalid type, which the library reports to the other members. */
#pragma once

#include <ATen/core/Tensor.h>
#include <shmemx.h>
#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>
#include <weft.h>

namespace weft {

struct TeamCall {
    const char *name; /* of PyTorch's operation */
    shmem_team_t team;
    int rank, size;

    using Tensors = std::vector<at::Tensor>;
    using Counts = std::vector<int64_t>;

    void broadcast(at::Tensor tensor, int64_t root) const;
    void all_reduce(at::Tensor dest, const at::Tensor &source, const c10d::ReduceOp &op) const;
    void all_gather(at::Tensor dest, const at::Tensor &source) const;
    void reduce_scatter(at::Tensor dest, const at::Tensor &source, const c10d::ReduceOp &op) const;

    /* Parts in order of rank; counts are in elements. The tensors may be undefined if they have no
     * elements. */
    void exchange(at::Tensor dest, const Counts &dest_counts, const at::Tensor &source,
                  const Counts &source_counts, std::string complaint = "") const;
    void barrier() const;

    /* Lists of tensors, one for each rank, of any sizes. */
    void exchange_lists(const Tensors &dests, const Tensors &sources,
                        std::string complaint = "") const;
    void all_gather_list(const Tensors &dests, const at::Tensor &source) const;
    void reduce_scatter_list(at::Tensor dest, const Tensors &sources,
                             const c10d::ReduceOp &op) const;

  private:
    template <typename Call> void make(const std::string &complaint, Call call) const;
    void reduce_bits(at::Tensor dest, const at::Tensor &source, const c10d::ReduceOp &op,
                     const std::string &complaint) const;
};

} // namespace weft
