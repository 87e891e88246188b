/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles through which the program's kernels use a team (weft/device.cuh). Each has memory of its
 * own on every member's GPU, a share of the members:
 *
 *   words (head, channels) | inbox of packets | places of members in the heap | the handle itself
 *
 * Members make and free handles together, by exchanges of the host alone. So a handle outlives its
 * team, and can be made during stream capture. The memory of the last freed handle stays mapped
 * until the next one is freed, or a new one lacks memory: a kernel that still uses it finds another
 * generation there, instead of causing a fault of the GPU. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "transport/gpu_kernel.h"
#include "transport/gpu_rescue.h"
#include "core/share.h"
#include "device/device.h"

/* A handle that has been made. */
struct handle {
    struct weft_device_team team; /* the program's copy */
    const struct weft_device_team *copy;
    struct weft_block *block;
    struct weft_share *share;
    struct weft_boot_subset subset;
    struct handle *next;
    int pes[]; /* of the subset */
};

static struct {
    pthread_mutex_t changing;
    struct handle *made, *left; /* left: the handle that was freed last */
    uint32_t generation;        /* of the last handle, here or on a member */
} handles = {.changing = PTHREAD_MUTEX_INITIALIZER};

/* --- The list of handles ---------------------------------------------------------------------- */

/* Returns the pointer in the list that leads to the handle, or to the end. A handle is found by its
 * content, because the program passes copies. Called under the lock. */
static struct handle **find_link(const struct weft_device_team *team) {
    struct handle **link = &handles.made;
    while (*link && memcmp(&(*link)->team, team, sizeof *team) != 0)
        link = &(*link)->next;
    return link;
}

static void enlist(struct handle *handle) {
    pthread_mutex_lock(&handles.changing);
    handle->next = handles.made;
    handles.made = handle;
    pthread_mutex_unlock(&handles.changing);
}

/* Returns the handle, and removes it from the list if `unlist` is set; NULL if there is no such
 * handle. */
static struct handle *find_handle(const struct weft_device_team *team, bool unlist) {
    pthread_mutex_lock(&handles.changing);
    struct handle **link = find_link(team), *found = *link;
    if (found && unlist)
        *link = found->next;
    pthread_mutex_unlock(&handles.changing);
    return found;
}

static int refuse_handle(const struct weft_device_team *team) {
    return weft_fail(-EINVAL,
                     "argument handle was not made by shmemx_device_team, or has been freed "
                     "(generation %u): pass one that is in use",
                     team->generation);
}

/* --- Memory ----------------------------------------------------------------------------------- */

/* Offsets in the block of each member. */
struct layout {
    size_t inbox, places, copy, bytes;
};

static struct layout layout_of(int n, uint32_t channels, uint32_t slot_bytes) {
    enum { LINE = 128 };
    struct layout layout = {.inbox = weft_device_words_bytes(n, channels)};
    layout.places = layout.inbox + weft_device_inbox_bytes(n, channels, slot_bytes);
    layout.copy = layout.places + ((size_t)n * sizeof(uint16_t) + LINE - 1) / LINE * LINE;
    layout.bytes = layout.copy + sizeof(struct weft_device_team);
    return layout;
}

/* Memory that is not marked idle is freed when the GPU has finished its work. */
static void drop_memory(struct handle *handle) {
    if (handle->share)
        weft_share_release(handle->share);
    if (handle->block)
        weft_block_free(handle->block);
    free(handle);
}

/* Keeps the memory of a freed handle, and frees the memory kept before. Returns false if no memory
 * was kept before. */
static bool leave_behind(struct handle *handle) {
    pthread_mutex_lock(&handles.changing);
    struct handle *before = handles.left;
    handles.left = handle;
    pthread_mutex_unlock(&handles.changing);
    if (!before)
        return false;
    weft_block_set_idle(before->block); /* its members agreed on that when they freed it */
    drop_memory(before);
    return true;
}

/* --- Agreement of the members ----------------------------------------------------------------- */

struct handle_facts {
    struct weft_cu_uuid uuid;
    uint32_t channels, slot_bytes, generation;
};

static uint32_t next_generation(void) {
    pthread_mutex_lock(&handles.changing);
    uint32_t generation = ++handles.generation;
    pthread_mutex_unlock(&handles.changing);
    return generation;
}

/* Returns the highest generation of all members; never 0. */
static uint32_t agreed_generation(const struct handle_facts *all, int n) {
    uint32_t generation = 1;
    for (int i = 0; i < n; i++)
        if (all[i].generation > generation)
            generation = all[i].generation;
    pthread_mutex_lock(&handles.changing);
    if (handles.generation < generation)
        handles.generation = generation;
    pthread_mutex_unlock(&handles.changing);
    return generation;
}

/* Checks whether this PE can take part. Returns 0 or -errno with text. */
static int check_own(const struct handle *handle, int n, const struct weft_device_wish *wish) {
    if (wish->error)
        return wish->error;
    if (!handle)
        return weft_fail(-ENOMEM, "no memory");
    if (n > WEFT_GPU_MEMBERS_MAX)
        return weft_fail(-ENOTSUP, "a team of %d PEs: kernels work with at most %d", n,
                         WEFT_GPU_MEMBERS_MAX);
    int error = weft_device_begin();
    if (error == 0 && !weft_gpu_abort.word)
        error = weft_fail(-ENOTSUP,
                          "kernels of GPU %d do not see when the job ends, because the "
                          "driver registers no host memory for them",
                          weft_device.gpu->ordinal);
    return error;
}

/* Returns an error unless all members pass the same arguments. */
static int check_wishes(const struct weft_boot_subset *subset, const struct handle_facts *all) {
    for (int i = 1; i < subset->count; i++)
        if (all[i].channels != all[0].channels || all[i].slot_bytes != all[0].slot_bytes)
            return weft_fail(-EINVAL,
                             "PE %d wants %u channels with slots of %u bytes and PE %d %u with %u: "
                             "pass the same on all members",
                             subset->pes[i], all[i].channels, all[i].slot_bytes, subset->pes[0],
                             all[0].channels, all[0].slot_bytes);
    return 0;
}

/* Returns whether operations of this PE's GPU on a member's memory are atomic, as far as known. */
static bool has_atomics(const struct weft_cu_uuid *uuid, int pe) {
    struct weft_gpu_peer peer = weft_gpu_peer_of(weft_device.gpu, uuid);
    if (peer.ordinal < 0 && weft_device.open) /* links to hidden GPUs have been tested */
        peer = weft_device.peers[pe];
    return peer.atomics;
}

/* Sets the WEFT_DEVICE_... flags that hold for all links between members. NVLink carries atomics,
 * and PCI Express does not. */
static int agree_flags(const struct weft_boot_subset *subset, const struct handle_facts *all,
                       uint32_t *flags) {
    uint32_t mine = WEFT_DEVICE_ATOMICS, of_all[subset->count];
    for (int i = 0; i < subset->count; i++) {
        if (!has_atomics(&all[i].uuid, subset->pes[i]))
            mine &= ~(uint32_t)WEFT_DEVICE_ATOMICS;
        if (memcmp(&all[i].uuid, &all[0].uuid, sizeof all[i].uuid) != 0)
            mine |= WEFT_DEVICE_NVLINK; /* the members use several GPUs */
    }
    if (!(mine & WEFT_DEVICE_ATOMICS))
        mine = 0;
    struct weft_exchange exchange = {.mine = &mine, .bytes = sizeof mine, .all = of_all};
    int error = weft_boot_exchange_among(subset, &exchange);
    *flags = mine;
    for (int i = 0; i < subset->count && error == 0; i++)
        *flags &= of_all[i];
    return error;
}

static uint32_t count_neighbours(const struct handle_facts *all, int n) {
    uint32_t neighbours = 0;
    for (int i = 0; i < n; i++)
        neighbours += memcmp(&all[i].uuid, &weft_device.gpu->uuid, sizeof all[i].uuid) == 0;
    return neighbours;
}

/* --- Making ----------------------------------------------------------------------------------- */

static struct handle *new_handle(const struct weft_boot_subset *subset) {
    size_t list = (size_t)subset->count * sizeof *subset->pes;
    struct handle *handle = calloc(1, sizeof *handle + list);
    if (!handle)
        return NULL;
    memcpy(handle->pes, subset->pes, list);
    handle->subset = *subset;
    handle->subset.pes = handle->pes;
    return handle;
}

/* Agrees with the members on flags, neighbours and generation. */
static int meet_members(struct handle *handle, const struct weft_device_wish *wish) {
    const struct weft_boot_subset *subset = &handle->subset;
    struct handle_facts mine = {weft_device.gpu->uuid, wish->channels, wish->slot_bytes,
                                next_generation()};
    struct handle_facts all[subset->count];
    struct weft_exchange exchange = {.mine = &mine, .bytes = sizeof mine, .all = all};
    int error = weft_boot_exchange_among(subset, &exchange);
    error = error ? error : check_wishes(subset, all);
    error = error ? error : agree_flags(subset, all, &handle->team.flags);
    if (error)
        return error;
    handle->team.generation = agreed_generation(all, subset->count);
    handle->team.neighbours = count_neighbours(all, subset->count);
    return 0;
}

static int alloc_block(struct handle *handle, size_t bytes) {
    return weft_block_alloc(&handle->block, SHMEMX_SPACE_DEVICE, weft_device.gpu->ordinal, bytes);
}

/* After success the words of all members are 0 and mapped. */
static int make_memory(struct handle *handle, const struct layout *layout) {
    int error = alloc_block(handle, layout->bytes);
    if (error == -ENOMEM && leave_behind(NULL))
        error = alloc_block(handle, layout->bytes);
    error = weft_boot_agree_among(&handle->subset, error);
    return error ? error : weft_share_attach(&handle->share, handle->block, &handle->subset);
}

/* Sets the addresses of heap objects, if there is a heap. The places of members that are a list are
 * looked up in a table. */
static void set_heap(struct weft_device_team *seen, const struct weft_team *team, char *places) {
    const struct weft_window *heap = &weft_device.heap.window;
    if (!weft_device.open)
        return;
    seen->heap = heap->local;
    seen->heap_bytes = weft_device.heap.slot_bytes;
    int steps = team->member_list.pes ? 1 : weft_device_near_steps(team->member_list.stride);
    seen->stride = (ptrdiff_t)heap->stride * steps;
    seen->places = team->member_list.pes ? (const uint16_t *)places : NULL;
    seen->my_place = (uint32_t)weft_team_place(team, team->my_pe);
}

static void fill_handle(struct handle *handle, const struct weft_team *team,
                        const struct weft_device_wish *wish, const struct layout *layout) {
    const struct weft_window *share = weft_share_window(handle->share);
    struct weft_device_team *seen = &handle->team;
    char *own = weft_window_slot_begin(share, (uint32_t)team->my_pe);
    bool shared = weft_device.neighbours > 1 || seen->neighbours > 1;
    seen->version = WEFT_DEVICE_VERSION;
    seen->me = team->my_pe;
    seen->n = team->npes;
    seen->pe = weft_job.pe;
    seen->my_place = (uint32_t)team->my_pe;
    set_heap(seen, team, own + layout->places);
    seen->words = own;
    seen->inbox = own + layout->inbox;
    seen->share_stride = (ptrdiff_t)share->stride;
    seen->channels = wish->channels;
    seen->slot_bytes = wish->slot_bytes;
    seen->abort = weft_gpu_abort.word;
    seen->gave_up = weft_gpu_abort.gave_up;
    seen->rest_ns = shared ? WEFT_GPU_REST_NS : 0;
    handle->copy = (const struct weft_device_team *)(own + layout->copy);
}

/* Writes to GPU memory: the generation at the head of the words, the members' places, and the
 * handle. */
static int show_handle(const struct handle *handle, const struct weft_team *team) {
    const struct weft_device_team *seen = &handle->team;
    uint16_t places[team->npes];
    for (int i = 0; i < team->npes; i++)
        places[i] = (uint16_t)weft_team_place(team, i);
    int error = weft_gpu_memory_copy(weft_device.gpu, seen->words, &seen->generation,
                                     sizeof seen->generation);
    if (error == 0 && seen->places)
        error = weft_gpu_memory_copy(weft_device.gpu, (void *)seen->places, places, sizeof places);
    return error ? error
                 : weft_gpu_memory_copy(weft_device.gpu, (void *)handle->copy, seen, sizeof *seen);
}

/* Fills in the handle, and allocates and maps the members' memory for it. Returns 0 or -errno with
 * text. Collective over the members; called in the GPU's context. */
static int make_handle(struct handle *handle, const struct weft_team *team,
                       const struct weft_device_wish *wish) {
    struct layout layout = layout_of(team->npes, wish->channels, wish->slot_bytes);
    int error = meet_members(handle, wish);
    error = error ? error : make_memory(handle, &layout);
    if (error)
        return error;
    fill_handle(handle, team, wish, &layout);
    error = weft_boot_agree_among(&handle->subset, show_handle(handle, team));
    handle->subset.tag =
        weft_hash(handle->subset.tag, &handle->team.generation, sizeof handle->team.generation);
    return error;
}

int weft_device_team_make(struct weft_device_team *seen, const struct weft_team *team,
                          const struct weft_device_wish *wish) {
    int pes[team->npes];
    for (int i = 0; i < team->npes; i++)
        pes[i] = weft_team_world_pe(team, i);
    uint64_t tag = weft_hash(WEFT_HASH_BASIS, &team->slot, sizeof team->slot);
    struct weft_boot_subset subset = {pes, team->npes, weft_hash(tag, "device team", 11),
                                      weft_job_die_aborted};
    if (team->far)
        return weft_fail(
            -ENOTSUP,
            "the team has members that are far from PE %d, and kernels reach near PEs only: "
            "use a team of near PEs, such as SHMEM_TEAM_SHARED, and reach the others by calls "
            "from the host or on a stream",
            weft_job.pe);
    struct handle *handle = new_handle(&subset);
    int error = weft_boot_agree_among(&subset, check_own(handle, team->npes, wish));
    if (error == 0) {
        struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
        error = make_handle(handle, team, wish);
        weft_gpu_leave(scope);
    }
    if (error == 0) {
        weft_gpu_rescue_note(); /* the program's own launches are not seen */
        enlist(handle);
        *seen = handle->team;
    } else if (handle) {
        drop_memory(handle);
    }
    return error;
}

/* --- The end ---------------------------------------------------------------------------------- */

/* Lets a kernel that starts from now on see that its handle has been freed. */
static int mark_freed(const struct handle *handle) {
    uint32_t none = 0;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    int error = weft_gpu_memory_copy(weft_device.gpu, handle->team.words, &none, sizeof none);
    weft_gpu_leave(scope);
    return error;
}

int weft_device_team_free(struct weft_device_team *seen) {
    struct handle *handle = find_handle(seen, true);
    if (!handle)
        return refuse_handle(seen);
    int error = weft_boot_agree_among(&handle->subset, 0);
    if (error == -ECONNABORTED) /* a member has finalized, which frees handles, too */
        error = 0;
    error = error ? error : mark_freed(handle);
    memset(seen, 0, sizeof *seen);
    leave_behind(handle);
    return error;
}

int weft_device_team_address(const struct weft_device_team *seen,
                             const struct weft_device_team **address) {
    const struct handle *handle = find_handle(seen, false);
    if (!handle)
        return refuse_handle(seen);
    *address = handle->copy;
    return 0;
}

void weft_device_teams_close(void) {
    leave_behind(NULL);
    for (struct handle *handle = handles.made, *next; handle; handle = next) {
        next = handle->next;
        drop_memory(handle);
    }
    handles.made = NULL;
}
