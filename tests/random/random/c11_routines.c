/* SPDX-License-Identifier: BSD-3-Clause */
/* Names without types: the compiler selects the routine by the first pointer. They expand to the
 * tables of types, so types are listed here once more, each once, and the rows find their own. */
#define EITHER(N, NAME, ...) \
    (ctx == SHMEM_CTX_INVALID ? shmem_##NAME(__VA_ARGS__) : shmem_##NAME(ctx, __VA_ARGS__))
#include "amo_bodies.h"

/* clang-format off */
#define BITS(X)  X(int, int, _) X(long, long, _) X(uint, unsigned, _) X(ulong, unsigned long, _)   \
                 X(ulonglong, unsigned long long, _)
#define WORDS(X) BITS(X) X(longlong, long long, _)
#define REALS(X) X(float, float, _) X(double, double, _)
#define OTHERS(X)                                                                                  \
    X(char, char, _) X(schar, signed char, _) X(uchar, unsigned char, _) X(short, short, _)        \
    X(ushort, unsigned short, _) X(longdouble, long double, _)
WORDS(STANDARD) BITS(BITWISE) WORDS(EXTENDED) REALS(EXTENDED)

#define ARM_BITS(KIND)  int: KIND##_int, long: KIND##_long, unsigned: KIND##_uint,                 \
                        unsigned long: KIND##_ulong, unsigned long long: KIND##_ulonglong
#define ARM_WORDS(KIND) ARM_BITS(KIND), long long: KIND##_longlong
#define ARM_REALS(KIND) float: KIND##_float, double: KIND##_double
#define ARM_ALL(KIND)   ARM_WORDS(KIND), ARM_REALS(KIND), char: KIND##_char,                       \
                        signed char: KIND##_schar, unsigned char: KIND##_uchar,                    \
                        short: KIND##_short, unsigned short: KIND##_ushort,                        \
                        long double: KIND##_longdouble
#define OF_TYPE(T, ARMS) _Generic((T)0, ARMS)

#define BITWISE_ROW(N, T, _) {#N, sizeof(T), OF_TYPE(T, ARM_WORDS(standard)),                      \
                              OF_TYPE(T, ARM_BITS(bitwise)), OF_TYPE(T, ARM_WORDS(extended))},
#define WORD_ROW(N, T, _) {#N, sizeof(T), OF_TYPE(T, ARM_WORDS(standard)), NULL,                   \
                           OF_TYPE(T, ARM_WORDS(extended))},
#define REAL_ROW(N, T, _) {#N, sizeof(T), NULL, NULL, OF_TYPE(T, ARM_REALS(extended))},
const struct amo_routines c11_amo_routines[] = {
    SHMEM_AMO_BITWISE_TYPES(BITWISE_ROW, _) SHMEM_AMO_TYPES(WORD_ROW, _) SHMEM_REALS(REAL_ROW, _)
};

#define MOVE(N, T, NAME)                                                                           \
    static void NAME##_##N(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems,         \
                           int pe) {                                                               \
        T *to = dest;                                                                              \
        const T *from = source;                                                                    \
        EITHER(N, NAME, to, from, nelems, pe);                                                     \
    }
#define MOVES(N, T, _) MOVE(N, T, put) MOVE(N, T, get) MOVE(N, T, put_nbi) MOVE(N, T, get_nbi)
WORDS(MOVES) REALS(MOVES) OTHERS(MOVES)

#define MOVE_ROW(N, T, _) {OF_TYPE(T, ARM_ALL(put)), OF_TYPE(T, ARM_ALL(get)),                     \
                           OF_TYPE(T, ARM_ALL(put_nbi)), OF_TYPE(T, ARM_ALL(get_nbi))},
const struct c11_routines c11_routines[] = {SHMEM_RMA_TYPES(MOVE_ROW, _)};
/* clang-format on */
