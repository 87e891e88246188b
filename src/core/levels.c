/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/levels.h"
#include <stdlib.h>
#include "job/job.h"
#include "far/far.h"

static struct weft_levels *levels_new(int npes) {
    size_t n = (size_t)npes;
    struct weft_levels *levels = calloc(1, sizeof *levels + (5 * n + 1) * sizeof(int));
    if (!levels)
        return NULL;
    levels->leaders = (int *)(levels + 1);
    levels->begins = levels->leaders + n;
    levels->members = levels->begins + n + 1;
    levels->places = levels->members + n;
    levels->hosts = levels->places + n;
    return levels;
}

/* Numbers the hosts and counts their members in begins[host + 1]. numbers[pe] is the number of the
 * host whose near PEs begin with `pe`, or -1. */
static void hosts_find(struct weft_levels *levels, const struct weft_member_list *member_list,
                       int npes, int *numbers) {
    for (int pe = 0; pe < weft_job.npes; pe++)
        numbers[pe] = -1;
    for (int member = 0; member < npes; member++) {
        int *number = &numbers[weft_far_first(weft_member_pe(member_list, member))];
        if (*number < 0) {
            *number = levels->nleaders++;
            levels->leaders[*number] = member;
        }
        levels->hosts[member] = *number;
        levels->begins[*number + 1]++;
    }
}

static void members_sort(struct weft_levels *levels, int npes) {
    levels->least = npes;
    for (int host = 0; host < levels->nleaders; host++) {
        int count = levels->begins[host + 1];
        levels->least = count < levels->least ? count : levels->least;
        levels->most = count > levels->most ? count : levels->most;
        levels->begins[host + 1] += levels->begins[host];
    }
    int ends[npes];
    for (int host = 0; host < levels->nleaders; host++)
        ends[host] = levels->begins[host];
    levels->in_turn = true;
    for (int member = 0; member < npes; member++) {
        int place = ends[levels->hosts[member]]++;
        levels->members[place] = member;
        levels->places[member] = place;
        levels->in_turn = levels->in_turn && place == member;
    }
}

struct weft_levels *weft_levels_of(const struct weft_member_list *member_list, int npes, int me) {
    struct weft_levels *levels = levels_new(npes);
    int *numbers = malloc((size_t)weft_job.npes * sizeof *numbers);
    if (!levels || !numbers) {
        free(levels);
        free(numbers);
        return NULL;
    }
    hosts_find(levels, member_list, npes, numbers);
    free(numbers);
    members_sort(levels, npes);
    levels->leader = levels->hosts[me];
    levels->near = weft_levels_count(levels, levels->leader);
    int before = (weft_levels_rank(levels, me) + levels->near - 1) % levels->near;
    levels->before =
        weft_member_pe(member_list, levels->members[levels->begins[levels->leader] + before]);
    return levels;
}
