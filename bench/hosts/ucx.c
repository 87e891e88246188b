/* SPDX-License-Identifier: BSD-3-Clause */
/* The times of UCX's own calls for the rows of bench/far.c, with put, get, atomics, fence and
 * flush of UCP: ucx HOST 0|1; HOST is that of side 0. Both sides call ucp_worker_progress
 * without pause. */
#include "meet.h"
#include <stdint.h>
#include <string.h>
#include <ucp/api/ucp.h>

enum { WORD = 64, INBOX = 4096, REGION = INBOX + LARGEST, IN_FLIGHT = 8 };

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h endpoint;
static ucp_rkey_h key;
static unsigned char *region, *local;
static uint64_t there; /* address of the other side's region */

static void check(ucs_status_t status, const char *what) {
    if (status == UCS_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
    exit(1);
}

static void complete(ucs_status_ptr_t request, const char *what) {
    if (!UCS_PTR_IS_PTR(request)) {
        check(UCS_PTR_STATUS(request), what);
        return;
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS)
        ucp_worker_progress(worker);
    check(ucp_request_check_status(request), what);
    ucp_request_free(request);
}

static const ucp_request_param_t plain;

static ucs_status_ptr_t start_put(size_t offset, const void *from, size_t size) {
    return ucp_put_nbx(endpoint, from, size, there + offset, key, &plain);
}

static void flush(void) {
    complete(ucp_ep_flush_nbx(endpoint, &plain), "flush");
}

static void open_worker(void) {
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                           .features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64};
    ucp_worker_params_t of_worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                     .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_config_t *config;
    check(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
    check(ucp_init(&params, config, &context), "ucp_init");
    ucp_config_release(config);
    check(ucp_worker_create(context, &of_worker, &worker), "ucp_worker_create");
}

/* Exchanges any number of bytes with the other side. */
static void *swap(const void *mine, uint64_t size) {
    uint64_t theirs;
    exchange(&size, &theirs, sizeof size);
    void *data = malloc(theirs);
    send_all(mine, size);
    receive_all(data, theirs);
    return data;
}

static void connect_worker(void) {
    ucp_address_t *address;
    size_t size;
    check(ucp_worker_get_address(worker, &address, &size), "ucp_worker_get_address");
    ucp_address_t *other = swap(address, size);
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = other};
    check(ucp_ep_create(worker, &params, &endpoint), "ucp_ep_create");
    ucp_worker_release_address(worker, address);
    free(other);
}

static void share_region(void) {
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                                 UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                   .length = REGION};
    ucp_mem_h memory;
    void *packed;
    size_t size;
    params.address = region = aligned_alloc(4096, REGION);
    local = aligned_alloc(4096, LARGEST);
    memset(region, 0, REGION);
    memset(local, 1, LARGEST);
    check(ucp_mem_map(context, &params, &memory), "ucp_mem_map");
    check(ucp_rkey_pack(context, memory, &packed, &size), "ucp_rkey_pack");
    void *other = swap(packed, size);
    check(ucp_ep_rkey_unpack(endpoint, other, &key), "ucp_ep_rkey_unpack");
    uint64_t mine = (uint64_t)(uintptr_t)region;
    exchange(&mine, &there, sizeof mine);
    ucp_rkey_buffer_release(packed);
    free(other);
}

/* Waits for the other side, and makes progress for it meanwhile. */
static void barrier(void) {
    char byte = 0;
    send_all(&byte, 1);
    while (recv(peer, &byte, 1, MSG_DONTWAIT) != 1)
        ucp_worker_progress(worker);
}

static void put_flush(long n) {
    for (long i = 0; i < n && me == 0; i++) {
        ucs_status_ptr_t put = start_put(WORD, &i, 8);
        flush();
        complete(put, "put");
    }
}

static void get(long n) {
    for (long i = 0; i < n && me == 0; i++)
        complete(ucp_get_nbx(endpoint, local, bytes, there + INBOX, key, &plain), "get");
}

static void fetch_add(long n) {
    uint64_t one = 1, before;
    ucp_request_param_t param = {.op_attr_mask =
                                     UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
                                 .datatype = ucp_dt_make_contig(8),
                                 .reply_buffer = &before};
    for (long i = 0; i < n && me == 0; i++)
        complete(ucp_atomic_op_nbx(endpoint, UCP_ATOMIC_OP_ADD, &one, 1, there + WORD, key, &param),
                 "atomic");
}

/* A put, a fence, and a put of the word that the other side polls. */
static void send_signal(const uint64_t *turn) {
    ucs_status_ptr_t data = start_put(INBOX, local, bytes);
    check(ucp_worker_fence(worker), "fence");
    ucs_status_ptr_t word = start_put(2 * WORD, turn, 8);
    complete(data, "put");
    complete(word, "put");
}

static void put_signal(long n) {
    static uint64_t turn;
    const uint64_t *word = (const uint64_t *)(region + 2 * WORD);
    for (long i = 0; i < n; i++) {
        turn++;
        if (me == 0)
            send_signal(&turn);
        while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != turn)
            ucp_worker_progress(worker);
        if (me != 0)
            send_signal(&turn);
    }
}

static void put(long n) {
    ucs_status_ptr_t flying[IN_FLIGHT] = {NULL};
    for (long i = 0; i < n && me == 0; i++) {
        complete(flying[i % IN_FLIGHT], "put");
        flying[i % IN_FLIGHT] = start_put(INBOX, local, bytes);
    }
    for (int i = 0; i < IN_FLIGHT; i++)
        complete(flying[i], "put");
    if (me == 0)
        flush();
}

int main(int argc, char **argv) {
    loop *const loops[ROWS] = {[PUT_QUIET] = put_flush,
                               [GET] = get,
                               [FETCH_ADD] = fetch_add,
                               [PUT_SIGNAL] = put_signal,
                               [PUT_SIGNAL_BLOCK] = put_signal,
                               [PUT_MANY] = put,
                               [PUT_LARGE] = put,
                               [GET_LARGE] = get};
    if (argc != 3)
        return 2;
    library = "UCX";
    meet(argv);
    open_worker();
    connect_worker();
    share_region();
    far_rows_measure(loops, 500, barrier, report);
    fflush(stdout);
    _exit(0); /* without the orderly close, which would need the other side's progress */
}
