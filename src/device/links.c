/* SPDX-License-Identifier: BSD-3-Clause */
/* The word that a PE writes identifies writer and target, so that a link that leads elsewhere is
 * noticed.
 *
 * For a visible GPU the driver reports whether the link to it carries atomics. For hidden GPUs only
 * a test can find this out: this PE and the owner add to one word of the owner at the same time, in
 * rounds in which each PE tests one other and is tested by one. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "device/device.h"

struct weft_gpu_team_words *weft_device_world_words(int pe) {
    const struct weft_window *w = &weft_device.words.window;
    return weft_window_at(w, (const void *)w->local, weft_window_slot(w, pe));
}

static int member_pe(const struct weft_device_links *links, int member) {
    return links->pes ? links->pes[member] : member;
}

/* Returns the word that `from` writes to `to`. */
static uint32_t link_token(int from, int to) {
    return (uint32_t)(from * weft_job.npes + to) * 2654435761u + 1;
}

/* Copies with the GPU that can access the member's memory. */
static int word_copy(const struct weft_device_links *links, int member, void *to,
                     const void *from) {
    int pe = member_pe(links, member);
    if (!links->staged || !weft_device_staged(pe))
        return weft_gpu_memory_copy(links->gpu, to, from, sizeof(uint32_t));
    return weft_gpu_agent_copy(weft_device_agent(pe), to, from, sizeof(uint32_t));
}

static int tokens_write(const struct weft_device_links *links) {
    int error = 0;
    for (int i = 0; i < links->count && error == 0; i++) {
        uint32_t value = link_token(weft_job.pe, member_pe(links, i));
        error = word_copy(links, i, links->word(links->context, weft_job.pe, i), &value);
    }
    return error;
}

/* Checks the word of `from` in a member's memory, as this PE's GPU reads it. */
static int token_check(const struct weft_device_links *links, int from, int member) {
    uint32_t value = 0;
    int in = member_pe(links, member);
    int error = word_copy(links, member, &value, links->word(links->context, from, member));
    if (error == 0 && value != link_token(from, in))
        error =
            weft_fail(-EIO,
                      "the word that PE %d wrote to the GPU of PE %d has another value when PE %d "
                      "reads it: the link between their GPUs does not work",
                      from, in, weft_job.pe);
    return error;
}

static int tokens_check(const struct weft_device_links *links) {
    int error = 0;
    for (int i = 0; i < links->count && error == 0; i++) {
        error = token_check(links, member_pe(links, i), links->me);
        if (error == 0)
            error = token_check(links, weft_job.pe, i);
    }
    return error;
}

int weft_device_links_try(const struct weft_device_links *links) {
    int error = links->agree(links->context, tokens_write(links));
    return error ? error : links->agree(links->context, tokens_check(links));
}

int weft_device_links_check(const struct weft_gpu *gpu, const struct weft_gpu_peer *peer, int pe) {
    if (peer->ordinal < 0 || peer->access)
        return 0;
    return weft_fail(-ENOTSUP,
                     "GPU %d of this PE has no peer access to GPU %d, that of PE %d: start the job "
                     "with GPUs that `nvidia-smi topo -p2p rw` shows as OK",
                     gpu->ordinal, peer->ordinal, pe);
}

/* The PEs that a PE wants to test: one row of bits per PE. */
struct wishes {
    unsigned char bits[WEFT_GPU_MEMBERS_MAX / CHAR_BIT];
};

struct trials {
    struct wishes *wishes; /* one per PE */
    weft_cu_stream stream; /* for additions over links; the owner's additions are on the stream of
                              host calls */
};

static bool trial_is_wanted(const struct trials *trials, int pe, int other) {
    return trials->wishes[pe].bits[other / CHAR_BIT] >> other % CHAR_BIT & 1;
}

static bool trial_is_wanted_by_any(const struct trials *trials) {
    for (int pe = 0; pe < weft_job.npes; pe++)
        for (int other = 0; other < weft_job.npes; other++)
            if (trial_is_wanted(trials, pe, other))
                return true;
    return false;
}

static int wishes_share(struct trials *trials) {
    struct wishes mine = {{0}};
    for (int slot = 0; slot < weft_device_near_count(); slot++) {
        int pe = weft_device_near_pe(slot);
        if (weft_device.peers[pe].ordinal < 0)
            mine.bits[pe / CHAR_BIT] |= (unsigned char)(1 << pe % CHAR_BIT);
    }
    struct weft_exchange exchange = {.mine = &mine, .bytes = sizeof mine, .all = trials->wishes};
    return weft_boot_exchange(&exchange);
}

static struct weft_gpu_trial *trial_at(int pe) {
    return (struct weft_gpu_trial *)weft_device_world_words(pe)->ready;
}

static int round_run(const struct trials *trials, int tried, int trier) {
    int error = 0;
    if (trial_is_wanted(trials, trier, weft_job.pe))
        error = weft_gpu_try_atomics(trial_at(weft_job.pe), true, weft_device.gpu->stream);
    if (error == 0 && trial_is_wanted(trials, weft_job.pe, tried))
        error = weft_gpu_try_atomics(trial_at(tried), false, trials->stream);
    if (error == 0)
        error = weft_gpu_synchronize(trials->stream);
    return error ? error : weft_gpu_synchronize(weft_device.gpu->stream);
}

static int result_take(const struct trials *trials, int tried) {
    struct weft_gpu_trial trial = {0};
    if (!trial_is_wanted(trials, weft_job.pe, tried))
        return 0;
    int error = weft_gpu_memory_copy(weft_device.gpu, &trial, trial_at(tried), sizeof trial);
    weft_device.peers[tried].atomics =
        error == 0 && trial.added > 0 && trial.word == trial.made + trial.added;
    return error;
}

static int rounds_run(const struct trials *trials) {
    int npes = weft_job.npes, error = 0;
    for (int distance = 1; distance < npes && error == 0; distance++) {
        int tried = (weft_job.pe + distance) % npes, trier = (weft_job.pe + npes - distance) % npes;
        error = weft_device_agree(round_run(trials, tried, trier));
        if (error == 0)
            error = weft_device_agree(result_take(trials, tried));
        if (error == 0)
            weft_device_clear(trial_at(weft_job.pe), sizeof(struct weft_gpu_trial));
        if (error == 0)
            error = weft_device_agree(0);
    }
    return error;
}

static int trials_run(struct trials *trials) {
    int error = weft_cuda_check(
        weft_cuda.cuStreamCreateWithPriority(&trials->stream, WEFT_CU_STREAM_NON_BLOCKING, 0),
        "a stream to try atomics on");
    error = weft_device_agree(error);
    if (error == 0)
        error = rounds_run(trials);
    if (trials->stream)
        weft_cuda.cuStreamDestroy(trials->stream);
    return error;
}

int weft_device_try_atomics(void) {
    if (weft_job.npes > WEFT_GPU_MEMBERS_MAX)
        return 0;
    struct trials trials = {.wishes = calloc((size_t)weft_job.npes, sizeof *trials.wishes)};
    int error = weft_device_agree(trials.wishes ? 0 : weft_fail(-ENOMEM, "no memory"));
    if (error == 0)
        error = weft_device_agree(wishes_share(&trials));
    if (error == 0 && trial_is_wanted_by_any(&trials))
        error = trials_run(&trials);
    free(trials.wishes);
    return error;
}
