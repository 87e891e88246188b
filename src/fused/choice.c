/* SPDX-License-Identifier: BSD-3-Clause */
/* A trial enqueues the whole call several times, on the caller's stream: the results are the same
 * each time. The number of calls must be the same on all members, so they agree on it first. Then
 * they exchange their times, and the slowest member decides. */
#include "fused/choice.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/env.h"
#include "base/hash.h"
#include "device/half.h"
#include "fused/library.h"
#include "fused/plan.h"

enum { CHOICES_MAX = 64 };

/* The choices of a team, the same on all members. */
struct choices {
    int count;
    bool kernels; /* some call has used the kernel; its graph may still run */
    struct chosen {
        uint64_t shape;
        enum weft_fused_way way;
        bool tried; /* false: the rule's way, until a call that is not captured */
    } of[CHOICES_MAX];
};

/* A member's contribution to the exchange. */
struct view {
    int32_t may;      /* the GPU runs the kernel, it fits, and the team may use it */
    int32_t captured; /* the stream is, so there is no trial in this call */
    int32_t time;     /* a trial is possible here */
    int32_t kept;     /* the way that an earlier run has found, or -1 */
    int32_t transposed;
    double seconds[WEFT_FUSED_WAYS];
};

static int views_exchange(const struct weft_team *team, const struct view *mine, struct view *all) {
    struct weft_exchange exchange = {.mine = mine, .bytes = sizeof *mine, .all = all};
    return weft_device_channels_exchange(team, &exchange);
}

/* Returns whether WEFT_PRODUCTS asks for Weft's kernels wherever they run. */
static bool is_own(void) {
    return strcmp(weft_env.products, "own") == 0;
}

/* Returns a hash of the facts that all members share. With WEFT_PRODUCTS=own it depends on b's
 * order alone, because that setting decides, and only the order must be checked. */
static uint64_t shape_of(const struct weft_fused_choice *choice) {
    const uint64_t facts[] = {(uint64_t)choice->on->team->npes, choice->rows, choice->cols,
                              (uint64_t)choice->dtype, choice->transposed};
    uint64_t operation = weft_hash(WEFT_HASH_BASIS, choice->operation, strlen(choice->operation));
    return is_own() ? choice->transposed : weft_hash(operation, facts, sizeof facts);
}

static uint64_t key_of(const struct weft_fused_choice *choice) {
    return weft_library_machine(shape_of(choice));
}

static struct chosen *find(struct choices *choices, uint64_t shape) {
    for (int i = 0; i < choices->count; i++)
        if (choices->of[i].shape == shape)
            return &choices->of[i];
    return NULL;
}

/* --- The trial -------------------------------------------------------------------------------- */

/* Returns the slowest member's seconds in a way. */
static double slowest(const struct view *all, int n, enum weft_fused_way way) {
    double most = 0;
    for (int i = 0; i < n; i++)
        most = all[i].seconds[way] > most ? all[i].seconds[way] : most;
    return most;
}

/* Member 0 keeps the way for later runs. */
static void keep(const struct weft_fused_choice *choice, enum weft_fused_way way,
                 const double *seconds) {
    const uint64_t value[WEFT_MEMO_WORDS] = {(uint64_t)way};
    char remark[160];
    snprintf(remark, sizeof remark,
             "%zu x %zu, %s of %d, b by %s: %.1f us by engines, %.1f us by the kernel",
             choice->rows, choice->cols, choice->operation, choice->on->team->npes,
             weft_memo_order(choice->transposed), 1e6 * seconds[WEFT_BY_ENGINES],
             1e6 * seconds[WEFT_BY_KERNEL]);
    if (choice->on->team->my_pe == 0)
        weft_memo_keep(key_of(choice), value, remark);
}

static int try(const struct weft_fused_choice *choice, enum weft_fused_way *way) {
    const struct weft_team *team = choice->on->team;
    struct weft_contest contest = {choice->enqueue, choice->context, choice->on->stream};
    struct view mine = {.may = true}, all[team->npes];
    double seconds[WEFT_FUSED_WAYS];
    mine.seconds[0] = weft_trial_once(&contest, WEFT_FUSED_WAYS);
    int error = views_exchange(team, &mine, all);
    if (error)
        return error;
    weft_trial_measure(&contest, WEFT_FUSED_WAYS, slowest(all, team->npes, 0), mine.seconds);
    error = views_exchange(team, &mine, all);
    for (int i = 0; i < WEFT_FUSED_WAYS && !error; i++)
        seconds[i] = slowest(all, team->npes, (enum weft_fused_way)i);
    if (error)
        return error;
    *way = weft_trial_better(seconds[WEFT_BY_KERNEL], seconds[WEFT_BY_ENGINES]) ? WEFT_BY_KERNEL
                                                                                : WEFT_BY_ENGINES;
    keep(choice, *way, seconds);
    return 0;
}

/* --- Agreement -------------------------------------------------------------------------------- */

static bool is_fixed(void) {
    return is_own() || weft_env.deterministic[0] == '1';
}

/* Waits until the stream's work is done, for a second at most: it may wait for what the program
 * does after this call. */
static bool is_idle_soon(weft_cu_stream stream) {
    enum { TURNS = 1000 };
    int status = weft_cuda.cuStreamQuery(stream);
    for (int turn = 0; turn < TURNS && status == WEFT_CU_NOT_READY; turn++) {
        weft_clock_sleep_ms(1);
        status = weft_cuda.cuStreamQuery(stream);
    }
    return status == WEFT_CU_SUCCESS;
}

static struct view own_view(const struct weft_fused_choice *choice) {
    uint64_t value[WEFT_MEMO_WORDS];
    bool runs = weft_plan_runs(weft_device.gpu->capability);
    struct view mine = {.kept = -1,
                        .captured = weft_gpu_capturing(choice->on->stream),
                        .transposed = choice->transposed};
    mine.may = runs && (is_own() || (choice->fits && weft_device_channels_claim(choice->on->team)));
    if (!mine.may || is_fixed())
        return mine;
    if (weft_memo_find(key_of(choice), value) && value[0] < WEFT_FUSED_WAYS)
        mine.kept = (int32_t)value[0];
    else
        mine.time = !mine.captured && is_idle_soon(choice->on->stream);
    return mine;
}

/* Returns an error that names the first member with another order of b than member 0, or 0. */
static int check_orders(const struct weft_fused_choice *choice, const struct view *all) {
    const struct weft_team *team = choice->on->team;
    for (int i = 1; i < team->npes; i++)
        if (all[i].transposed != all[0].transposed)
            return weft_fail(-EINVAL,
                             "%s: b is stored by %s on PE %d and by %s on PE %d: pass it in one "
                             "order on all members",
                             choice->operation, weft_memo_order(all[0].transposed),
                             weft_team_world_pe(team, 0), weft_memo_order(all[i].transposed),
                             weft_team_world_pe(team, i));
    return 0;
}

/* Decides by what all members have contributed. Member 0's earlier run counts. */
static int decide(struct chosen *chosen, const struct weft_fused_choice *choice,
                  const struct view *all) {
    bool may = true, time = true, captured = false;
    for (int i = 0; i < choice->on->team->npes; i++) {
        may = may && all[i].may;
        time = time && all[i].time;
        captured = captured || all[i].captured;
    }
    chosen->way = !may ? WEFT_BY_ENGINES : is_own() ? WEFT_BY_KERNEL : choice->rule;
    chosen->tried = !may || !captured || is_fixed() || all[0].kept >= 0;
    if (may && all[0].kept >= 0)
        chosen->way = (enum weft_fused_way)all[0].kept;
    else if (may && time)
        return try(choice, &chosen->way);
    return 0;
}

static int agree(struct chosen *chosen, const struct weft_fused_choice *choice) {
    const struct weft_team *team = choice->on->team;
    struct view mine = own_view(choice), all[team->npes];
    int error = views_exchange(team, &mine, all);
    error = error ? error : check_orders(choice, all);
    error = error ? error : decide(chosen, choice, all);
    chosen->shape = shape_of(choice);
    return error;
}

int weft_fused_choose(enum weft_fused_way *way, const struct weft_fused_choice *choice) {
    *way = WEFT_BY_ENGINES;
    if (weft_on_stream_is_apart(choice->on) ||
        (strcmp(weft_env.products, "auto") != 0 && !is_own()))
        return 0;
    struct choices *choices = weft_device_channels_notes(choice->on->team, sizeof *choices);
    struct chosen *known = choices ? find(choices, shape_of(choice)) : NULL, found;
    if (known)
        *way = known->way;
    if (!choices)
        return weft_fail(-ENOMEM, "no memory for what is known of the team's products");
    if (known ? known->tried || weft_gpu_capturing(choice->on->stream)
              : choices->count == CHOICES_MAX)
        return 0;
    int error = agree(&found, choice);
    if (error)
        return error;
    if (!known)
        known = &choices->of[choices->count++];
    *known = found;
    *way = found.way;
    choices->kernels = choices->kernels || found.way == WEFT_BY_KERNEL;
    if (!choices->kernels)
        weft_device_channels_unclaim(choice->on->team);
    return 0;
}
