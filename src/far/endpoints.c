/* SPDX-License-Identifier: BSD-3-Clause */
/* All near processes share the same pages of endpoints. */
#include "far/endpoints.h"
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include "base/machine.h"
#include "job/job.h"
#include "job/wait.h"
#include "job/window.h"

/* The contents of the file. */
static struct endpoints {
    _Atomic uint32_t written; /* not 0 once all endpoints are there */
    _Alignas(64) struct weft_endpoint of[];
} * endpoints;
static size_t endpoints_bytes;
static bool has_proxies; /* some PE has one that is another process */

/* Returns whether this PE can exchange messages with the PE of this endpoint; logs the reason if
 * not. */
static bool endpoint_fits(const struct weft_endpoint *endpoint, const struct weft_endpoint *mine,
                          int pe) {
    if (endpoint->version == mine->version && endpoint->message_bytes == mine->message_bytes &&
        strncmp(endpoint->engine, mine->engine, sizeof endpoint->engine) == 0 &&
        endpoint->address_bytes <= sizeof endpoint->address &&
        endpoint->first < (uint32_t)weft_job.npes)
        return true;
    weft_log("PE %d has engine '%.31s' with messages of %lu bytes, and this PE '%.31s' with %lu: "
             "set WEFT_ENGINE to the same engine on all hosts",
             pe, endpoint->engine, (unsigned long)endpoint->message_bytes, mine->engine,
             (unsigned long)mine->message_bytes);
    return false;
}

static size_t bytes_of_all(void) {
    return sizeof(struct endpoints) + (size_t)weft_job.npes * sizeof(struct weft_endpoint);
}

static struct weft_endpoint endpoint_at(const void *all, int pe) {
    struct weft_endpoint endpoint;
    memcpy(&endpoint, (const char *)all + (size_t)pe * WEFT_FAR_ENDPOINT_BYTES, sizeof endpoint);
    return endpoint;
}

int weft_endpoints_make(int *file) {
    *file = weft_memfd_create("weft-endpoints", bytes_of_all());
    if (*file >= 0)
        return 0;
    weft_log("no memory for the endpoints of %d PEs (memfd_create): %s%s", weft_job.npes,
             strerror(-*file), weft_remedy(*file).text);
    return *file;
}

/* Also unmaps the endpoints of the previous job. */
static int endpoints_map(int file, int protection) {
    if (endpoints)
        munmap(endpoints, endpoints_bytes);
    endpoints_bytes = bytes_of_all();
    void *all = mmap(NULL, endpoints_bytes, protection, MAP_SHARED, file, 0);
    endpoints = all != MAP_FAILED ? all : NULL;
    if (endpoints)
        return 0;
    int error = -errno;
    weft_log("cannot map the endpoints of %d PEs (mmap): %s%s", weft_job.npes, strerror(-error),
             weft_remedy(error).text);
    return error;
}

static void endpoints_write(const void *all) {
    for (int pe = 0; pe < weft_job.npes; pe++)
        endpoints->of[pe] = endpoint_at(all, pe);
    atomic_store(&endpoints->written, 1);
    mprotect(endpoints, endpoints_bytes, PROT_READ);
}

int weft_endpoints_take(const void *all, int file) {
    struct weft_endpoint mine = endpoint_at(all, weft_job.pe);
    bool writes = mine.first == (uint32_t)weft_job.pe;
    has_proxies = false;
    for (int pe = 0; pe < weft_job.npes; pe++) {
        struct weft_endpoint endpoint = endpoint_at(all, pe);
        if (!endpoint_fits(&endpoint, &mine, pe))
            return -EPROTO;
        has_proxies = has_proxies || (endpoint.first != (uint32_t)pe &&
                                      endpoint_at(all, (int)endpoint.first).uses_proxies);
    }
    int error = endpoints_map(file, writes ? PROT_READ | PROT_WRITE : PROT_READ);
    if (error == 0 && writes)
        endpoints_write(all);
    if (error == 0)
        WEFT_WAIT_UNTIL(atomic_load_explicit(&endpoints->written, memory_order_acquire));
    return error;
}

const void *weft_endpoint_address(int pe, size_t *bytes) {
    *bytes = endpoints->of[pe].address_bytes;
    return endpoints->of[pe].address;
}

const weft_probe_address *weft_endpoint_probe(int pe) {
    return &endpoints->of[pe].probe;
}

uint32_t weft_far_slot(int pe) {
    return endpoints->of[pe].slot;
}

int weft_far_first(int pe) {
    return endpoints ? (int)endpoints->of[pe].first : pe;
}

int weft_far_proxy(int pe) {
    uint32_t first = endpoints->of[pe].first;
    return endpoints->of[first].uses_proxies ? (int)first : pe;
}

bool weft_far_has_proxies(void) {
    return has_proxies;
}

bool weft_far_is_proxy(void) {
    const struct weft_window *near = &weft_windows.scratch.window;
    int last = (int)(near->first + (near->count - 1) * near->step);
    return last != weft_job.pe && weft_far_proxy(last) == weft_job.pe;
}
