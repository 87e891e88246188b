/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of the test of signals: messages of all sizes with each way to send, each kind of
 * signal and each kind of wait, and their check; atomics; comparisons. */
#define WEFT_KERNEL_THREADS
#include "base/gpu.cuh"
#include "weft/device.cuh"
#include "gpu/device_signals/task.h"
#include "gpu/found.cuh"

/* --- Messages -------------------------------------------------------------------------------- */

struct message {
    char *dest, *source;
    uint32_t bytes, key;
};

/* Number `v` from a member to a member, by this block. */
WEFT_DEVICE struct message message_of(const weft_device_team *t, const signals_messages &task,
                                      uint32_t v, int from, int to) {
    uint32_t block = weft_block_index(),
             key = mix4(task.seed, v, block, (uint32_t)(from * 64 + to));
    uint32_t most = (key & 7) == 0 ? SIGNALS_ROOM - 32 : 160;
    char *dest = task.landing + (block * (uint32_t)t->n + (uint32_t)from) * SIGNALS_ROOM;
    char *source = task.source + (block * (uint32_t)t->n + (uint32_t)to) * SIGNALS_ROOM;
    return {dest + (key >> 4 & 15), source + (key >> 8 & 15), (key >> 12) % most, key};
}

WEFT_DEVICE uint8_t byte_of(const struct message &message, uint32_t i) {
    return (uint8_t)(mix(message.key + i / 4) >> i % 4 * 8);
}

WEFT_DEVICE uint32_t send_of(const signals_messages &task, uint32_t v) {
    return v % (task.atomics ? SEND_KINDS : SEND_ATOMIC);
}

/* The signal's value before message `v`. */
WEFT_DEVICE uint32_t last_of(const signals_messages &task, uint32_t v) {
    uint32_t last = v - 1;
    while (last > 0 && send_of(task, last) >= SEND_KINDS_32)
        last--;
    return last;
}

/* The data, then the signal, by the thread that calls. */
WEFT_DEVICE void send_by_thread(const weft_device_team *t, uint32_t kind, const message &message,
                                uint64_t *sig, uint32_t v, uint32_t last, int m) {
    bool adds = kind == SEND_PUT_SIGNAL_ADD_T;
    if (kind != SEND_FENCE_T) {
        weft_put_signal_t(t, message.dest, message.source, message.bytes, sig, adds ? v - last : v,
                          adds ? WEFT_SIGNAL_ADD : WEFT_SIGNAL_SET, m);
        return;
    }
    weft_put_t(t, message.dest, message.source, message.bytes, m);
    weft_fence();
    weft_signal_relaxed(t, sig, v, m);
}

WEFT_DEVICE void send_by_warp(const weft_device_team *t, uint32_t kind, const message &message,
                              uint64_t *sig, uint32_t v, uint32_t last, int m) {
    bool adds = kind == SEND_PUT_SIGNAL_ADD_W;
    if (kind != SEND_QUIET_W) {
        weft_put_signal_w(t, message.dest, message.source, message.bytes, sig, adds ? v - last : v,
                          adds ? WEFT_SIGNAL_ADD : WEFT_SIGNAL_SET, m);
        return;
    }
    weft_put_w(t, message.dest, message.source, message.bytes, m);
    weft_warp_sync();
    if (weft_lane() == 0) {
        weft_quiet();
        weft_signal_relaxed(t, sig, v, m);
    }
}

/* The message's bytes from `at` on, as words have them. */
WEFT_DEVICE uint64_t word_of(const struct message &message, uint32_t at, uint32_t bytes) {
    uint64_t word = 0;
    for (uint32_t k = 0; k < bytes; k++)
        word |= (uint64_t)byte_of(message, at + k) << k * 8;
    return word;
}

/* A word of the message with the signal, by one thread; the rest before it, which a fence is for.
 */
WEFT_DEVICE void put_word_signal(const weft_device_team *t, uint32_t kind, const message &message,
                                 uint64_t *sig, uint32_t v, uint32_t last, int m) {
    uint32_t size = kind == SEND_HALF_WORD_SIGNAL ? 4 : 8;
    uint32_t head = -(uint32_t)(uintptr_t)message.dest & (size - 1), tail = head + size;
    bool whole = tail <= message.bytes, first = weft_block_thread() == 0;
    if (!whole)
        head = tail = message.bytes;
    weft_put_b(t, message.dest, message.source, head, m);
    weft_put_b(t, message.dest + tail, message.source + tail, message.bytes - tail, m);
    weft_fence_b();
    if (first && !whole)
        weft_signal(t, sig, v, m);
    else if (first && size == 4)
        weft_p32_signal(t, (uint32_t *)(message.dest + head),
                        (uint32_t)word_of(message, head, size), sig, v, WEFT_SIGNAL_SET, m);
    else if (first && kind == SEND_WORD_SIGNAL_ADD)
        weft_p64_signal(t, (uint64_t *)(message.dest + head), word_of(message, head, size), sig,
                        v - last, WEFT_SIGNAL_ADD, m);
    else if (first)
        weft_p64_signal(t, (uint64_t *)(message.dest + head), word_of(message, head, size), sig, v,
                        WEFT_SIGNAL_SET, m);
}

/* Whole words are put singly, the rest with the others. */
WEFT_DEVICE void put_words(const weft_device_team *t, const message &message, int m) {
    uint32_t head = -(uint32_t)(uintptr_t)message.dest & 7;
    if (head > message.bytes)
        head = message.bytes;
    uint32_t words = (message.bytes - head) / 8, tail = head + words * 8;
    weft_put_b(t, message.dest, message.source, head, m);
    for (uint32_t i = weft_block_thread(); i < words; i += weft_block_threads())
        weft_p64(t, (uint64_t *)(message.dest + head + i * 8), word_of(message, head + i * 8, 8),
                 m);
    weft_put_b(t, message.dest + tail, message.source + tail, message.bytes - tail, m);
}

/* Signals by one thread, which has synced with the storing threads. Atomics order nothing. */
WEFT_DEVICE void tell(const weft_device_team *t, uint32_t kind, uint64_t *sig, uint32_t *sig32,
                      uint32_t v, uint32_t last, int m) {
    if (kind >= SEND_ATOMIC)
        weft_fence();
    switch (kind) {
    case SEND_SIGNAL_ADD:
        return weft_signal_add(t, sig, v - last, m);
    case SEND_FENCE_B:
    case SEND_QUIET_B:
    case SEND_WORDS:
        return weft_signal_relaxed(t, sig, v, m);
    case SEND_SET:
        return weft_atomic_set64(t, sig, v, m);
    case SEND_SWAP:
        weft_atomic_swap64(t, sig, v, m);
        return;
    case SEND_FETCH_ADD:
        weft_atomic_fetch_add64(t, sig, v - last, m);
        return;
    case SEND_ADD:
        return weft_atomic_add64(t, sig, v - last, m);
    case SEND_XOR:
        return weft_atomic_xor64(t, sig, v ^ last, m);
    case SEND_FETCH_XOR:
        weft_atomic_fetch_xor64(t, sig, v ^ last, m);
        return;
    case SEND_OR_AND: /* in between it is larger, perhaps: the data is there */
        weft_atomic_or64(t, sig, v, m);
        return weft_atomic_and64(t, sig, v, m);
    case SEND_FETCH_OR_AND:
        weft_atomic_fetch_or64(t, sig, v, m);
        weft_atomic_fetch_and64(t, sig, v, m);
        return;
    case SEND_COMPARE_SWAP:
        weft_atomic_compare_swap64(t, sig, last, v, m);
        return;
    case SEND_SET_32:
        return weft_atomic_set32(t, sig32, v, m);
    case SEND_SWAP_32:
        weft_atomic_swap32(t, sig32, v, m);
        return;
    case SEND_P32:
        return weft_p32(t, sig32, v, m);
    default:
        return weft_signal(t, sig, v, m);
    }
}

WEFT_DEVICE void send(const weft_device_team *t, const signals_messages &task, uint32_t v, int m) {
    uint32_t kind = send_of(task, v), last = last_of(task, v), id = weft_block_thread();
    uint32_t at = weft_block_index() * (uint32_t)t->n + (uint32_t)t->me;
    struct message message = message_of(t, task, v, t->me, m);
    uint64_t *sig = &task.sig[at];
    switch (kind) {
    case SEND_PUT_SIGNAL_T:
    case SEND_PUT_SIGNAL_ADD_T:
    case SEND_FENCE_T:
        if (id == (uint32_t)m * 7 % weft_block_threads())
            send_by_thread(t, kind, message, sig, v, last, m);
        return;
    case SEND_PUT_SIGNAL_W:
    case SEND_PUT_SIGNAL_ADD_W:
    case SEND_QUIET_W:
        if (id / 32 == (uint32_t)m % ((weft_block_threads() + 31) / 32))
            send_by_warp(t, kind, message, sig, v, last, m);
        return;
    case SEND_PUT_SIGNAL_B:
        return weft_put_signal_b(t, message.dest, message.source, message.bytes, sig, v,
                                 WEFT_SIGNAL_SET, m);
    case SEND_PUT_SIGNAL_ADD_B:
        return weft_put_signal_b(t, message.dest, message.source, message.bytes, sig, v - last,
                                 WEFT_SIGNAL_ADD, m);
    case SEND_WORD_SIGNAL:
    case SEND_WORD_SIGNAL_ADD:
    case SEND_HALF_WORD_SIGNAL:
        return put_word_signal(t, kind, message, sig, v, last, m);
    default:
        break;
    }
    if (kind == SEND_WORDS)
        put_words(t, message, m);
    else
        weft_put_b(t, message.dest, message.source, message.bytes, m);
    if (kind == SEND_FENCE_B || kind == SEND_WORDS)
        weft_fence_b();
    else if (kind == SEND_QUIET_B)
        weft_quiet_b();
    else
        weft_block_sync();
    if (id == 0)
        tell(t, kind, sig, &task.sig32[at], v, last, m);
}

/* --- Waits ----------------------------------------------------------------------------------- */

/* By one thread. */
WEFT_DEVICE int await_alone(const weft_device_team *t, uint32_t kind, const uint64_t *sig,
                            uint64_t v, uint64_t last) {
    int came = -1;
    switch (kind) {
    case WAIT_EQ:
        return weft_wait_eq(t, sig, v);
    case WAIT_UNTIL_GT:
        return weft_wait_until(t, sig, WEFT_CMP_GT, last);
    case WAIT_UNTIL_NE:
        return weft_wait_until(t, sig, WEFT_CMP_NE, last);
    case WAIT_TEST:
        while (!weft_test_until(t, sig, WEFT_CMP_GE, v) && !weft_job_over(t))
            weft_spin_yield();
        return 1;
    case WAIT_NS:
        while ((came = weft_wait_until_ns(t, sig, WEFT_CMP_GE, v, 2000)) < 0)
            weft_spin_yield();
        return came;
    case WAIT_RELAXED:
        came = weft_wait_until_relaxed(t, sig, WEFT_CMP_GE, v) &&
               weft_test_until_relaxed(t, sig, WEFT_CMP_GE, v);
        weft_fence();
        return came;
    case WAIT_FETCH:
        while (weft_signal_fetch(t, sig) < v && !weft_job_over(t))
            weft_spin_yield();
        return 1;
    case WAIT_ATOMIC_FETCH:
        while (weft_atomic_fetch64(t, sig, t->me) < v && !weft_job_over(t))
            weft_spin_yield();
        weft_fence();
        return 1;
    default:
        return weft_wait_ge(t, sig, v);
    }
}

WEFT_DEVICE int await_alone_32(const weft_device_team *t, uint32_t kind, const uint32_t *sig,
                               uint32_t v) {
    switch (kind) {
    case WAIT32_TEST:
        while (!weft_test_until32(t, sig, WEFT_CMP_EQ, v) && !weft_job_over(t))
            weft_spin_yield();
        return 1;
    case WAIT32_ATOMIC_FETCH:
        while (weft_atomic_fetch32(t, sig, t->me) != v && !weft_job_over(t))
            weft_spin_yield();
        weft_fence();
        return 1;
    default:
        return weft_wait_until32(t, sig, WEFT_CMP_GE, v);
    }
}

/* Afterwards all threads may read the message. Returns 0 if the job is over. */
WEFT_DEVICE int await(const weft_device_team *t, const signals_messages &task, uint32_t v,
                      int source) {
    uint32_t at = weft_block_index() * (uint32_t)t->n + (uint32_t)source;
    const uint64_t *sig = &task.sig[at];
    uint32_t turn = v / SEND_KINDS + v * 5 % WAIT_KINDS, kind = turn % WAIT_KINDS;
    bool first = weft_block_thread() == 0;
    if (send_of(task, v) >= SEND_KINDS_32) {
        int met = !first || await_alone_32(t, turn % WAIT32_KINDS, &task.sig32[at], v);
        return !weft_block_sync_any(!met);
    }
    switch (kind) {
    case WAIT_EACH:
        return weft_wait_ge(t, sig, v);
    case WAIT_UNTIL_W:
        return weft_wait_until_w(t, sig, WEFT_CMP_GE, v);
    case WAIT_UNTIL_B:
        return weft_wait_until_b(t, sig, WEFT_CMP_GE, v);
    case WAIT_GE_W:
        return weft_wait_ge_w(t, sig, v);
    case WAIT_GE_B:
        return weft_wait_ge_b(t, sig, v);
    default:
        return !weft_block_sync_any(first && !await_alone(t, kind, sig, v, last_of(task, v)));
    }
}

WEFT_DEVICE void check(const weft_device_team *t, const signals_messages &task, uint32_t v,
                       int source) {
    struct message message = message_of(t, task, v, source, t->me);
    for (uint32_t i = weft_block_thread(); i < message.bytes; i += weft_block_threads()) {
        uint8_t seen = weft_ld_weak((const weft_bytes1 *)&message.dest[i]).value;
        if (seen != byte_of(message, i))
            found_wrong(task.found, v, (uint64_t)source, i, seen);
    }
}

/* Reads the data before waiting for the signal: a cache may keep them, and must not return them
 * again. */
WEFT_DEVICE void peek(const weft_device_team *t, const signals_messages &task, uint32_t v,
                      int source) {
    struct message message = message_of(t, task, v, source, t->me);
    uint64_t sum = 0;
    for (uint32_t i = weft_block_thread(); i < message.bytes; i += weft_block_threads())
        sum += weft_ld_weak((const weft_bytes1 *)&message.dest[i]).value;
    if (sum == UINT64_MAX) /* never true, which no compiler knows */
        found_wrong(task.found, v, (uint64_t)source, 0, sum);
}

/* Every member sends messages to every member, each when the last one has been read. */
extern "C" __global__ void signals_exchange(const __grid_constant__ weft_device_team t,
                                            const __grid_constant__ signals_messages task) {
    uint32_t block = weft_block_index() * (uint32_t)t.n;
    for (uint32_t v = task.first + 1; v <= task.first + task.count; v++) {
        for (int m = 0; m < t.n; m++) {
            struct message message = message_of(&t, task, v, t.me, m);
            for (uint32_t i = weft_block_thread(); i < message.bytes; i += weft_block_threads())
                weft_st_weak((weft_bytes1 *)&message.source[i], {byte_of(message, i)});
        }
        weft_block_sync();
        for (int d = 0; d < t.n; d++)
            send(&t, task, v, (t.me + d) % t.n);
        for (int m = 0; m < t.n; m++)
            peek(&t, task, v, m);
        for (int m = 0; m < t.n; m++) {
            if (!await(&t, task, v, m))
                return;
            check(&t, task, v, m);
        }
        weft_block_sync();
        for (int m = (int)weft_block_thread(); m < t.n; m += (int)weft_block_threads())
            weft_signal(&t, &task.acks[block + (uint32_t)t.me], v, m);
        for (int m = 0; m < t.n; m++)
            if (!weft_wait_ge_b(&t, &task.acks[block + (uint32_t)m], v))
                return;
        if (weft_block_thread() == 0)
            weft_atom_add_sys(&task.found->checked, (uint64_t)t.n);
    }
}

/* --- Atomics --------------------------------------------------------------------------------- */

/* Each thread has a word of its own at each member, and applies all operations to it; the old
 * values are stored in `before`, [member][thread][SIGNALS_ATOMICS], or 0 if an operation returns
 * nothing. */
#define SEQUENCE(bits)                                                                        \
    WEFT_DEVICE void sequence##bits(const weft_device_team *t, uint##bits##_t *word,          \
                                    const uint##bits##_t *v, uint##bits##_t *before, int m) { \
        weft_atomic_set##bits(t, word, v[0], m);                                              \
        before[0] = weft_atomic_fetch##bits(t, word, m);                                      \
        before[1] = weft_atomic_swap##bits(t, word, v[1], m);                                 \
        before[2] = weft_atomic_compare_swap##bits(t, word, v[1], v[2], m);                   \
        before[3] = weft_atomic_compare_swap##bits(t, word, v[1], v[3], m);                   \
        before[4] = weft_atomic_fetch_add##bits(t, word, v[4], m);                            \
        weft_atomic_add##bits(t, word, v[5], m);                                              \
        before[5] = weft_atomic_fetch_and##bits(t, word, v[6] | v[5], m);                     \
        weft_atomic_and##bits(t, word, v[7] | v[5], m);                                       \
        before[6] = weft_atomic_fetch_or##bits(t, word, v[0], m);                             \
        weft_atomic_or##bits(t, word, v[1], m);                                               \
        before[7] = weft_atomic_fetch_xor##bits(t, word, v[2], m);                            \
        weft_atomic_xor##bits(t, word, v[3], m);                                              \
    }
SEQUENCE(32)
SEQUENCE(64)
#undef SEQUENCE

/* words: [member][thread], symmetric; values: 8; before: [member][thread][8], own. */
#define ATOMICS(bits)                                                                       \
    extern "C" __global__ void signals_atomics##bits(                                       \
        const __grid_constant__ weft_device_team t, uint##bits##_t *words,                  \
        const uint##bits##_t *values, uint##bits##_t *before) {                             \
        uint32_t id = (uint32_t)weft_thread_index(), count = (uint32_t)weft_thread_count(); \
        for (int m = 0; m < t.n; m++)                                                       \
            sequence##bits(&t, &words[(uint32_t)t.me * count + id], values,                 \
                           &before[((uint32_t)m * count + id) * 8], m);                     \
    }
ATOMICS(32)
ATOMICS(64)
#undef ATOMICS

/* All threads of all members at one member's words at once: tickets by fetch_add, each of which
 * marks its place in `taken`; a sum by compare_swap; tokens that are swapped in and out, and summed
 * up when they come out. */
#define CONTEND(bits)                                                                              \
    extern "C" __global__ void signals_contend##bits(const __grid_constant__ weft_device_team t,   \
                                                     uint##bits##_t *words, uint##bits##_t *taken, \
                                                     int at, int turns) {                          \
        uint32_t id = (uint32_t)weft_thread_index(), count = (uint32_t)weft_thread_count();        \
        for (int i = 0; i < turns; i++) {                                                          \
            uint##bits##_t ticket = weft_atomic_fetch_add##bits(&t, &words[0], 1, at);             \
            weft_atomic_add##bits(&t, &taken[ticket], 1, at);                                      \
            uint##bits##_t seen = weft_g##bits(&t, &words[1], at), was;                            \
            while ((was = weft_atomic_compare_swap##bits(&t, &words[1], seen, seen + 3, at)) !=    \
                   seen) {                                                                         \
                seen = was;                                                                        \
                weft_spin_yield();                                                                 \
            }                                                                                      \
            uint##bits##_t token = ((uint32_t)t.me * count + id) * (uint32_t)turns + (uint32_t)i;  \
            weft_atomic_add##bits(&t, &words[3], weft_atomic_swap##bits(&t, &words[2], token, at), \
                                  at);                                                             \
            weft_atomic_xor##bits(&t, &words[4], mix(token), at);                                  \
        }                                                                                          \
    }
CONTEND(32)
CONTEND(64)
#undef CONTEND

/* Single words: each thread puts one to each member, and then gets each member's. */
extern "C" __global__ void signals_p(const __grid_constant__ weft_device_team t, uint32_t *words32,
                                     uint64_t *words64, uint32_t seed) {
    uint32_t id = (uint32_t)weft_thread_index(),
             at = (uint32_t)t.me * (uint32_t)weft_thread_count();
    weft_dependency_wait(); /* on nothing, as the kernel is launched */
    for (int m = 0; m < t.n; m++) {
        weft_p32(&t, &words32[at + id], mix4(seed, (uint32_t)t.me, (uint32_t)m, id), m);
        weft_p64(&t, &words64[at + id], mix64(seed, (uint32_t)t.me, (uint32_t)m, id), m);
    }
    weft_dependency_trigger();
}
extern "C" __global__ void signals_g(const __grid_constant__ weft_device_team t,
                                     const uint32_t *words32, const uint64_t *words64,
                                     uint32_t seed, struct device_found *found) {
    uint32_t id = (uint32_t)weft_thread_index(), count = (uint32_t)weft_thread_count();
    for (int m = 0; m < t.n; m++)
        for (int from = 0; from < t.n; from++) {
            uint32_t at = (uint32_t)from * count + id, f = (uint32_t)from, to = (uint32_t)m;
            uint32_t got32 = weft_g32(&t, &words32[at], m);
            uint64_t got64 = weft_g64(&t, &words64[at], m);
            if (got32 != mix4(seed, f, to, id) || got64 != mix64(seed, f, to, id))
                found_wrong(found, f, to, got32, got64);
        }
    weft_atom_add_sys(&found->checked, (uint64_t)t.n);
}

/* --- Comparisons ----------------------------------------------------------------------------- */

/* Each thread tests one condition, and waits for it with a limit; without one if it holds. */
extern "C" __global__ void signals_compares(const __grid_constant__ weft_device_team t,
                                            signals_compare *cases, uint32_t count, uint32_t ns) {
    for (uint32_t i = (uint32_t)weft_thread_index(); i < count;
         i += (uint32_t)weft_thread_count()) {
        signals_compare *of = &cases[i];
        const uint32_t *low = (const uint32_t *)&of->word;
        uint32_t came = 0;
        if (weft_test_until(&t, &of->word, of->cmp, of->value))
            came |= COMPARED;
        if (weft_test_until32(&t, low, of->cmp, (uint32_t)of->value))
            came |= COMPARED_32;
        uint64_t began = weft_globaltimer();
        int met = weft_wait_until_ns(&t, &of->word, of->cmp, of->value, ns);
        came |= met == 1 ? COMPARED_NS : met == -1 ? TIMED_OUT : 0;
        if (met == -1 && weft_globaltimer() - began < ns)
            came |= TOO_EARLY;
        if (met == 1 && (!weft_wait_until(&t, &of->word, of->cmp, of->value) ||
                         !weft_wait_until_relaxed(&t, &of->word, of->cmp, of->value)))
            came |= TOO_EARLY;
        if (came & COMPARED_32 && !weft_wait_until32(&t, low, of->cmp, (uint32_t)of->value))
            came |= TOO_EARLY;
        of->came = came;
    }
}
