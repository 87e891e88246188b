/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/hosts_vector.h"
#include "base/size.h"
#include "coll/band.h"
#include "coll/choice.h"
#include "coll/collective.h"
#include "coll/elements.h"
#include "coll/hosts.h"

/* The number of blocks of the arrays, and the arrays' offsets in a workspace. */
struct vector_layout {
    size_t sources, dests, width; /* width: of a band, in elements of a block */
    size_t dest_at, partial_at, bytes;
    bool has_partial;
};

static bool scatters(const struct weft_hosts_vector *v) {
    return v->reduction && v->plan.source_block != 0;
}

static const struct weft_fold *fold_of(const struct weft_hosts_vector *v) {
    return &weft_folds[v->reduction->op][v->reduction->number];
}

/* Returns the offset of the next array in a workspace, aligned for every type. */
enum { APART = 64 };
static size_t array_end(size_t bytes) {
    return weft_round_up(bytes, APART);
}

/* Partial results get an array of their own only if dest cannot hold them. A broadcast uses one
 * array for source and dest. */
static struct vector_layout layout_of(const struct weft_hosts_vector *v) {
    enum { GRAIN = 64, ARRAYS = 3 };
    size_t npes = (size_t)v->team->npes, elem = v->elem_bytes;
    size_t partial = v->reduction ? weft_partial_bytes(fold_of(v)) : 0;
    struct vector_layout layout = {
        .sources = v->plan.source_block ? npes : 1,
        .dests = v->plan.dest_block ? npes : 1,
        .has_partial = v->reduction && (scatters(v) || partial > elem) &&
                       weft_hosts_fold_goes_along(v->team->levels, fold_of(v), scatters(v))};
    partial = layout.has_partial ? partial * layout.sources : 0;
    size_t unit = (layout.sources + layout.dests) * elem + partial;
    size_t width = weft_band_width(weft_team_workspace_capacity() - ARRAYS * APART, unit);
    width = width < v->nelems ? width - width % GRAIN : v->nelems;
    layout.width = width > 0 ? width : 1;
    layout.dest_at = v->plan.sender < 0 ? array_end(layout.width * layout.sources * elem) : 0;
    layout.partial_at = layout.dest_at + array_end(layout.width * layout.dests * elem);
    layout.bytes = layout.partial_at + layout.width * partial;
    return layout;
}

size_t weft_hosts_vector_workspace(const struct weft_hosts_vector *vector) {
    return layout_of(vector).bytes;
}

/* --- Bands ------------------------------------------------------------------------------------ */

/* A band: some elements of each block, in the arrays or in the workspace. The blocks of `source`
 * are source_block bytes apart. */
struct vector_band {
    const struct weft_hosts_vector *vector;
    size_t first, nelems, source_block;
    char *dest, *partial;
    const char *source;
    bool entered; /* all members have entered, and their sources may be read */
};

/* Exchanges small blocks in packets; each member folds the blocks that it receives. */
static void scatter_packets(const struct weft_group *group, const struct vector_band *band,
                            const struct weft_folding *folding) {
    _Alignas(16) char blocks[WEFT_PACKET_BYTES];
    const void *sources[group->npes];
    size_t bytes = band->nelems * band->vector->elem_bytes;
    for (int member = 0; member < group->npes; member++)
        sources[member] = blocks + (size_t)member * bytes;
    struct weft_chunk chunk = {.sources = sources, .n = group->npes, .nelems = band->nelems};
    weft_group_alltoall(group, blocks, band->source, bytes);
    weft_elements_fold(folding, WEFT_FOLD_WHOLE, band->dest, &chunk);
}

static void fold_band(const struct weft_group *group, const struct vector_band *band) {
    const struct weft_hosts_vector *v = band->vector;
    struct weft_vector_folding vector = {.reduction = *v->reduction,
                                         .npes = group->npes,
                                         .source_block = scatters(v) ? band->source_block : 0,
                                         .partial = band->partial,
                                         .entered = band->entered};
    struct weft_folding folding = {fold_of(v), band->nelems, WEFT_FOLD_OF_ALL, &vector};
    struct weft_packet_layout packet = {.block = band->nelems * v->elem_bytes};
    if (!scatters(v))
        weft_group_fold(group, band->dest, band->source, &folding);
    else if (band->source_block == packet.block && weft_host_packets_hold(group->team, packet))
        scatter_packets(group, band, &folding);
    else
        weft_hosts_fold(group, band->dest, band->source, &folding);
}

static void move_band(const struct vector_band *band) {
    const struct weft_hosts_vector *v = band->vector;
    struct weft_group group = weft_group_of(v->team);
    size_t bytes = band->nelems * v->elem_bytes;
    if (v->reduction)
        fold_band(&group, band);
    else if (v->plan.source_block)
        weft_group_alltoall(&group, band->dest, band->source, bytes);
    else if (v->plan.dest_block)
        weft_group_fcollect(&group, band->dest, band->source, bytes);
    else
        weft_group_broadcast(&group, band->dest, band->source, bytes, v->plan.sender);
}

/* Copies the band of each block of source to the workspace. */
static void stage_band(const struct vector_band *band, char *workspace, size_t nblocks) {
    const struct weft_hosts_vector *v = band->vector;
    size_t bytes = band->nelems * v->elem_bytes;
    for (size_t block = 0; block < nblocks; block++)
        v->copy(workspace + block * bytes,
                v->source + (block * v->nelems + band->first) * v->elem_bytes, bytes);
}

/* Copies the band of each block from the workspace to dest. */
static void store_band(const struct vector_band *band, size_t nblocks) {
    const struct weft_hosts_vector *v = band->vector;
    size_t bytes = band->nelems * v->elem_bytes;
    for (size_t block = 0; block < nblocks; block++)
        v->copy(v->dest + (block * v->nelems + band->first) * v->elem_bytes,
                band->dest + block * bytes, bytes);
}

/* If dest has several blocks, it is used in place only together with source: then one band is the
 * whole vector, whose blocks are contiguous. */
void weft_hosts_vector_move(const struct weft_hosts_vector *vector) {
    const struct weft_hosts_vector *v = vector;
    struct vector_layout layout = layout_of(v);
    bool in_place = v->dest_symmetric && v->source_symmetric;
    bool stores = v->plan.dest_block ? !in_place : !v->dest_symmetric;
    bool stages = v->plan.dest_block ? !in_place : !v->source_symmetric;
    size_t width = in_place && !layout.has_partial ? v->nelems : layout.width, elem = v->elem_bytes;
    char *workspace = weft_team_workspace_of(v->team, v->team->my_pe);
    for (size_t first = 0; first < v->nelems; first += width) {
        size_t nelems = v->nelems - first < width ? v->nelems - first : width;
        struct vector_band band = {
            .vector = v,
            .first = first,
            .nelems = nelems,
            .source_block = (stages ? nelems : v->nelems) * elem,
            .dest = stores ? workspace + layout.dest_at : v->dest + first * elem,
            .source = stages ? workspace : v->source + first * elem,
            .partial = layout.has_partial ? workspace + layout.partial_at : NULL,
            .entered = v->entered && !stages && first == 0};
        if (stages && weft_plan_sends(&v->plan, v->team->my_pe))
            stage_band(&band, workspace, layout.sources);
        move_band(&band);
        if (stores)
            store_band(&band, layout.dests);
    }
}
