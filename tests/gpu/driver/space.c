/* SPDX-License-Identifier: BSD-3-Clause */
#include "space.h"
#include "gpu.h"
#include "guard.h"
#include "host.h"
#include "memory.h"
#include <stdlib.h>
#include <sys/mman.h>

static struct reservation {
    uintptr_t at;
    size_t bytes;
    struct reservation *next;
} * reservations;

static struct mapping {
    uintptr_t at;
    size_t bytes;
    struct memory *memory;
    uint32_t access; /* bit g: GPU g of the machine */
    struct mapping *next;
} * mappings;

static bool overlap(uintptr_t at, size_t bytes, uintptr_t other, size_t other_bytes) {
    return at < other + other_bytes && other < at + bytes;
}

static bool within(uintptr_t at, size_t bytes, uintptr_t other, size_t other_bytes) {
    return at >= other && bytes <= other_bytes && at - other <= other_bytes - bytes;
}

/* --- Addresses ---------------------------------------------------------------------------------
 */

static uintptr_t take_addresses(size_t bytes, size_t alignment, uintptr_t hint) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    size_t taken = bytes + alignment;
    char *at = mmap((void *)hint, taken, PROT_NONE, flags, -1, 0);
    if (at == MAP_FAILED)
        return 0;
    uintptr_t begin = ((uintptr_t)at + alignment - 1) / alignment * alignment;
    size_t before = begin - (uintptr_t)at;
    if (before)
        munmap(at, before);
    if (alignment - before)
        munmap((char *)begin + bytes, alignment - before);
    return begin;
}

static int reserve(weft_cu_address *base, size_t bytes, size_t alignment, uintptr_t hint) {
    if (!bytes || bytes % GRANULE || (alignment & (alignment - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    uintptr_t at = take_addresses(bytes, alignment > GRANULE ? alignment : GRANULE, hint);
    if (!at)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct reservation *made = malloc(sizeof *made);
    *made = (struct reservation){at, bytes, reservations};
    reservations = made;
    *base = at;
    return 0;
}

int cuMemAddressReserve(weft_cu_address *base, size_t bytes, size_t alignment, weft_cu_address hint,
                        uint64_t flags) {
    CALL(CONTEXT, flags ? CUDA_ERROR_INVALID_VALUE : reserve(base, bytes, alignment, hint));
}

static bool anything_mapped(uintptr_t at, size_t bytes) {
    for (struct mapping *mapping = mappings; mapping; mapping = mapping->next)
        if (overlap(at, bytes, mapping->at, mapping->bytes))
            return true;
    return false;
}

static int give_addresses(uintptr_t at, size_t bytes) {
    for (struct reservation **slot = &reservations; *slot; slot = &(*slot)->next) {
        struct reservation *found = *slot;
        if (found->at != at || found->bytes != bytes || anything_mapped(at, bytes))
            continue;
        *slot = found->next;
        free(found);
        munmap((void *)at, bytes);
        return 0;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

int cuMemAddressFree(weft_cu_address base, size_t bytes) {
    CALL(CONTEXT, give_addresses(base, bytes));
}

/* --- Mappings ----------------------------------------------------------------------------------
 */

static bool reserved(uintptr_t at, size_t bytes) {
    for (struct reservation *known = reservations; known; known = known->next)
        if (within(at, bytes, known->at, known->bytes))
            return true;
    return false;
}

static int map(uintptr_t at, size_t bytes, size_t offset, struct memory *memory) {
    if (!memory || !bytes || at % GRANULE || bytes % GRANULE || offset)
        return CUDA_ERROR_INVALID_VALUE; /* offsets are reserved for the future, according to cuda.h
                                          */
    if (bytes > memory->bytes)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!reserved(at, bytes) || anything_mapped(at, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    struct mapping *made = malloc(sizeof *made);
    *made = (struct mapping){at, bytes, memory, 0, mappings};
    mappings = made;
    memory_use(memory);
    return 0;
}

int cuMemMap(weft_cu_address at, size_t bytes, size_t offset, weft_cu_memory memory,
             uint64_t flags) {
    CALL(NO_CAPTURE, flags ? CUDA_ERROR_INVALID_VALUE : map(at, bytes, offset, memory_of(memory)));
}

/* Returns whether no mapping is partly in the range. */
static bool whole(uintptr_t at, size_t bytes) {
    for (struct mapping *mapping = mappings; mapping; mapping = mapping->next)
        if (overlap(at, bytes, mapping->at, mapping->bytes) &&
            !within(mapping->at, mapping->bytes, at, bytes))
            return false;
    return true;
}

/* Accepts unmapped ranges, as the driver does. */
static int unmap(uintptr_t at, size_t bytes) {
    if (!reserved(at, bytes) || !whole(at, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    for (struct mapping **slot = &mappings; *slot;) {
        struct mapping *found = *slot;
        if (!within(found->at, found->bytes, at, bytes)) {
            slot = &found->next;
            continue;
        }
        *slot = found->next;
        guard_unmap(found->at, found->bytes);
        memory_drop(found->memory);
        free(found);
    }
    return 0;
}

int cuMemUnmap(weft_cu_address at, size_t bytes) {
    CALL(NO_CAPTURE, unmap(at, bytes));
}

/* --- Access ------------------------------------------------------------------------------------
 */

static int grant(struct mapping *mapping, int gpu, int flags) {
    uint32_t bit = UINT32_C(1) << gpu, before = mapping->access;
    mapping->access = flags ? before | bit : before & ~bit;
    if (before && !mapping->access)
        guard_unmap(mapping->at, mapping->bytes);
    bool done = true;
    if (!before && mapping->access)
        done = guard_map(mapping->at, mapping->bytes, mapping->memory->fd, 0, mapping->access);
    else if (before != mapping->access && mapping->access)
        done = guard_change(mapping->at, mapping->access);
    return done ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

static int set_one(uintptr_t at, size_t bytes, const struct weft_cu_access *access) {
    int gpu = gpu_of(access->location.id);
    if (access->location.type != WEFT_CU_LOCATION_DEVICE ||
        (access->flags != 0 && access->flags != WEFT_CU_ACCESS_READ_WRITE))
        return CUDA_ERROR_INVALID_VALUE;
    for (struct mapping *mapping = mappings; mapping; mapping = mapping->next) {
        if (!within(mapping->at, mapping->bytes, at, bytes))
            continue;
        if (gpu < 0 || !gpu_reaches(gpu, mapping->memory->gpu))
            return CUDA_ERROR_INVALID_DEVICE;
        int error = grant(mapping, gpu, access->flags);
        if (error)
            return error;
    }
    return 0;
}

static int set_access(uintptr_t at, size_t bytes, const struct weft_cu_access *access,
                      size_t count) {
    if (!whole(at, bytes) || !access || !count)
        return CUDA_ERROR_INVALID_VALUE;
    int error = 0;
    for (size_t i = 0; i < count && !error; i++)
        error = set_one(at, bytes, &access[i]);
    return error;
}

int cuMemSetAccess(weft_cu_address at, size_t bytes, const struct weft_cu_access *access,
                   size_t count) {
    CALL(NO_CAPTURE, set_access(at, bytes, access, count));
}

/* --- Lookups of operations -------------------------------------------------------------------- */

static struct mapping *mapping_at(uintptr_t address) {
    for (struct mapping *mapping = mappings; mapping; mapping = mapping->next)
        if (within(address, 1, mapping->at, mapping->bytes))
            return mapping;
    return NULL;
}

int space_owner(uintptr_t address) {
    struct mapping *mapping = mapping_at(address);
    return mapping ? mapping->memory->gpu : -1;
}

static bool touches_reserved(uintptr_t at, size_t bytes) {
    for (struct reservation *known = reservations; known; known = known->next)
        if (overlap(at, bytes, known->at, known->bytes))
            return true;
    return false;
}

/* Returns whether the GPU has access to every byte. */
static bool accessible(uintptr_t at, size_t bytes, int gpu) {
    while (bytes) {
        struct mapping *mapping = mapping_at(at);
        if (!mapping || !(mapping->access >> gpu & 1))
            return false;
        size_t part = mapping->at + mapping->bytes - at;
        part = part < bytes ? part : bytes;
        at += part;
        bytes -= part;
    }
    return true;
}

int space_place(uintptr_t address, size_t bytes, int gpu, enum place *place) {
    if (!address)
        return CUDA_ERROR_INVALID_VALUE;
    if (touches_reserved(address, bytes)) {
        *place = PLACE_DEVICE;
        return accessible(address, bytes, gpu) ? 0 : CUDA_ERROR_INVALID_VALUE;
    }
    *place = host_holds(address, bytes) ? PLACE_REGISTERED : PLACE_PAGEABLE;
    return *place == PLACE_PAGEABLE && host_touches(address, bytes) ? CUDA_ERROR_INVALID_VALUE : 0;
}

bool space_reaches(uintptr_t address, size_t bytes, int gpu) {
    enum place place;
    return space_place(address, bytes, gpu, &place) == 0 && place != PLACE_PAGEABLE;
}

int space_piece(uintptr_t address, size_t bytes, int gpu, struct piece *piece) {
    struct mapping *mapping = mapping_at(address);
    *piece = (struct piece){(unsigned char *)address, bytes, NULL};
    if (!mapping)
        return touches_reserved(address, 1) ? CUDA_ERROR_ILLEGAL_ADDRESS : 0;
    if (!(mapping->access >> gpu & 1))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    size_t offset = address - mapping->at, left = mapping->bytes - offset;
    *piece = (struct piece){mapping->memory->view + offset, left < bytes ? left : bytes,
                            mapping->memory};
    memory_use(mapping->memory);
    return 0;
}

void space_piece_drop(struct piece *piece) {
    if (piece->memory)
        memory_drop(piece->memory);
}

/* --- Pointers ----------------------------------------------------------------------------------
 */

static int tell_type(unsigned *type, uintptr_t address) {
    if (mapping_at(address))
        return *type = WEFT_CU_POINTER_TO_DEVICE, 0;
    if (host_holds(address, 1))
        return *type = WEFT_CU_POINTER_TO_HOST, 0;
    return CUDA_ERROR_INVALID_VALUE;
}

int cuPointerGetAttribute(void *value, int attribute, weft_cu_address address) {
    CALL(CONTEXT, attribute != WEFT_CU_POINTER_MEMORY_TYPE ? CUDA_ERROR_NOT_SUPPORTED
                                                           : tell_type(value, address));
}
