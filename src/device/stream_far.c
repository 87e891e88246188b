/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls on streams to far PEs: a stream proxy makes the host's call when the stream gets there, and
 * the stream continues when the call is complete for this PE (device/proxy.c). Operations on one PE
 * have the order of the stream, because messages have; a quiet waits for their acknowledgment. */
#include <errno.h>
#include "device/stream.h"

/* Detects now an error that the thread could not report. Returns 0 or -EFAULT. */
static int check_symmetric(const char *argument, const void *p, size_t bytes) {
    if (bytes == 0 || weft_device_near(p, bytes, weft_job.pe))
        return 0;
    return weft_fail(-EFAULT, "argument %s is %p: not symmetric over %zu bytes", argument, p,
                     bytes);
}

static int task_run(void (*run)(const void *), const void *arguments, size_t bytes,
                    weft_cu_stream stream) {
    struct weft_proxy_task task = {run, arguments, bytes};
    return weft_proxy_run(NULL, &task, stream);
}

/* Ends the job on an error, which is unexpected: the arguments were checked when the task was made.
 */
static void must(int error) {
    if (error)
        weft_job_panic(
            "the stream has reached a call whose memory on a far PE is gone: free memory only "
            "after the stream has used it");
}

/* --- Copies ----------------------------------------------------------------------------------- */

struct far_copy {
    struct weft_transfer transfer; /* the symmetric side is this PE's address */
    int pe;
};

static void far_copy_run(const void *arguments) {
    const struct far_copy *copy = arguments;
    const struct weft_transfer *t = &copy->transfer;
    must(t->put ? weft_device_far_put(t->to, t->from, t->bytes, copy->pe, false)
                : weft_device_far_get(t->to, t->from, t->bytes, copy->pe, false));
}

int weft_stream_far_copy(const struct weft_transfer *transfer, int pe, weft_cu_stream stream) {
    struct far_copy copy = {*transfer, pe};
    int error = transfer->put ? check_symmetric("dest", transfer->to, transfer->bytes)
                              : check_symmetric("source", transfer->from, transfer->bytes);
    return error ? error : task_run(far_copy_run, &copy, sizeof copy, stream);
}

/* --- Signals ---------------------------------------------------------------------------------- */

struct far_put_signal {
    struct weft_put_signal put;
    int pe;
};

static void far_put_signal_run(const void *arguments) {
    const struct far_put_signal *far = arguments;
    must(weft_device_far_put_signal(&far->put, far->pe));
}

int weft_stream_far_put_signal(const struct weft_put_signal *put, int pe, weft_cu_stream stream) {
    struct far_put_signal far = {*put, pe};
    int error = check_symmetric("sig_addr", put->sig_addr, sizeof *put->sig_addr);
    error = error ? error : check_symmetric("dest", put->dest, put->bytes);
    return error ? error : task_run(far_put_signal_run, &far, sizeof far, stream);
}

struct far_amo {
    struct weft_amo amo;
    int pe;
};

static void far_amo_run(const void *arguments) {
    const struct far_amo *far = arguments;
    must(weft_device_far_amo(&far->amo, far->pe));
}

int weft_stream_far_signal32(int32_t *word, int32_t value, bool add, int pe,
                             weft_cu_stream stream) {
    struct far_amo far = {{.op = add ? WEFT_AMO_ADD : WEFT_AMO_SET,
                           .bytes = sizeof *word,
                           .dest = word,
                           .value = (uint32_t)value},
                          pe};
    int error = check_symmetric("signals", word, sizeof *word);
    return error ? error : task_run(far_amo_run, &far, sizeof far, stream);
}

/* --- Order ------------------------------------------------------------------------------------ */

static void far_quiet_run(const void *unused) {
    (void)unused;
    weft_far_operations.quiet();
}

int weft_stream_far_quiet(weft_cu_stream stream) {
    return task_run(far_quiet_run, NULL, 0, stream);
}

/* The quiet completes what this PE's streams have sent before. */
static void far_sync_run(const void *arguments) {
    weft_far_operations.quiet();
    weft_sync_barrier(*(struct weft_team *const *)arguments);
}

int weft_stream_far_sync(const struct weft_team *team, weft_cu_stream stream) {
    struct weft_team *meets = weft_proxy_team(team);
    struct weft_proxy_task task = {far_sync_run, &meets, sizeof meets};
    return weft_proxy_run(team, &task, stream);
}
