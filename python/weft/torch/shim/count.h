/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of the backend's work in this process, for weft.torch.counters(). They only increase. */
#pragma once

#include <atomic>
#include <cstdint>

namespace weft {

#define PYWEFT_COUNTS(X)                                                         \
    X(allocations)     /* blocks made */                                         \
    X(releases)        /* blocks freed */                                        \
    X(rendezvous)      /* answered together with the group's other members */    \
    X(rendezvous_kept) /* answered from an earlier one, without communication */ \
    X(rendezvous_none) /* of memory that is not Weft's: None */                  \
    X(barriers)                                                                  \
    X(put_signals)                                                               \
    X(wait_signals)

struct Counts {
#define X(name) std::atomic<uint64_t> name{0};
    PYWEFT_COUNTS(X)
#undef X
};

extern Counts counts;

} // namespace weft
