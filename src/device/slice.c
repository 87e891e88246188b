/* SPDX-License-Identifier: BSD-3-Clause */
/* All arguments are located and checked before anything is enqueued. */
#include "device/slice.h"
#include <errno.h>
#include "transport/gpu_slice.h"

/* --- Numbers ---------------------------------------------------------------------------------- */

/* Returns the number's value, or 0, which is valid for any array, if only the GPU will know it. */
static int64_t number_known(shmemx_number_t number) {
    return number.at ? 0 : number.value;
}

static int number_check(const char *argument, shmemx_number_t number) {
    if (!number.at || weft_device_reaches(number.at))
        return 0;
    return weft_fail(-ENOTSUP,
                     "argument %s lies at %p, which %s does not reach: keep it in GPU memory",
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

/* Returns SIZE_MAX on overflow, which is more than any array has. */
static size_t array_bytes(uint64_t nelems, size_t elem_bytes) {
    size_t bytes;
    return __builtin_mul_overflow(nelems, elem_bytes, &bytes) ? SIZE_MAX : bytes;
}

/* --- Copies ----------------------------------------------------------------------------------- */

/* A copy as this PE's GPU performs it. */
struct located_copy {
    void *to;
    const void *from;
    struct weft_gpu_slices slices;
    bool known; /* all numbers are known: then `to` and `from` are the arrays' first elements */
    bool put, staged, far;
    size_t bytes; /* upper bound */
    enum weft_direction direction;
};

static int copy_check(const struct weft_slice_copy *copy) {
    int error = slice_check("dest", copy->dest, number_known(copy->nelems));
    error = error ? error : slice_check("source", copy->source, number_known(copy->nelems));
    return error ? error : number_check("nelems", copy->nelems);
}

/* Locates an array; for a far PE, at the address of this PE's copy. */
static int near_or_own(void **at, const char *argument, const void *p, size_t bytes, int pe) {
    return weft_stream_near(at, argument, p, bytes, weft_is_far(pe) ? weft_job.pe : pe);
}

static int far_refuse(int pe) {
    return weft_fail(
        -ENOTSUP,
        "argument pe is %d, which is far, and the host has to know the numbers of such a "
        "call: pass numbers that do not lie in memory",
        pe);
}

/* Locates the other PE's array. An empty array may have any address. */
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

/* Checks that kernels can access both sides: a number is in memory, and a copy engine cannot read
 * it from there. */
static int located_check_reach(const struct located_copy *located, int pe) {
    if (located->staged)
        return weft_fail(
            -ENOTSUP,
            "no kernel reaches both arrays, because the GPUs of this PE and of PE %d do "
            "not reach each other's memory: pass numbers that do not lie in memory",
            pe);
    if (weft_device_reaches(located->to) && weft_device_reaches(located->from))
        return 0;
    return weft_fail(-ENOTSUP,
                     "%s does not reach both arrays, as it must if numbers lie in memory: keep the "
                     "arrays in GPU memory",
                     weft_device.gpu->name);
}

static int copy_locate(struct located_copy *located, const struct weft_slice_copy *copy, bool put) {
    void *to = copy->dest->array, *from = copy->source->array;
    int error = copy_check(copy);
    if (error == 0 && put)
        error = array_find(&to, "dest", copy->dest, copy);
    else if (error == 0)
        error = array_find(&from, "source", copy->source, copy);
    if (error)
        return error;
    *located = (struct located_copy){
        .to = to,
        .from = from,
        .slices = {copy->dest->begin, copy->source->begin, copy->nelems, copy->dest->nelems,
                   copy->source->nelems, copy->elem_bytes, weft_job.pe},
        .put = put,
        .far = weft_is_far(copy->pe),
        .staged = weft_device_stages(put ? copy->dest->array : copy->source->array, copy->pe),
        .bytes = copy_bytes_most(copy),
        .direction = weft_device_direction(to, from, copy->pe)};
    located->known = !copy->dest->begin.at && !copy->source->begin.at && !copy->nelems.at;
    if (located->known || located->bytes == 0)
        return 0;
    return located->far ? far_refuse(copy->pe) : located_check_reach(located, copy->pe);
}

static int located_run(const struct located_copy *located, const struct weft_slice_copy *copy) {
    if (!located->known)
        return weft_gpu_copy_slice(located->to, located->from, &located->slices, copy->stream);
    struct weft_transfer transfer = {
        (char *)located->to + (size_t)copy->dest->begin.value * copy->elem_bytes,
        (const char *)located->from + (size_t)copy->source->begin.value * copy->elem_bytes,
        located->bytes, located->put};
    if (located->far)
        return located->bytes == 0 ? 0 : weft_stream_far_copy(&transfer, copy->pe, copy->stream);
    return weft_stream_transfer(&transfer, copy->pe, located->staged, copy->stream);
}

static int slice_move(const struct weft_slice_copy *copy, bool put) {
    struct located_copy located;
    int error = copy_locate(&located, copy, put);
    return error ? error : located_run(&located, copy);
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
        return weft_fail(-ENOTSUP,
                         "%s cannot access words in host memory: keep signals in memory of "
                         "SHMEMX_SPACE_DEVICE",
                         weft_device.gpu->name);
    if (add && !weft_device.gpu->host_atomics)
        return weft_fail(-ENOTSUP,
                         "additions of %s to a word in host memory may be lost: set the word, or "
                         "keep it in memory of SHMEMX_SPACE_DEVICE",
                         weft_device.gpu->name);
    return 0;
}

/* A signal given by this GPU, or by an agent, which cannot read numbers in this GPU's memory. */
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
            "pass numbers that do not lie in memory, and make that GPU visible here",
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

/* Signals after a copy. If a copy engine did the copy, the signal needs no multiprocessor either,
 * because the kernels that overlap with the copy may occupy all of them. */
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
    struct located_copy located;
    int error = copy_locate(&located, copy, true);
    error = error ? error : signal32_find(&found, signal);
    if (error)
        return error;
    if (located.bytes == 0 && located.known)
        return signal32_give(&found, copy->stream);
    bool by_engine =
        located.known && weft_engine_choose(located.direction, located.bytes) == WEFT_ENGINE_COPY;
    if (!by_engine && !located.staged && !located.far && !found.agent &&
        located.bytes <= WEFT_GPU_SMALL && weft_device_reaches(located.from) &&
        weft_device_reaches(located.to))
        return weft_gpu_put_slice_signal(located.to, located.from, &located.slices, &found.give,
                                         copy->stream);
    error = located_run(&located, copy);
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
