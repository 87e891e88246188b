/* SPDX-License-Identifier: BSD-3-Clause */
/* What a PE writes tells who wrote it to whom, so that a link that leads elsewhere is noticed. */
#include "device/links.h"
#include <errno.h>
#include "base/log.h"
#include "core/job.h"
#include "device/device.h"
#include "transport/gpu_memory.h"

static int member_pe(const struct weft_device_links *links, int member) {
    return links->pes ? links->pes[member] : member;
}

/* What `from` writes to `to`. */
static uint32_t link_token(int from, int to) {
    return (uint32_t)(from * weft_job.npes + to) * 2654435761u + 1;
}

/* By the GPU that reaches the member's memory. */
static int word_copy(const struct weft_device_links *links, int member, void *to,
                     const void *from) {
    if (!links->staged || !weft_device_staged(member))
        return weft_gpu_memory_copy(links->gpu, to, from, sizeof(uint32_t), links->call);
    return weft_gpu_agent_copy(weft_device_agent(member, links->call), to, from, sizeof(uint32_t),
                               links->call);
}

static int tokens_write(const struct weft_device_links *links) {
    int error = 0;
    for (int i = 0; i < links->count && error == 0; i++) {
        uint32_t value = link_token(weft_job.pe, member_pe(links, i));
        error = word_copy(links, i, links->word(links->context, weft_job.pe, i), &value);
    }
    return error;
}

/* A word of `from` in the memory of a member, as this PE's GPU reads it. */
static int token_check(const struct weft_device_links *links, int from, int member) {
    uint32_t value = 0;
    int in = member_pe(links, member);
    int error = word_copy(links, member, &value, links->word(links->context, from, member));
    if (error == 0 && value != link_token(from, in))
        error = weft_fail(-EIO,
                          "%s: what PE %d wrote to the GPU of PE %d is not what PE %d reads there: "
                          "the link between their GPUs does not work",
                          links->call, from, in, weft_job.pe);
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

int weft_device_links_check(const struct weft_gpu *gpu, const struct weft_gpu_peer *peer, int pe,
                            const char *call) {
    if (peer->ordinal < 0 || peer->access)
        return 0;
    return weft_fail(
        -ENOTSUP,
        "%s: GPU %d of this PE has no peer access to GPU %d, that of PE %d: start with "
        "GPUs that `nvidia-smi topo -p2p rw` shows as OK",
        call, gpu->ordinal, peer->ordinal, pe);
}
