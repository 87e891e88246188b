/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything is found and checked before anything is enqueued. */
#include "device/slice.h"
#include <errno.h>
#include "transport/gpu_slice.h"

/* --- Numbers ---------------------------------------------------------------------------------- */

/* 0, which is right for any array, where only the GPU will know. */
static int64_t number_known(shmemx_number_t number) {
    return number.at ? 0 : number.value;
}

static int number_check(const char *argument, shmemx_number_t number) {
    if (!number.at || weft_device_reaches(number.at))
        return 0;
    return weft_fail(
        -ENOTSUP, "argument %s lies at %p, which %s does not reach: keep it in memory of the GPU",
        argument, number.at, weft_device.gpu->name);
}

static int slice_check(const char *argument, const shmemx_slice_t *slice, int64_t nelems) {
    int64_t begin = number_known(slice->begin);
    if (!weft_slice_fits(begin, nelems, slice->nelems))
        return weft_fail(-EINVAL,
                         "argument %s has %zu elements: there are no %lld from number %lld on",
                         argument, slice->nelems, (long long)nelems, (long long)begin);
    return number_check(argument, slice->begin);
}

/* More than any array has, where it overflows. */
static size_t array_bytes(uint64_t nelems, size_t elem_bytes) {
    size_t bytes;
    return __builtin_mul_overflow(nelems, elem_bytes, &bytes) ? SIZE_MAX : bytes;
}

/* --- Copies ----------------------------------------------------------------------------------- */

/* A copy as this PE's GPU sees it. */
struct task {
    void *to;
    const void *from;
    struct weft_gpu_slices slices;
    bool known; /* all numbers: to and from are the first elements then */
    bool put, staged, far;
    size_t bytes; /* at most */
    enum weft_direction direction;
};

static int copy_check(const struct weft_slice_copy *copy) {
    int error = slice_check("dest", copy->dest, number_known(copy->nelems));
    error = error ? error : slice_check("source", copy->source, number_known(copy->nelems));
    return error ? error : number_check("nelems", copy->nelems);
}

/* What a far PE has is named by its address here. */
static int near_or_own(void **at, const char *argument, const void *p, size_t bytes, int pe) {
    return weft_stream_near(at, argument, p, bytes, weft_is_far(pe) ? weft_job.pe : pe);
}

static int far_refuse(int pe) {
    return weft_fail(-ENOTSUP,
                     "argument pe is %d, which is far, and what goes there has to be known to the "
                     "host: pass numbers that do not lie in memory",
                     pe);
}

/* Where the array of the other PE lies. An empty one may lie anywhere. */
static int array_find(void **at, const char *argument, const shmemx_slice_t *slice,
                      const struct weft_slice_copy *copy) {
    size_t bytes = array_bytes(slice->nelems, copy->elem_bytes);
    *at = slice->array;
    return bytes == 0 ? 0 : near_or_own(at, argument, slice->array, bytes, copy->pe);
}

static size_t copy_bytes_most(const struct weft_slice_copy *copy) {
    uint64_t to = copy->dest->nelems, from = copy->source->nelems;
    uint64_t most = copy->nelems.at ? (to < from ? to : from) : (uint64_t)copy->nelems.value;
    return array_bytes(most, copy->elem_bytes);
}

/* Kernels have to reach both sides: a copy engine cannot be told how much there is. */
static int task_check_reach(const struct task *task, int pe) {
    if (task->staged)
        return weft_fail(-ENOTSUP,
                         "no kernel reaches both arrays, for the GPUs of this PE and of PE %d do "
                         "not reach each other's memory: numbers have to be known to the host",
                         pe);
    if (weft_device_reaches(task->to) && weft_device_reaches(task->from))
        return 0;
    return weft_fail(-ENOTSUP,
                     "%s does not reach both arrays, which it has to where numbers lie in memory: "
                     "keep them in memory of the GPU",
                     weft_device.gpu->name);
}

static int task_find(struct task *task, const struct weft_slice_copy *copy, bool put) {
    void *to = copy->dest->array, *from = copy->source->array;
    int error = copy_check(copy);
    if (error == 0 && put)
        error = array_find(&to, "dest", copy->dest, copy);
    else if (error == 0)
        error = array_find(&from, "source", copy->source, copy);
    if (error)
        return error;
    *task = (struct task){
        .to = to,
        .from = from,
        .slices = {copy->dest->begin, copy->source->begin, copy->nelems, copy->dest->nelems,
                   copy->source->nelems, copy->elem_bytes, weft_job.pe},
        .put = put,
        .far = weft_is_far(copy->pe),
        .staged = weft_device_stages(put ? copy->dest->array : copy->source->array, copy->pe),
        .bytes = copy_bytes_most(copy),
        .direction = weft_device_direction(to, from, copy->pe)};
    task->known = !copy->dest->begin.at && !copy->source->begin.at && !copy->nelems.at;
    if (task->known || task->bytes == 0)
        return 0;
    return task->far ? far_refuse(copy->pe) : task_check_reach(task, copy->pe);
}

static int task_run(const struct task *task, const struct weft_slice_copy *copy) {
    if (!task->known)
        return weft_gpu_copy_slice(task->to, task->from, &task->slices, copy->stream);
    struct weft_transfer transfer = {
        (char *)task->to + (size_t)copy->dest->begin.value * copy->elem_bytes,
        (const char *)task->from + (size_t)copy->source->begin.value * copy->elem_bytes,
        task->bytes, task->put};
    if (task->far)
        return task->bytes == 0 ? 0 : weft_stream_far_copy(&transfer, copy->pe, copy->stream);
    return weft_stream_transfer(&transfer, copy->pe, task->staged, copy->stream);
}

static int slice_move(const struct weft_slice_copy *copy, bool put) {
    struct task task;
    int error = task_find(&task, copy, put);
    return error ? error : task_run(&task, copy);
}

int weft_stream_put_slice(const struct weft_slice_copy *copy) {
    return slice_move(copy, true);
}

int weft_stream_get_slice(const struct weft_slice_copy *copy) {
    return slice_move(copy, false);
}

/* --- Signals ---------------------------------------------------------------------------------- */

static int host_word_check(bool add) {
    if (!weft_device.gpu->sees_registered_memory)
        return weft_fail(
            -ENOTSUP,
            "%s sees no words in memory of the host: keep signals in memory of SHMEMX_SPACE_DEVICE",
            weft_device.gpu->name);
    if (add && !weft_device.gpu->host_atomics)
        return weft_fail(-ENOTSUP,
                         "what %s adds to a word in memory of the host may be lost: set it, or "
                         "keep it in memory of SHMEMX_SPACE_DEVICE",
                         weft_device.gpu->name);
    return 0;
}

/* A signal of this GPU's, or of an agent's, which reads no numbers that lie in this GPU's memory.
 */
struct slice_signal {
    struct weft_gpu_signal32 give;
    const struct weft_gpu *agent;
    bool far;
    int pe;
};

static int signal32_find_agent(struct slice_signal *signal, int pe) {
    if (weft_device.peers[pe].ordinal < 0 || signal->give.word.index.at || signal->give.value.at)
        return weft_fail(
            -ENOTSUP,
            "the GPU of PE %d has to give this signal itself, because this PE's %s its memory: "
            "numbers have to be known to the host, and the GPU visible here",
            pe, weft_device_staged(pe) ? "does not reach" : "has no atomics on");
    signal->agent = weft_device_agent(pe);
    return signal->agent ? 0 : -ENODEV;
}

static int signal32_give(const struct slice_signal *signal, weft_cu_stream stream) {
    const struct weft_gpu_signal32 *s = &signal->give;
    if (signal->far)
        return weft_stream_far_signal32(s->word.words + s->word.index.value,
                                        (int32_t)s->value.value, s->add, signal->pe, stream);
    return signal->agent ? weft_gpu_lane_signal32(signal->agent, &signal->give, stream)
                         : weft_gpu_signal32(&signal->give, stream);
}

static int word32_find(struct weft_gpu_word32 *word, const shmemx_slice_t *words, int pe,
                       bool add) {
    void *at;
    int error = slice_check("signals", words, 1);
    error = error ? error
                  : near_or_own(&at, "signals", words->array,
                                array_bytes(words->nelems, sizeof(int32_t)), pe);
    if (error)
        return error;
    *word = (struct weft_gpu_word32){at, words->nelems, words->begin, weft_job.pe};
    return weft_device_holds(words->array) || weft_is_far(pe) ? 0 : host_word_check(add);
}

static int signal32_find(struct slice_signal *found, const struct weft_slice_signal *signal) {
    int64_t value = number_known(signal->value);
    bool add = signal->op == WEFT_SIGNAL_ADD;
    *found = (struct slice_signal){.give = {.value = signal->value, .add = add},
                                   .far = weft_is_far(signal->pe),
                                   .pe = signal->pe};
    if (value != (int32_t)value)
        return weft_fail(-EINVAL, "argument signal is %lld: a signal has 32 bits",
                         (long long)value);
    int error = number_check("signal", signal->value);
    error = error ? error : word32_find(&found->give.word, signal->words, signal->pe, add);
    if (error == 0 && found->far)
        return found->give.word.index.at || found->give.value.at ? far_refuse(signal->pe) : 0;
    if (error || !weft_device_holds(signal->words->array) || weft_device_changes(signal->pe, add))
        return error;
    return signal32_find_agent(found, signal->pe);
}

int weft_stream_signal32(const struct weft_slice_signal *signal, weft_cu_stream stream) {
    struct slice_signal found;
    int error = signal32_find(&found, signal);
    return error ? error : signal32_give(&found, stream);
}

/* What has gone by a copy engine is announced without a multiprocessor, too: those may all be busy
 * with what the copy hides behind. */
static int signal32_announce(const struct slice_signal *signal, bool by_engine, bool device_word,
                             weft_cu_stream stream) {
    const struct weft_gpu_signal32 *s = &signal->give;
    if (!signal->agent && !signal->far && by_engine && device_word && !s->add &&
        !s->word.index.at && !s->value.at)
        return weft_gpu_write32(s->word.words + s->word.index.value, (int32_t)s->value.value,
                                stream);
    return signal32_give(signal, stream);
}

int weft_stream_put_slice_signal(const struct weft_slice_copy *copy,
                                 const struct weft_slice_signal *signal) {
    struct slice_signal found;
    struct task task;
    int error = task_find(&task, copy, true);
    error = error ? error : signal32_find(&found, signal);
    if (error)
        return error;
    if (task.bytes == 0 && task.known)
        return signal32_give(&found, copy->stream);
    bool by_engine =
        task.known && weft_engine_choose(task.direction, task.bytes) == WEFT_ENGINE_COPY;
    if (!by_engine && !task.staged && !task.far && !found.agent && task.bytes <= WEFT_GPU_SMALL &&
        weft_device_reaches(task.from) && weft_device_reaches(task.to))
        return weft_gpu_put_slice_signal(task.to, task.from, &task.slices, &found.give,
                                         copy->stream);
    error = task_run(&task, copy);
    return error ? error
                 : signal32_announce(&found, by_engine, weft_device_holds(signal->words->array),
                                     copy->stream);
}

int weft_stream_wait32(const shmemx_slice_t *words, int cmp, shmemx_number_t value,
                       weft_cu_stream stream) {
    struct weft_gpu_word32 word;
    int error = number_check("cmp_value", value);
    error = error ? error : word32_find(&word, words, weft_job.pe, false);
    return error ? error : weft_gpu_wait32(&word, cmp, value, stream);
}
