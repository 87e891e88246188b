/* SPDX-License-Identifier: BSD-3-Clause */
/* What a PE writes tells who wrote it to whom, so that a link that leads elsewhere is noticed. */
#include "device/links.h"
#include <errno.h>
#include "base/log.h"
#include "core/job.h"
#include "device/device.h"
#include "transport/gpu_memory.h"

static int pe_of(const struct weft_device_links *links, int member) {
    return links->pes ? links->pes[member] : member;
}

/* What `from` writes to `to`. */
static uint32_t token(int from, int to) {
    return (uint32_t)(from * weft_job.npes + to) * 2654435761u + 1;
}

/* By the GPU that reaches the member's memory. */
static int copy(const struct weft_device_links *links, int member, void *to, const void *from) {
    if (!links->staged || !weft_device_staged(member))
        return weft_gpu_memory_copy(links->gpu, to, from, sizeof(uint32_t), links->call);
    return weft_gpu_agent_copy(weft_device_agent(member, links->call), to, from, sizeof(uint32_t),
                               links->call);
}

static int write_tokens(const struct weft_device_links *links) {
    int error = 0;
    for (int i = 0; i < links->count && error == 0; i++) {
        uint32_t value = token(weft_job.pe, pe_of(links, i));
        error = copy(links, i, links->word(links->context, weft_job.pe, i), &value);
    }
    return error;
}

/* A word of `from` in the memory of a member, as this PE's GPU reads it. */
static int check_token(const struct weft_device_links *links, int from, int member) {
    uint32_t value = 0;
    int in = pe_of(links, member);
    int error = copy(links, member, &value, links->word(links->context, from, member));
    if (error == 0 && value != token(from, in))
        error = weft_fail(-EIO,
                          "%s: what PE %d wrote to the GPU of PE %d is not what PE %d reads there: "
                          "the link between their GPUs does not work",
                          links->call, from, in, weft_job.pe);
    return error;
}

static int check_tokens(const struct weft_device_links *links) {
    int error = 0;
    for (int i = 0; i < links->count && error == 0; i++) {
        error = check_token(links, pe_of(links, i), links->me);
        if (error == 0)
            error = check_token(links, weft_job.pe, i);
    }
    return error;
}

int weft_device_links_try(const struct weft_device_links *links) {
    int error = links->agree(links->context, write_tokens(links));
    return error ? error : links->agree(links->context, check_tokens(links));
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
