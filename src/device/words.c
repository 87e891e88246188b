/* SPDX-License-Identifier: BSD-3-Clause */
/* Every pair of GPUs is tested with data in these words before they are used. The words in GPU
 * memory always exist. If GPUs have to synchronise through host memory, there is a segment with
 * words that the GPUs of all PEs can access. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/size.h"
#include "device/device.h"

#define WORDS_BYTES weft_page_up(WEFT_TEAMS_MAX * sizeof(struct weft_gpu_team_words))
#define AREA_BYTES  ((size_t)512 << 10)
#define SLOT_BYTES  (WORDS_BYTES + WEFT_TEAMS_MAX * AREA_BYTES)

/* A slot contains the words of all teams, and after them the teams' areas, which are committed and
 * registered one by one. */
static struct weft_segment host_words;
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
static bool *registered;            /* by slot and team */
static bool listed[WEFT_TEAMS_MAX]; /* the member list has been copied to the GPU */
static uint32_t generations[WEFT_TEAMS_MAX];

/* --- In host memory -------------------------------------------------------------------- */

static void *host_words_slot(uint32_t slot) {
    return weft_window_slot_begin(&host_words.window, slot);
}

static int host_words_make(void) {
    const struct weft_segment *near = &weft_windows.scratch;
    struct weft_slots slots = {near->window.first, near->window.step, near->window.count,
                               near->mine};
    int error = weft_segment_alloc(&host_words, "weft-gpu-words", &slots, SLOT_BYTES, SLOT_BYTES);
    if (error == 0)
        error = weft_segment_grow(&host_words, WORDS_BYTES, WORDS_BYTES);
    registered = calloc((size_t)slots.count * WEFT_TEAMS_MAX, sizeof *registered);
    if (error == 0 && !registered)
        error = -ENOMEM;
    return error ? weft_fail(error, "no memory for the words with which GPUs synchronise") : 0;
}

static int host_words_attach(const int *fds, void *unused) {
    int near[weft_device_near_count()];
    (void)unused;
    for (int slot = 0; slot < weft_device_near_count(); slot++)
        near[slot] = fds[weft_device_near_pe(slot)];
    int error = weft_segment_attach(&host_words, near, SLOT_BYTES);
    if (error)
        return weft_fail(error, "cannot map the words of another PE");
    for (uint32_t slot = 0; slot < host_words.window.count && error == 0; slot++)
        error = weft_gpu_register(host_words_slot(slot), WORDS_BYTES);
    return error;
}

static int host_words_open(void) {
    int error = weft_device_agree(host_words_make());
    return error ? error : weft_device_show(host_words.fd, host_words_attach, NULL);
}

static char *area_at(uint32_t slot, int team) {
    return (char *)host_words_slot(slot) + WORDS_BYTES + (size_t)team * AREA_BYTES;
}

static void host_words_close(void) {
    for (uint32_t slot = 0; weft_segment_is_mapped(&host_words) && slot < host_words.window.count;
         slot++) {
        weft_gpu_unregister(host_words_slot(slot));
        for (int team = 0; registered && team < WEFT_TEAMS_MAX; team++)
            if (registered[slot * WEFT_TEAMS_MAX + (uint32_t)team])
                weft_gpu_unregister(area_at(slot, team));
    }
    if (weft_segment_is_mapped(&host_words))
        weft_segment_free(&host_words);
    free(registered);
    registered = NULL;
}

/* Memory that a peer has not committed yet exists as soon as anybody registers it. */
static int area_register(uint32_t slot, int team) {
    bool *is = &registered[slot * WEFT_TEAMS_MAX + (uint32_t)team];
    int error = *is ? 0 : weft_gpu_register(area_at(slot, team), AREA_BYTES);
    *is = error == 0;
    return error;
}

/* --- In GPU memory ------------------------------------------------------------------------ */

static void *world_word_at(const void *unused, int from, int member) {
    (void)unused;
    uint32_t slot = weft_window_slot(&weft_device.words.window, from);
    return &weft_device_world_words(weft_device_near_pe(member))->arrived[slot];
}

static int world_agree(const void *unused, int own) {
    (void)unused;
    return weft_device_agree(own);
}

static int pairs_try(void) {
    int near[weft_device_near_count()];
    for (int slot = 0; slot < weft_device_near_count(); slot++)
        near[slot] = weft_device_near_pe(slot);
    struct weft_device_links links = {.gpu = weft_device.gpu,
                                      .pes = near,
                                      .count = weft_device_near_count(),
                                      .me = (int)weft_device.words.mine,
                                      .staged = true,
                                      .word = world_word_at,
                                      .agree = world_agree};
    int error = weft_device_links_try(&links);
    if (error == 0)
        weft_device_clear((void *)weft_device.words.window.local, WORDS_BYTES);
    if (error == 0)
        error = weft_gpu_try_writes(weft_device.gpu, weft_device_world_words(weft_job.pe)->ready);
    error = weft_device_agree(error); /* nobody may use the words before all have reset theirs */
    return error ? error : weft_device_try_atomics();
}

int weft_device_words_open(void) {
    int error = weft_device_agree(weft_device_window_alloc(&weft_device.words, WORDS_BYTES));
    if (error == 0)
        error = weft_device_extend(&weft_device.words, WORDS_BYTES);
    if (error == 0)
        error = pairs_try();
    return error || !weft_device.staged ? error : host_words_open();
}

void weft_device_words_close(void) {
    memset(listed, 0, sizeof listed);
    memset(generations, 0, sizeof generations);
    host_words_close();
    weft_gpu_window_free(&weft_device.words);
}

/* --- Words of teams --------------------------------------------------------------------------- */

static const struct weft_window *words_window(void) {
    return weft_device.staged ? &host_words.window : &weft_device.words.window;
}

static struct weft_gpu_team_words *team_words(const struct weft_team *team) {
    struct weft_gpu_team_words *all = (void *)words_window()->local;
    return &all[team->slot];
}

/* Copies the member list to this PE's words of the team. */
static int list_show(const struct weft_team *team) {
    uint16_t places[WEFT_GPU_MEMBERS_MAX], *shown = team_words(team)->places;
    size_t bytes = (size_t)team->npes * sizeof *places;
    int error = 0;
    if (!team->member_list.pes || listed[team->slot])
        return 0;
    for (int i = 0; i < team->npes; i++)
        places[i] = (uint16_t)weft_team_place(team, i);
    if (weft_device.staged)
        memcpy(shown, places, bytes);
    else
        error = weft_gpu_memory_copy(weft_device.gpu, shown, places, bytes);
    listed[team->slot] = error == 0;
    return error;
}

/* Returns the memory at this PE's p in the window, on all members. */
static struct weft_array team_array(const struct weft_window *window, const void *p,
                                    const struct weft_team *team) {
    const struct weft_member_list *member_list = &team->member_list;
    if (member_list->pes)
        return weft_window_array(window, p, 0, 1, team_words(team)->places);
    uint32_t first = weft_window_slot(window, member_list->start);
    return weft_window_array(window, p, first, weft_device_near_steps(member_list->stride), NULL);
}

int weft_device_words(struct weft_array *words, const struct weft_team *team) {
    *words = team_array(words_window(), team_words(team), team);
    return list_show(team);
}

struct weft_gpu_call weft_device_call(const struct weft_team *team) {
    return (struct weft_gpu_call){team_words(team), (uint32_t)team->slot, generations[team->slot]};
}

int weft_device_area(struct weft_device_area *area, const struct weft_team *team) {
    const struct weft_window *window = &host_words.window;
    char *own = area_at(host_words.mine, team->slot);
    int error = 0;
    pthread_mutex_lock(&registering);
    if (!registered[host_words.mine * WEFT_TEAMS_MAX + (uint32_t)team->slot])
        error = weft_segment_commit_range(&host_words, (size_t)(own - (char *)window->local),
                                          AREA_BYTES);
    if (error)
        weft_fail(error, "no memory for copies through host memory");
    for (int member = 0; member < team->npes && error == 0; member++)
        error =
            area_register(weft_window_slot(window, weft_team_world_pe(team, member)), team->slot);
    pthread_mutex_unlock(&registering);
    *area = (struct weft_device_area){team_array(window, own, team), AREA_BYTES};
    return error ? error : list_show(team);
}

void weft_device_words_reset(const struct weft_team *team) {
    if (weft_window_bytes(&weft_device.words.window) == 0)
        return;
    struct weft_gpu_team_words *words = team_words(team);
    uint32_t generation = ++generations[team->slot];
    listed[team->slot] = false;
    if (weft_device.staged) {
        memset(words, 0, sizeof *words);
        words->generation = generation;
        atomic_thread_fence(memory_order_seq_cst);
        return;
    }
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    weft_device_clear(words, sizeof *words);
    weft_device_must(
        weft_gpu_memory_copy(weft_device.gpu, &words->generation, &generation, sizeof generation));
    weft_gpu_leave(scope);
}
