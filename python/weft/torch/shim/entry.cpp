/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that Python calls through ctypes: plain C, so the shim needs neither Python's
 * headers nor a Python module. */
#include "allocator.h"
#include "call.h"
#include "count.h"
#include "process_group.h"

#include <cstdio>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>

namespace symm = c10d::symmetric_memory;
using AllocatorPtr = c10::intrusive_ptr<symm::SymmetricMemoryAllocator>;

/* Never destroyed, because tensors may be freed after all other objects. */
static AllocatorPtr &allocator_of(c10::DeviceType type) {
    static auto &host = *new AllocatorPtr(c10::make_intrusive<weft::Allocator>(at::kCPU));
    static auto &gpu = *new AllocatorPtr(c10::make_intrusive<weft::Allocator>(at::kCUDA));
    return type == at::kCPU ? host : gpu;
}

extern "C" {

/* Passes the functions through which the library is called. */
__attribute__((visibility("default"))) void pyweft_torch_open(weft::Guard guard,
                                                              weft::Guard guard_limited,
                                                              weft::ErrorText error_text) {
    weft::session_guard = guard;
    weft::session_guard_limited = guard_limited;
    weft::error_text = error_text;
}

/* Registers the backend as "WEFT": for GPUs if PyTorch supports any, and always for the CPU, for
 * which PyTorch has no backend. */
__attribute__((visibility("default"))) void pyweft_torch_register(weft::Members members, int cuda) {
    weft::members_of = members;
    if (!symm::has_allocator(at::kCPU))
        symm::register_allocator(at::kCPU, allocator_of(at::kCPU));
    symm::register_availability("WEFT", allocator_of(cuda ? at::kCUDA : at::kCPU));
}

/* Registers it also under another backend's name, for programs that require that name. */
__attribute__((visibility("default"))) void pyweft_torch_alias(const char *name) {
    symm::register_availability(name, allocator_of(at::kCUDA));
}

/* Replaces a backend that has been used already; its existing tensors are not affected. Restores it
 * again. */
static AllocatorPtr &replaced = *new AllocatorPtr;

__attribute__((visibility("default"))) void pyweft_torch_replace(void) {
    if (!replaced)
        replaced = symm::get_allocator(at::kCUDA);
    symm::register_allocator(at::kCUDA, allocator_of(at::kCUDA));
}

__attribute__((visibility("default"))) void pyweft_torch_restore(void) {
    if (replaced)
        symm::register_allocator(at::kCUDA, replaced);
}

/* Gives the registered process group a backend "weft" for CPU tensors, from which Python takes it.
 * Returns 0, or -1 with text. */
__attribute__((visibility("default"))) int pyweft_torch_process_group(const char *group,
                                                                      shmem_team_t team,
                                                                      int64_t timeout_ms,
                                                                      char *text, int text_bytes) {
    try {
        auto with = c10d::resolve_process_group(group);
        with->setBackend(at::kCPU, c10d::ProcessGroup::BackendType::CUSTOM,
                         c10::intrusive_ptr<c10d::Backend>(c10::make_intrusive<weft::GroupBackend>(
                             team, with->getRank(), with->getSize(),
                             std::chrono::milliseconds(timeout_ms))));
        return 0;
    } catch (const std::exception &error) {
        snprintf(text, static_cast<size_t>(text_bytes), "%s", error.what());
        return -1;
    }
}

/* Returns the name of count i and sets its value, or returns NULL after the last one. */
__attribute__((visibility("default"))) const char *pyweft_torch_count(int i, uint64_t *value) {
    struct Count {
        const char *name;
        const std::atomic<uint64_t> *value;
    };
    static const Count all[] = {
#define X(name) {#name, &weft::counts.name},
        PYWEFT_COUNTS(X)
#undef X
    };
    if (i < 0 || i >= static_cast<int>(sizeof all / sizeof all[0]))
        return nullptr;
    *value = *all[i].value;
    return all[i].name;
}

} // extern "C"
