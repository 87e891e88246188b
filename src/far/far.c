/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of the engine: it is opened once near memory is mapped, before the exchange of
 * endpoints, and closed after an exchange in which all PEs part. In between, far PEs communicate by
 * messages, except that some calls use exchanges among PEs (boot/exchange.h). */
#include "far/far.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include "base/machine.h"
#include "boot/boot.h"
#include "job/job.h"
#include "job/window.h"
#include "far/apply.h"
#include "far/progress.h"

/* In a job of this many PEs a host uses a proxy by default if it has a processor to spare for the
 * proxy's thread: channels between all pairs of PEs would cost more than one thread per host that
 * applies all messages. */
enum { ENDPOINT_VERSION = 6, PROXY_PES_MIN = 256 };

static bool open;

/* The thread of a proxy needs a processor that no PE uses. */
static bool proxy_is_worth_it(void) {
    cpu_set_t processors;
    weft_machine_processors(&processors);
    bool spare = weft_job.control->cores > weft_boot_npes_here() && CPU_COUNT(&processors) > 1;
    return spare && weft_job.npes >= PROXY_PES_MIN;
}

/* Reads WEFT_PROXIES. Returns 0, or -EINVAL after logging it. */
static int proxies_read(bool *uses_proxies) {
    bool automatic = strcmp(weft_env.proxies, "auto") == 0;
    *uses_proxies = automatic ? proxy_is_worth_it() : strcmp(weft_env.proxies, "host") == 0;
    if (automatic || *uses_proxies || strcmp(weft_env.proxies, "pe") == 0)
        return 0;
    weft_log("WEFT_PROXIES is '%s': set it to auto, pe or host", weft_env.proxies);
    return -EINVAL;
}

static void endpoint_write(void *room, struct weft_endpoint *endpoint) {
    endpoint->message_bytes = weft_message_payload_max();
    weft_probes_open(&endpoint->probe);
    snprintf(endpoint->engine, sizeof endpoint->engine, "%s", weft_channels.engine->name);
    memset(room, 0, WEFT_FAR_ENDPOINT_BYTES);
    memcpy(room, endpoint, sizeof *endpoint);
}

int weft_far_open(void *room, int *file) {
    static const struct weft_message_user user = {weft_far_apply, weft_far_work_done,
                                                  weft_far_answered, weft_endpoint_address,
                                                  weft_far_wake_served};
    struct weft_endpoint endpoint = {.version = ENDPOINT_VERSION,
                                     .slot = weft_windows.scratch.mine,
                                     .first = weft_windows.scratch.window.first};
    size_t bytes = sizeof endpoint.address;
    bool uses_proxies;
    int result = proxies_read(&uses_proxies);
    endpoint.uses_proxies = uses_proxies;
    if (result == 0)
        result = weft_messages_open(&user, endpoint.address, &bytes);
    if (result < 0)
        return result;
    open = true;
    endpoint.address_bytes = (uint32_t)bytes;
    endpoint_write(room, &endpoint);
    return weft_endpoints_make(file);
}

int weft_far_start(const void *all, const int *files) {
    int result = weft_endpoints_take(all, files[weft_windows.scratch.window.first]);
    if (result == 0) {
        weft_far_serve(weft_far_is_proxy());
        weft_messages_start();
    }
    if (result == 0)
        result = weft_probes_start(weft_endpoint_probe);
    if (result == 0)
        result = weft_far_progress_start();
    if (result == 0)
        weft_wait_look = weft_far_look;
    return result;
}

void weft_far_abandon(void) {
    if (!open)
        return;
    weft_far_progress_stop();
    weft_probes_close();
    weft_wait_look = (void (*)(void))NULL;
    weft_messages_close();
    weft_far_serve(false);
    open = false;
}

/* The exchange ends once all PEs take part; no PE needs an answer after that. */
void weft_far_finish(void) {
    if (!open)
        return;
    unsigned char nothing = 0, *all = calloc((size_t)weft_job.npes, 1);
    struct weft_exchange parting = {.mine = &nothing, .bytes = 1, .all = all};
    if (!all)
        weft_job_panic("no memory to part from %d PEs", weft_job.npes);
    weft_far_progress_hand_over();
    weft_far_settle();
    int error = weft_boot_exchange(&parting);
    if (error)
        weft_job_panic("cannot part from the other PEs: %s%s", strerror(-error),
                       weft_remedy(error).text);
    free(all);
    weft_far_abandon();
}

/* Returns whether messages for a PE's GPU memory and for its host memory are sent to two processes,
 * the PE and its proxy, with no order between them. */
static bool two_serve_a_pe(void) {
    return weft_job.devices && weft_far_has_proxies();
}

void weft_far_fence(void) {
    if (two_serve_a_pe())
        weft_far_quiet();
    else
        weft_messages_fence();
}

void weft_far_quiet(void) {
    weft_messages_quiet(NULL, 0, false);
}

void weft_far_quiet_pes(const int *pes, size_t n) {
    int receivers[2 * n], count = 0;
    for (size_t i = 0; i < n; i++) {
        receivers[count++] = weft_far_proxy(pes[i]);
        if (two_serve_a_pe())
            receivers[count++] = pes[i];
    }
    weft_messages_quiet(receivers, (size_t)count, false);
}

void weft_far_settle(void) {
    weft_messages_quiet(NULL, 0, true);
}

void weft_far_leave_words(void) {
    weft_messages_pass();
}
