/* SPDX-License-Identifier: BSD-3-Clause */
/* What the backend has done in this process, for weft.torch.counters(). Counts only grow. */
#pragma once

#include <atomic>
#include <cstdint>

namespace weft {

#define PYWEFT_COUNTS(X)                                                               \
    X(allocations)     /* blocks made */                                               \
    X(releases)        /* blocks freed */                                              \
    X(rendezvous)      /* answered together with the group's other members */          \
    X(rendezvous_kept) /* answered from what an earlier one left, without a message */ \
    X(rendezvous_none) /* asked of memory that is not ours: None */                    \
    X(barriers)                                                                        \
    X(put_signals)                                                                     \
    X(wait_signals)

struct Counts {
#define X(name) std::atomic<uint64_t> name{0};
    PYWEFT_COUNTS(X)
#undef X
};

extern Counts counts;

} // namespace weft
