/* SPDX-License-Identifier: BSD-3-Clause */
/* Work on the caller's stream: locates the arguments for this GPU, and decides which unit acts.
 *
 * Work that a graph keeps must be valid at every replay. So kernels and copies receive addresses
 * and numbers, and only host memory that lives as long as the process. */
#include "device/stream.h"
#include <stdatomic.h>
#include <stdlib.h>

int weft_stream_near(void **at, const char *argument, const void *p, size_t bytes, int pe) {
    *at = weft_device_near(p, bytes, pe);
    if (*at)
        return 0;
    if (pe < 0 || pe >= weft_job.npes)
        return weft_fail(-ERANGE, "argument pe is %d: the job has PEs 0 to %d", pe,
                         weft_job.npes - 1);
    if (weft_is_far(pe))
        return weft_fail(-ENOTSUP,
                         "argument pe is %d, which is far, and a GPU itself reaches near PEs only: "
                         "pass numbers that do not lie in memory",
                         pe);
    return weft_fail(-EFAULT, "argument %s is %p: not symmetric over %zu bytes", argument, p,
                     bytes);
}

struct weft_located weft_stream_locate(const char *argument, const void *p, size_t bytes) {
    struct weft_located located = {argument, p, bytes, WEFT_LOCATED_PRIVATE, false};
    if (weft_device_near(p, 1, weft_job.pe)) {
        located.kind = weft_device_holds(p) ? WEFT_LOCATED_DEVICE : WEFT_LOCATED_HOST;
        located.reached = weft_device_near(p, bytes, weft_job.pe) && weft_device_reaches(p);
    } else {
        located.reached = bytes <= PTRDIFF_MAX && weft_device_reaches(p) &&
                          weft_device_reaches((const char *)p + bytes - 1);
    }
    return located;
}

int weft_stream_transfer(const struct weft_transfer *transfer, int pe, bool staged,
                         weft_cu_stream stream) {
    void *to = transfer->to;
    const void *from = transfer->from;
    if (!staged)
        return weft_gpu_copy(to, from, transfer->bytes, weft_device_direction(to, from, pe),
                             stream);
    const struct weft_gpu *agent = weft_device_agent(pe);
    return agent ? weft_gpu_lane_copy(agent, transfer, stream) : -ENODEV;
}

int weft_stream_put(void *dest, const void *source, size_t bytes, int pe, weft_cu_stream stream) {
    struct weft_transfer put = {dest, source, bytes, true};
    if (weft_is_far(pe))
        return bytes == 0 ? 0 : weft_stream_far_copy(&put, pe, stream);
    int error = bytes == 0 ? 0 : weft_stream_near(&put.to, "dest", dest, bytes, pe);
    if (bytes == 0 || error)
        return error;
    return weft_stream_transfer(&put, pe, weft_device_stages(dest, pe), stream);
}

int weft_stream_get(void *dest, const void *source, size_t bytes, int pe, weft_cu_stream stream) {
    void *from;
    if (weft_is_far(pe))
        return bytes == 0 ? 0
                          : weft_stream_far_copy(
                                &(struct weft_transfer){dest, source, bytes, false}, pe, stream);
    int error = bytes == 0 ? 0 : weft_stream_near(&from, "source", source, bytes, pe);
    if (bytes == 0 || error)
        return error;
    struct weft_transfer get = {dest, from, bytes, false};
    return weft_stream_transfer(&get, pe, weft_device_stages(source, pe), stream);
}

/* --- Signals --------------------------------------------------------------------------------- */

/* A signal given by a processor in stream order: a GPU's read-modify-write on a word of the host
 * may not be atomic with a processor's. */
struct host_signal {
    uint64_t *word, value;
    enum weft_signal_op op;
    struct host_signal *kept; /* in the list of those that a graph may run again */
    bool once;
};
static struct host_signal *_Atomic kept;

static void host_signal_run(void *argument) {
    struct host_signal *host_signal = argument;
    if (host_signal->op == WEFT_SIGNAL_SET)
        __atomic_store_n(host_signal->word, host_signal->value, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(host_signal->word, host_signal->value, __ATOMIC_RELEASE);
    if (host_signal->once)
        free(host_signal);
}

static void host_signal_keep(struct host_signal *host_signal) {
    host_signal->kept = atomic_load(&kept);
    while (!atomic_compare_exchange_weak(&kept, &host_signal->kept, host_signal))
        continue;
}

static int host_signal_send(uint64_t *word, uint64_t value, enum weft_signal_op op,
                            weft_cu_stream stream) {
    struct host_signal *host_signal = malloc(sizeof *host_signal);
    if (!host_signal)
        return weft_fail(-ENOMEM, "no memory for a signal");
    bool once = !weft_gpu_capturing(stream);
    *host_signal = (struct host_signal){word, value, op, NULL, once};
    int error = weft_cuda.cuLaunchHostFunc(stream, host_signal_run, host_signal);
    if (error)
        free(host_signal);
    else if (!once) /* a signal that runs once may have been freed by now */
        host_signal_keep(host_signal);
    return weft_cuda_check(error, "cuLaunchHostFunc");
}

/* A signal, and the unit that gives it: the processor, the GPU of the target PE, or, without
 * either, this GPU. */
struct signal {
    uint64_t *word, value;
    enum weft_signal_op op;
    bool host_signal;
    const struct weft_gpu *agent;
};

/* Returns whether a processor has to give the signal. `sig_addr` is the symmetric address. */
static bool host_signal_is_needed(const uint64_t *sig_addr, enum weft_signal_op op) {
    return !weft_device_holds(sig_addr) &&
           (!weft_device.gpu->sees_registered_memory ||
            (op == WEFT_SIGNAL_ADD && !weft_device.gpu->host_atomics));
}

static int signal_find_agent(struct signal *signal, int pe) {
    if (weft_device.peers[pe].ordinal < 0)
        return weft_fail(
            -ENOTSUP,
            "the link to the GPU of PE %d carries no atomics, and this PE does not see that GPU "
            "(CUDA_VISIBLE_DEVICES): make it visible, set the signal, or keep it in memory of the "
            "host",
            pe);
    signal->agent = weft_device_agent(pe);
    return signal->agent ? 0 : -ENODEV;
}

static int signal_find(struct signal *signal, const uint64_t *sig_addr, int pe) {
    void *at;
    int error = weft_stream_near(&at, "sig_addr", sig_addr, sizeof *sig_addr, pe);
    if (error)
        return error;
    signal->word = at;
    signal->host_signal = host_signal_is_needed(sig_addr, signal->op);
    if (!weft_device_holds(sig_addr) || weft_device_changes(pe, signal->op == WEFT_SIGNAL_ADD))
        return 0;
    return signal_find_agent(signal, pe);
}

static int signal_announce(const struct signal *s, weft_cu_stream stream) {
    bool add = s->op == WEFT_SIGNAL_ADD;
    if (s->host_signal)
        return host_signal_send(s->word, s->value, s->op, stream);
    return s->agent ? weft_gpu_lane_signal(s->agent, s->word, s->value, add, stream)
                    : weft_gpu_signal(s->word, s->value, add, stream);
}

int weft_stream_signal(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op, int pe,
                       weft_cu_stream stream) {
    struct signal s = {.value = signal, .op = op};
    if (weft_is_far(pe))
        return weft_stream_far_put_signal(
            &(struct weft_put_signal){.sig_addr = sig_addr, .signal = signal, .op = op}, pe,
            stream);
    int error = signal_find(&s, sig_addr, pe);
    return error ? error : signal_announce(&s, stream);
}

/* Returns whether one kernel can do the copy: it is small, and the kernel can access both sides. */
static bool copy_is_small(const void *to, const void *source, size_t bytes, int pe) {
    enum weft_direction direction = weft_device_direction(to, source, pe);
    return bytes <= WEFT_GPU_SMALL && weft_device_reaches(source) && weft_device_reaches(to) &&
           weft_engine_choose(direction, bytes) == WEFT_ENGINE_SM;
}

int weft_stream_put_signal(const struct weft_put_signal *put, int pe, weft_cu_stream stream) {
    struct signal s = {.value = put->signal, .op = put->op};
    struct weft_put_signal near = *put;
    if (weft_is_far(pe))
        return weft_stream_far_put_signal(put, pe, stream);
    int error = signal_find(&s, put->sig_addr, pe);
    if (error == 0 && put->bytes > 0)
        error = weft_stream_near(&near.dest, "dest", put->dest, put->bytes, pe);
    if (error)
        return error;
    if (put->bytes == 0)
        return signal_announce(&s, stream);
    bool staged = weft_device_stages(put->dest, pe);
    near.sig_addr = s.word;
    if (!staged && !s.host_signal && !s.agent &&
        copy_is_small(near.dest, near.source, near.bytes, pe))
        return weft_gpu_put_signal(&near, stream);
    struct weft_transfer payload = {near.dest, near.source, near.bytes, true};
    error = weft_stream_transfer(&payload, pe, staged, stream);
    return error ? error : signal_announce(&s, stream);
}

int weft_stream_wait(const uint64_t *sig_addr, int cmp, uint64_t cmp_value, weft_cu_stream stream) {
    void *word;
    int error = weft_stream_near(&word, "sig_addr", sig_addr, sizeof *sig_addr, weft_job.pe);
    if (error)
        return error;
    if (!weft_device_holds(sig_addr) && !weft_device.gpu->sees_registered_memory)
        return weft_fail(-ENOTSUP,
                         "%s cannot access words in host memory: wait for one in memory of "
                         "SHMEMX_SPACE_DEVICE",
                         weft_device.gpu->name);
    return weft_gpu_wait(word, cmp, cmp_value, stream);
}

/* --- Order ----------------------------------------------------------------------------------- */

/* Makes the stream wait for everything that calls of the host have enqueued on theirs. A destroyed
 * event lives until it has occurred. */
static int host_join(weft_cu_stream stream) {
    weft_cu_event event;
    int error = weft_cuda.cuEventCreate(&event, WEFT_CU_EVENT_NO_TIMING);
    if (error)
        return error;
    error = weft_cuda.cuEventRecord(event, weft_device.gpu->stream);
    if (error == 0)
        error = weft_cuda.cuStreamWaitEvent(stream, event, 0);
    weft_cuda.cuEventDestroy(event);
    return error;
}

/* Waits in stream order. A stream completes its own work in order; messages to far PEs have to be
 * acknowledged. Work that a graph replays is independent of the host's calls. In most cases the
 * host has begun nothing, which is found out without a call of the driver. */
int weft_stream_quiet(weft_cu_stream stream) {
    atomic_thread_fence(memory_order_seq_cst);
    int error = 0;
    if (!weft_device_drained() && !weft_gpu_capturing(stream))
        error = weft_cuda_check(host_join(stream), "cuStreamWaitEvent");
    return error || !weft_job.far ? error : weft_stream_far_quiet(stream);
}

int weft_stream_begin(const struct weft_team *team) {
    if (team->npes == 1)
        return weft_device_begin();
    if (team->npes > WEFT_GPU_MEMBERS_MAX)
        return weft_fail(-ENOTSUP, "the team has %d PEs: at most %d can synchronise on streams",
                         team->npes, WEFT_GPU_MEMBERS_MAX);
    if (weft_device.open || team->npes == weft_job.npes) {
        int error = weft_device_open();
        return error || !team->far ? error : weft_proxy_begin(team);
    }
    return weft_fail(-ENODEV,
                     "the GPUs of this job are not up yet, and all PEs have to take part in that: "
                     "allocate memory of SHMEMX_SPACE_DEVICE, or call a collective of "
                     "SHMEM_TEAM_WORLD on a stream, before that of a smaller team");
}

int weft_stream_sync(const struct weft_team *team, weft_cu_stream stream) {
    if (team->npes == 1)
        return 0;
    if (team->far)
        return weft_stream_far_sync(team, stream);
    struct weft_array words;
    int error = weft_device_words(&words, team);
    return error ? error
                 : weft_gpu_barrier(words, team->my_pe, team->npes, weft_device_call(team), stream);
}

int weft_stream_barrier(const struct weft_team *team, weft_cu_stream stream) {
    int error = weft_stream_quiet(stream);
    return error ? error : weft_stream_sync(team, stream);
}

int weft_device_pad(enum weft_pad_op op, const struct weft_pad *pad, int peer, void *stream) {
    int error = weft_device_begin();
    if (error)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device_gpu_here());
    error = weft_gpu_pad(op, pad, peer, stream);
    weft_gpu_leave(scope);
    return error;
}
