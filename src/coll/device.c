/* SPDX-License-Identifier: BSD-3-Clause */
/* Between two meetings of the members each one pulls what it needs: a copy is complete, and its
 * source the owner's again, when the second one is over. */
#include "coll/device.h"
#include <stdlib.h>
#include <string.h>
#include "coll/chunk.h"
#include "device/rma.h"

/* What this member has begun is part of what it brings. */
static void enter(const struct weft_group *group) {
    weft_device_quiet(group->call);
    group->sync(group);
}

static void leave(const struct weft_group *group) {
    weft_device_quiet(group->call);
    group->sync(group);
}

/* dest here <- source of a member. Under way on return where a GPU copies. */
static void pull(const struct weft_group *group, void *dest, const void *source, size_t bytes,
                 int member) {
    int pe = weft_group_pe(group, member);
    int error = weft_device_concerns(source, dest)
                    ? weft_device_get(dest, source, bytes, pe, true, group->call)
                    : weft_rma_get(dest, source, bytes, pe);
    if (error)
        weft_group_lacks(group, source, bytes, member);
}

/* dest of a member <- source here. */
static void push(const struct weft_group *group, void *dest, const void *source, size_t bytes,
                 int member) {
    int pe = weft_group_pe(group, member);
    int error = weft_device_concerns(dest, source)
                    ? weft_device_put(dest, source, bytes, pe, true, group->call)
                    : weft_rma_put(dest, source, bytes, pe);
    if (error)
        weft_group_lacks(group, dest, bytes, member);
}

/* --- Copies ---------------------------------------------------------------------------------- */

void weft_device_broadcast(const struct weft_group *group, void *dest, const void *source,
                           size_t bytes, int root) {
    enter(group);
    if (group->me != root || dest != source)
        pull(group, dest, source, bytes, root);
    leave(group);
}

void weft_device_fcollect(const struct weft_group *group, void *dest, const void *source,
                          size_t bytes) {
    enter(group);
    for (int distance = 0; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        pull(group, (char *)dest + (size_t)member * bytes, source, bytes, member);
    }
    leave(group);
}

void weft_device_alltoall(const struct weft_group *group, void *dest, const void *source,
                          size_t bytes) {
    const char *block = (const char *)source + (size_t)group->me * bytes;
    enter(group);
    for (int distance = 0; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        pull(group, (char *)dest + (size_t)member * bytes, block, bytes, member);
    }
    leave(group);
}

static void pull_strided(const struct weft_group *group, void *dest, const void *source,
                         const struct weft_strided *shape, int member) {
    int pe = weft_group_pe(group, member);
    if (weft_device_get_strided(dest, source, shape, pe, group->call) != 0)
        weft_group_lacks(group, source,
                         shape->nblocks * (size_t)shape->source_stride * shape->elem_bytes, member);
}

void weft_device_alltoalls(const struct weft_group *group, void *dest, const void *source,
                           const struct weft_blocks_shape *shape) {
    size_t elem = shape->elem_bytes;
    size_t to = shape->nelems * (size_t)shape->dest_stride * elem; /* from block to block */
    size_t from = shape->nelems * (size_t)shape->source_stride * elem;
    struct weft_strided strided = {elem, 1, shape->nelems, shape->dest_stride,
                                   shape->source_stride};
    const char *block = (const char *)source + (size_t)group->me * from;
    enter(group);
    for (int distance = 0; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        pull_strided(group, (char *)dest + (size_t)member * to, block, &strided, member);
    }
    leave(group);
}

/* What a member brings to a collect, in one of the windows. */
struct brought {
    size_t bytes;
    uintptr_t offset;
    int window;
};
enum { WINDOWS = 3 };
static const struct weft_window *const windows[WINDOWS] = {
    &weft_device.heap.window, &weft_windows.heap.window, &weft_windows.statics.window};

static struct brought describe(const void *source, size_t bytes) {
    struct brought brought = {.bytes = bytes};
    while (brought.window < WINDOWS - 1 && !weft_window_holds(windows[brought.window], source, 1))
        brought.window++;
    brought.offset = (uintptr_t)source - windows[brought.window]->local;
    return brought;
}

/* The address that the object has here. */
static const void *object_of(const struct brought *brought) {
    return (const void *)(windows[brought->window]->local + brought->offset);
}

/* What all members bring; everybody has entered then. Who brings nothing may pass no source, and
 * still has to find those of the others: that takes a post. */
static void share(const struct weft_group *group, const void *source, size_t bytes,
                  struct brought *all) {
    struct brought mine = describe(source, bytes);
    weft_sync_post(group->team, &mine, sizeof mine);
    for (int member = 0; member < group->npes; member++)
        memcpy(&all[member], weft_sync_peek(group->team, member, group->call), sizeof mine);
}

static void share_in_set(const struct weft_group *group, const void *source, size_t bytes,
                         struct brought *all) {
    size_t sizes[group->npes];
    group->share(group, bytes, sizes);
    for (int member = 0; member < group->npes; member++)
        all[member] = describe(source, sizes[member]);
}

void weft_device_collect(const struct weft_group *group, void *dest, const void *source,
                         size_t bytes) {
    struct brought all[group->npes];
    size_t offset = 0;
    weft_device_quiet(group->call);
    (group->team ? share : share_in_set)(group, source, bytes, all);
    for (int member = 0; member < group->npes; offset += all[member++].bytes)
        if (all[member].bytes > 0)
            pull(group, (char *)dest + offset, object_of(&all[member]), all[member].bytes, member);
    leave(group);
}

/* --- Reductions and scans -------------------------------------------------------------------- */

/* One array of a fold, and what of it is in work: elements [first, first + nelems), of which
 * parts[member] is a copy here. */
struct stage {
    const struct weft_fold *fold;
    size_t first, nelems;
    char **parts;
    char *result;
};
typedef void stage_body(const struct weft_group *group, void *dest, const struct stage *stage);

enum { STAGE_BYTES = 256 << 10 }; /* of each member's part */

static void pull_parts(const struct weft_group *group, const void *source,
                       const struct stage *stage) {
    size_t elem = stage->fold->elem_bytes;
    const char *from = (const char *)source + stage->first * elem;
    for (int distance = 0; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        pull(group, stage->parts[member], from, stage->nelems * elem, member);
    }
    weft_device_quiet(group->call);
}

static void push_part(const struct weft_group *group, void *dest, const struct stage *stage,
                      const char *part, int member) {
    size_t elem = stage->fold->elem_bytes;
    push(group, (char *)dest + stage->first * elem, part, stage->nelems * elem, member);
}

/* Room for a part of each member, and one more. */
static char *open_parts(const struct weft_group *group, char **parts) {
    char *room = malloc(((size_t)group->npes + 1) * STAGE_BYTES);
    if (!room)
        weft_job_panic("%s: no memory for copies of %d members' parts", group->call, group->npes);
    for (int member = 0; member <= group->npes; member++)
        parts[member] = room + (size_t)member * STAGE_BYTES;
    return room;
}

/* As weft_chunks_each: each member owns a chunk, makes it from all sources and writes it to all, so
 * that dest may be source. */
static void stage_each(const struct weft_group *group, void *dest, const void *source,
                       size_t nelems, const struct weft_fold *fold, stage_body *body) {
    size_t elem = fold->elem_bytes, step = STAGE_BYTES / elem;
    size_t end = weft_chunk_begin(nelems, elem, group->me + 1, group->npes);
    char *parts[group->npes + 1], *room = open_parts(group, parts);
    struct stage stage = {.fold = fold, .parts = parts, .result = parts[group->npes]};
    stage.first = weft_chunk_begin(nelems, elem, group->me, group->npes);
    enter(group);
    for (; stage.first < end; stage.first += step) {
        stage.nelems = end - stage.first < step ? end - stage.first : step;
        pull_parts(group, source, &stage);
        body(group, dest, &stage);
        weft_device_quiet(group->call); /* the parts are free again */
    }
    leave(group);
    free(room);
}

static void reduce_stage(const struct weft_group *group, void *dest, const struct stage *stage) {
    weft_fold_all(stage->fold, stage->result, (const void *const *)stage->parts, group->npes, 0,
                  stage->nelems);
    for (int distance = 0; distance < group->npes; distance++)
        push_part(group, dest, stage, stage->result, weft_group_member(group, distance));
}

/* Each part becomes the fold of all up to it. */
static void accumulate(const struct weft_group *group, const struct stage *stage) {
    for (int member = 1; member < group->npes; member++)
        stage->fold->pair(stage->parts[member], stage->parts[member - 1], stage->parts[member],
                          stage->nelems);
}

static void inclusive_stage(const struct weft_group *group, void *dest, const struct stage *stage) {
    accumulate(group, stage);
    for (int member = 0; member < group->npes; member++)
        push_part(group, dest, stage, stage->parts[member], member);
}

static void exclusive_stage(const struct weft_group *group, void *dest, const struct stage *stage) {
    accumulate(group, stage);
    memset(stage->result, 0, stage->nelems * stage->fold->elem_bytes);
    for (int member = 0; member < group->npes; member++)
        push_part(group, dest, stage, member == 0 ? stage->result : stage->parts[member - 1],
                  member);
}

void weft_device_reduce(const struct weft_group *group, void *dest, const void *source,
                        size_t nelems, const struct weft_fold *fold) {
    stage_each(group, dest, source, nelems, fold, reduce_stage);
}

void weft_device_scan(const struct weft_group *group, void *dest, const void *source, size_t nelems,
                      const struct weft_fold *fold, bool inclusive) {
    stage_each(group, dest, source, nelems, fold, inclusive ? inclusive_stage : exclusive_stage);
}
