/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of <weft/device.cuh> for kernels that are not written in CUDA C: a clang without
 * CUDA compiles this file to libweft_device_sm80.bc and _sm90.bc, and to PTX. Numbers are passed as
 * they are; the team, objects and words as 64-bit addresses. A function that returns nothing in C
 * returns 0 here, for languages in which a call is an expression.
 *
 * The header is included into a namespace of its own, because an exported function has the name of
 * the function that it calls. The names are frozen: tests/gpu/bitcode.list. */
#include <stddef.h>
#include <stdint.h>

namespace header {
#include "weft/device.cuh"
}

#define EXPORTED extern "C" __attribute__((convergent))
#define RESULT(type, name, parameters, arguments) \
    EXPORTED type name parameters {               \
        return header::name arguments;            \
    }
#define ACTION(name, parameters, arguments) \
    EXPORTED int32_t name parameters {      \
        header::name arguments;             \
        return 0;                           \
    }

typedef uint64_t address;
typedef uint64_t team;

/* An address that converts to whatever pointer type the header's function takes. */
struct pointer {
    address value;
    template <class type> operator type *() const { return (type *)value; }
};

/* --- The team ------------------------------------------------------------------------------------
 */

EXPORTED int32_t weft_me(team t) {
    return ((const header::weft_device_team *)t)->me;
}

EXPORTED int32_t weft_n(team t) {
    return ((const header::weft_device_team *)t)->n;
}

EXPORTED address weft_at(team t, address p, int32_t m) {
    return (address)header::weft_at(pointer{t}, pointer{p}, m);
}

RESULT(int32_t, weft_job_over, (team t), (pointer{t}))
ACTION(weft_abort, (team t, int32_t status), (pointer{t}, status))

/* --- Copies --------------------------------------------------------------------------------------
 */

#define COPIES(group)                                                                           \
    ACTION(weft_copy_##group, (address to, address from, uint64_t bytes),                       \
           (pointer{to}, pointer{from}, bytes))                                                 \
    ACTION(weft_put_##group, (team t, address dest, address source, uint64_t bytes, int32_t m), \
           (pointer{t}, pointer{dest}, pointer{source}, bytes, m))                              \
    ACTION(weft_get_##group, (team t, address dest, address source, uint64_t bytes, int32_t m), \
           (pointer{t}, pointer{dest}, pointer{source}, bytes, m))                              \
    ACTION(weft_put_signal_##group,                                                             \
           (team t, address dest, address source, uint64_t bytes, address sig, uint64_t value,  \
            int32_t op, int32_t m),                                                             \
           (pointer{t}, pointer{dest}, pointer{source}, bytes, pointer{sig}, value, op, m))
COPIES(t)
COPIES(w)
COPIES(b)

/* --- Words and signals ---------------------------------------------------------------------------
 */

#define WORDS(bits)                                                                               \
    ACTION(weft_p##bits, (team t, address dest, uint##bits##_t value, int32_t m),                 \
           (pointer{t}, pointer{dest}, value, m))                                                 \
    ACTION(weft_p##bits##_signal,                                                                 \
           (team t, address dest, uint##bits##_t value, address sig, uint64_t signal, int32_t op, \
            int32_t m),                                                                           \
           (pointer{t}, pointer{dest}, value, pointer{sig}, signal, op, m))                       \
    RESULT(uint##bits##_t, weft_g##bits, (team t, address source, int32_t m),                     \
           (pointer{t}, pointer{source}, m))
WORDS(32)
WORDS(64)

/* A store by the whole block: done once, after everything that its threads did before and before
 * anything they do later. */
#define WORD_OF_BLOCK(bits)                                                                    \
    EXPORTED int32_t weft_p##bits##_b(team t, address dest, uint##bits##_t value, int32_t m) { \
        header::weft_block_sync();                                                             \
        if (header::weft_block_rank() == 0)                                                    \
            header::weft_p##bits(pointer{t}, pointer{dest}, value, m);                         \
        header::weft_block_sync();                                                             \
        return 0;                                                                              \
    }
WORD_OF_BLOCK(32)
WORD_OF_BLOCK(64)

/* The value that one thread has loaded for the whole block: separate loads might return different
 * values. */
static __attribute__((address_space(3), loader_uninitialized)) uint64_t block_word;
#define LOAD_OF_BLOCK(type, name, parameters, arguments) \
    EXPORTED type name##_b parameters {                  \
        header::weft_block_sync();                       \
        if (header::weft_block_rank() == 0)              \
            block_word = header::name arguments;         \
        header::weft_block_sync();                       \
        return (type)block_word;                         \
    }
LOAD_OF_BLOCK(uint32_t, weft_g32, (team t, address source, int32_t m),
              (pointer{t}, pointer{source}, m))
LOAD_OF_BLOCK(uint64_t, weft_g64, (team t, address source, int32_t m),
              (pointer{t}, pointer{source}, m))
LOAD_OF_BLOCK(uint64_t, weft_signal_fetch, (team t, address sig), (pointer{t}, pointer{sig}))

#define SIGNAL(name)                                               \
    ACTION(name, (team t, address sig, uint64_t value, int32_t m), \
           (pointer{t}, pointer{sig}, value, m))
SIGNAL(weft_signal)
SIGNAL(weft_signal_add)
SIGNAL(weft_signal_relaxed)
RESULT(uint64_t, weft_signal_fetch, (team t, address sig), (pointer{t}, pointer{sig}))

#define UNTIL(name, type)                                                 \
    RESULT(int32_t, name, (team t, address sig, int32_t cmp, type value), \
           (pointer{t}, pointer{sig}, cmp, value))
UNTIL(weft_wait_until, uint64_t)
UNTIL(weft_wait_until_w, uint64_t)
UNTIL(weft_wait_until_b, uint64_t)
UNTIL(weft_wait_until_relaxed, uint64_t)
UNTIL(weft_wait_until32, uint32_t)
UNTIL(weft_test_until, uint64_t)
UNTIL(weft_test_until_relaxed, uint64_t)
UNTIL(weft_test_until32, uint32_t)
RESULT(int32_t, weft_wait_until_ns, (team t, address sig, int32_t cmp, uint64_t value, uint64_t ns),
       (pointer{t}, pointer{sig}, cmp, value, ns))

#define WAIT(name) \
    RESULT(int32_t, name, (team t, address sig, uint64_t value), (pointer{t}, pointer{sig}, value))
WAIT(weft_wait_eq)
WAIT(weft_wait_ge)
WAIT(weft_wait_ge_w)
WAIT(weft_wait_ge_b)

/* --- Atomics -------------------------------------------------------------------------------------
 */

#define CHANGE(name, bits)                                                                    \
    ACTION(weft_atomic_##name##bits, (team t, address word, uint##bits##_t value, int32_t m), \
           (pointer{t}, pointer{word}, value, m))
#define FETCH(name, bits)                                           \
    RESULT(uint##bits##_t, weft_atomic_##name##bits,                \
           (team t, address word, uint##bits##_t value, int32_t m), \
           (pointer{t}, pointer{word}, value, m))
#define ATOMICS(bits)                                                                    \
    RESULT(uint##bits##_t, weft_atomic_fetch##bits, (team t, address word, int32_t m),   \
           (pointer{t}, pointer{word}, m))                                               \
    RESULT(uint##bits##_t, weft_atomic_compare_swap##bits,                               \
           (team t, address word, uint##bits##_t cond, uint##bits##_t value, int32_t m), \
           (pointer{t}, pointer{word}, cond, value, m))                                  \
    CHANGE(set, bits)                                                                    \
    CHANGE(add, bits)                                                                    \
    CHANGE(and, bits)                                                                    \
    CHANGE(or, bits)                                                                     \
    CHANGE(xor, bits)                                                                    \
    FETCH(swap, bits)                                                                    \
    FETCH(fetch_add, bits)                                                               \
    FETCH(fetch_and, bits)                                                               \
    FETCH(fetch_or, bits)                                                                \
    FETCH(fetch_xor, bits)
ATOMICS(32)
ATOMICS(64)

/* --- Order ---------------------------------------------------------------------------------------
 */

#define ORDER(name) ACTION(name, (void), ())
ORDER(weft_fence)
ORDER(weft_fence_b)
ORDER(weft_quiet)
ORDER(weft_quiet_b)

/* Waits until the bulk copies that this thread has started, which compilers generate for stores
 * through tensor descriptors, have stored their data. A block sync and a signal after it then cover
 * them. */
EXPORTED int32_t weft_stores_wait(void) {
#if WEFT_DEVICE_ARCH >= 900
    header::weft_bulk_wait();
#endif
    return 0;
}

/* --- Meetings ------------------------------------------------------------------------------------
 */

#define MEETINGS(group)                                                                      \
    ACTION(weft_arrive_##group, (team t, uint32_t channel), (pointer{t}, channel))           \
    RESULT(int32_t, weft_depart_##group, (team t, uint32_t channel), (pointer{t}, channel))  \
    RESULT(int32_t, weft_barrier_##group, (team t, uint32_t channel), (pointer{t}, channel)) \
    RESULT(int32_t, weft_sync_##group, (team t, uint32_t channel), (pointer{t}, channel))
MEETINGS(t)
MEETINGS(w)
MEETINGS(b)
RESULT(int32_t, weft_barrier_grid, (team t), (pointer{t}))

/* --- Packets -------------------------------------------------------------------------------------
 */

RESULT(uint64_t, weft_ll_epoch_begin, (team t, uint32_t channel), (pointer{t}, channel))
RESULT(uint64_t, weft_ll_epoch_next, (uint64_t epoch), (epoch))
ACTION(weft_ll_epoch_end, (team t, uint32_t channel, uint64_t epoch), (pointer{t}, channel, epoch))
ACTION(weft_ll_send,
       (team t, uint32_t channel, uint32_t unit, uint64_t data, uint64_t epoch, int32_t m),
       (pointer{t}, channel, unit, data, epoch, m))
ACTION(weft_ll_bcast, (team t, uint32_t channel, uint32_t unit, uint64_t data, uint64_t epoch),
       (pointer{t}, channel, unit, data, epoch))
RESULT(int32_t, weft_ll_recv,
       (team t, uint32_t channel, uint32_t unit, int32_t source, uint64_t epoch, address data),
       (pointer{t}, channel, unit, source, epoch, pointer{data}))

/* Like weft_ll_recv, for callers without memory for the result: returns the data, or 0 if the job
 * is over. */
EXPORTED uint64_t weft_ll_data(team t, uint32_t channel, uint32_t unit, int32_t source,
                               uint64_t epoch) {
    uint64_t data = 0;
    header::weft_ll_recv(pointer{t}, channel, unit, source, epoch, &data);
    return data;
}

/* --- From Hopper on ------------------------------------------------------------------------------
 */

#if WEFT_DEVICE_ARCH >= 900
ORDER(weft_fence_async)
ORDER(weft_fence_async_shared)
ORDER(weft_dependency_wait)
ORDER(weft_dependency_trigger)
ORDER(weft_bulk_commit)
ORDER(weft_bulk_wait_read)
ORDER(weft_bulk_wait_read_but_one)
ORDER(weft_bulk_wait_but_one)
ORDER(weft_bulk_wait)
ACTION(weft_bulk_load, (address shared, address from, uint32_t bytes, address mbarrier),
       (pointer{shared}, pointer{from}, bytes, pointer{mbarrier}))
#define BULK(name)                                             \
    ACTION(name, (address to, address shared, uint32_t bytes), \
           (pointer{to}, pointer{shared}, bytes))
BULK(weft_bulk_put)
BULK(weft_bulk_add_f32)
BULK(weft_bulk_add_f16)
BULK(weft_bulk_add_bf16)
BULK(weft_bulk_add_u32)
BULK(weft_bulk_add_u64)
#define MBARRIER(name) \
    ACTION(name, (address mbarrier, uint32_t number), (pointer{mbarrier}, number))
MBARRIER(weft_mbarrier_init)
MBARRIER(weft_mbarrier_expect)
RESULT(int32_t, weft_mbarrier_test, (address mbarrier, uint32_t parity),
       (pointer{mbarrier}, parity))
ACTION(weft_mbarrier_inval, (address mbarrier), (pointer{mbarrier}))
RESULT(int32_t, weft_mbarrier_wait, (team t, address mbarrier, uint32_t parity),
       (pointer{t}, pointer{mbarrier}, parity))
#endif
