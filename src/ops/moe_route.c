/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/moe_route.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t slot_count(const struct weft_moe_route *route) {
    return (size_t)route->npes * route->shape.tokens_max * route->shape.top_k;
}

int weft_moe_route_open(struct weft_moe_route *route, const weft_moe_shape *shape,
                        const struct weft_team *team) {
    size_t npes = (size_t)team->npes, each = shape->experts / npes;
    *route = (struct weft_moe_route){
        .shape = *shape, .npes = team->npes, .me = team->my_pe, .experts_each = each};
    if (shape->rows_max > slot_count(route))
        route->shape.rows_max = slot_count(route);
    if (shape->rows_max == 0)
        route->shape.rows_max =
            npes * shape->tokens_max * (each < shape->top_k ? each : shape->top_k);
    route->counts = malloc(route->shape.experts * sizeof *route->counts);
    route->row_of = malloc(slot_count(route) * sizeof *route->row_of);
    if (route->counts && route->row_of)
        return 0;
    weft_moe_route_close(route);
    return weft_fail_bare(-ENOMEM, "there is no memory for the routes of %zu slots",
                          slot_count(route));
}

void weft_moe_route_close(struct weft_moe_route *route) {
    free(route->counts);
    free(route->row_of);
    route->counts = NULL;
    route->row_of = NULL;
}

int weft_moe_route_check(const struct weft_moe_route *route, const struct weft_moe_list *list) {
    size_t top_k = route->shape.top_k;
    for (size_t i = 0; i < list->ntokens * top_k; i++)
        if (list->experts[i] < -1 || list->experts[i] >= (int64_t)route->shape.experts)
            return weft_fail_bare(-EINVAL,
                                  "slot %zu of token %zu has expert %d, but there are experts 0 to "
                                  "%zu, and -1 for none",
                                  i % top_k, i / top_k, list->experts[i], route->shape.experts - 1);
    return 0;
}

/* --- Placing rows ---------------------------------------------------------------------------- */

static void count_rows(struct weft_moe_route *route, const struct weft_moe_list *lists) {
    memset(route->counts, 0, route->shape.experts * sizeof *route->counts);
    for (int member = 0; member < route->npes; member++)
        for (size_t i = 0; i < lists[member].ntokens * route->shape.top_k; i++)
            if (lists[member].experts[i] >= 0)
                route->counts[lists[member].experts[i]]++;
}

/* Checks that the rows of every member fit. */
static int check_capacity(const struct weft_moe_route *route, const struct weft_team *team) {
    for (int member = 0; member < route->npes; member++) {
        size_t first = (size_t)member * route->experts_each, total = 0, most = first;
        for (size_t expert = first; expert < first + route->experts_each; expert++) {
            total += route->counts[expert];
            most = route->counts[expert] > route->counts[most] ? expert : most;
        }
        if (total > route->shape.rows_max)
            return weft_fail(-ENOSPC,
                             "PE %d would receive %zu rows, %zu of them for its expert %zu, but "
                             "rows_max is %zu",
                             weft_team_world_pe(team, member), total, route->counts[most], most,
                             route->shape.rows_max);
    }
    return 0;
}

static void write_row(const struct weft_moe_route *route, const struct weft_moe_list *list,
                      size_t index, size_t source, const weft_moe_rows *rows, size_t row) {
    size_t cols = route->shape.scale_cols, token = index / route->shape.top_k;
    rows->sources[row] = (int32_t)source;
    if (list->weights)
        rows->weights[row] = list->weights[index];
    if (list->scales)
        memcpy(rows->scales + row * cols, list->scales + token * cols, cols * sizeof(float));
}

/* `next` is the next free row of each expert of this member. */
static void place_member(struct weft_moe_route *route, const struct weft_moe_list *list, int member,
                         const weft_moe_rows *rows, size_t *next) {
    size_t first_expert = (size_t)route->me * route->experts_each;
    size_t at = weft_moe_slot(route, member, 0, 0);
    for (size_t i = 0; i < list->ntokens * route->shape.top_k; i++) {
        int32_t expert = list->experts[i];
        route->row_of[at + i] = -1;
        if (expert >= 0 && weft_moe_owner(route, expert) == route->me) {
            size_t row = next[(size_t)expert - first_expert]++;
            route->row_of[at + i] = (int32_t)row;
            write_row(route, list, i, at + i, rows, row);
        }
    }
}

int weft_moe_route_place(struct weft_moe_route *route, const struct weft_team *team,
                         const struct weft_moe_list *lists, const weft_moe_rows *rows) {
    count_rows(route, lists);
    int error = check_capacity(route, team);
    if (error)
        return error;
    size_t *next = route->counts + (size_t)route->me * route->experts_each, end = 0;
    for (size_t i = 0; i < route->experts_each; i++) {
        size_t count = next[i];
        rows->offsets[i] = (int32_t)end;
        next[i] = end;
        end += count;
    }
    rows->offsets[route->experts_each] = (int32_t)end;
    for (int member = 0; member < route->npes; member++)
        place_member(route, &lists[member], member, rows, next);
    return 0;
}

/* --- Rows that were placed earlier ----------------------------------------------------------- */

int weft_moe_route_restore(struct weft_moe_route *route, const weft_moe_rows *rows) {
    int32_t nrows = rows->offsets[route->experts_each];
    size_t slots = slot_count(route);
    if (nrows < 0 || (size_t)nrows > route->shape.rows_max)
        return weft_fail_bare(-EINVAL, "rows->offsets[%zu] is %d, but rows_max is %zu",
                              route->experts_each, nrows, route->shape.rows_max);
    memset(route->row_of, 0xff, slots * sizeof *route->row_of);
    for (int32_t row = 0; row < nrows; row++) {
        int32_t source = rows->sources[row];
        if (source < 0 || (size_t)source >= slots)
            return weft_fail_bare(-EINVAL,
                                  "rows->sources[%d] is %d, which no dispatch of this shape writes",
                                  row, source);
        route->row_of[source] = row;
    }
    return 0;
}

bool weft_moe_route_visits(const struct weft_moe_route *route, const int32_t *experts, int member) {
    for (size_t slot = 0; slot < route->shape.top_k; slot++)
        if (experts[slot] >= 0 && weft_moe_owner(route, experts[slot]) == member)
            return true;
    return false;
}
