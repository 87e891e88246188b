/* SPDX-License-Identifier: BSD-3-Clause */
/* The type tables of OpenSHMEM: X(TYPENAME, C type, A), one row for each type; A is passed through.
 *
 * Types are listed here only. Prototypes, definitions and type-generic macros apply their own macro
 * X to these tables. The file lists the rows first, then the specification's groups as unions of
 * rows. */
#ifndef SHMEM_TYPES_H
#define SHMEM_TYPES_H

/* clang-format off */
#define SHMEM_UNSIGNED_WORDS(X, A)                                                                 \
    X(uint, unsigned int, A) X(ulong, unsigned long, A) X(ulonglong, unsigned long long, A)
#define SHMEM_WORDS(X, A)                                                                          \
    X(int, int, A) X(long, long, A) X(longlong, long long, A) SHMEM_UNSIGNED_WORDS(X, A)
#define SHMEM_FIXED_WORDS(X, A)                                                                    \
    X(int32, int32_t, A) X(int64, int64_t, A) X(uint32, uint32_t, A) X(uint64, uint64_t, A)
#define SHMEM_SHORTS(X, A)  X(short, short, A) X(ushort, unsigned short, A)
#define SHMEM_CHARS(X, A)   X(char, char, A) X(schar, signed char, A) X(uchar, unsigned char, A)
#define SHMEM_FIXED_NARROW(X, A)                                                                   \
    X(int8, int8_t, A) X(int16, int16_t, A) X(uint8, uint8_t, A) X(uint16, uint16_t, A)
#define SHMEM_REALS(X, A)   X(float, float, A) X(double, double, A)
#define SHMEM_COMPLEX(X, A) X(complexf, float _Complex, A) X(complexd, double _Complex, A)

/* Types of atomics (the specification's standard, bitwise and extended AMO) and of waits. */
#define SHMEM_AMO_TYPES(X, A)                                                                      \
    SHMEM_WORDS(X, A) SHMEM_FIXED_WORDS(X, A) X(size, size_t, A) X(ptrdiff, ptrdiff_t, A)
#define SHMEM_AMO_BITWISE_TYPES(X, A)  SHMEM_UNSIGNED_WORDS(X, A) SHMEM_FIXED_WORDS(X, A)
#define SHMEM_AMO_EXTENDED_TYPES(X, A) SHMEM_AMO_TYPES(X, A) SHMEM_REALS(X, A)

#define SHMEM_WAIT_TYPES(X, A)         SHMEM_AMO_TYPES(X, A)
#define SHMEM_WAIT_UNTIL_TYPES(X, A)   SHMEM_AMO_TYPES(X, A)

/* Put, get and most collectives. */
#define SHMEM_RMA_TYPES(X, A)                                                                      \
    SHMEM_AMO_EXTENDED_TYPES(X, A) SHMEM_FIXED_NARROW(X, A) SHMEM_CHARS(X, A) SHMEM_SHORTS(X, A)   \
    X(longdouble, long double, A)

/* Reductions and scans: sum and prod; and, or, xor. Minimum and maximum have the RMA types. */
#define SHMEM_ARITHMETIC_TYPES(X, A) SHMEM_RMA_TYPES(X, A) SHMEM_COMPLEX(X, A)
#define SHMEM_BITWISE_TYPES(X, A)                                                                  \
    SHMEM_AMO_BITWISE_TYPES(X, A) SHMEM_FIXED_NARROW(X, A) X(size, size_t, A)                      \
    X(uchar, unsigned char, A) X(ushort, unsigned short, A)

/* Routines named by the size of an element: X(bits, bytes, A). */
#define SHMEM_SIZES(X, A) X(8, 1, A) X(16, 2, A) X(32, 4, A) X(64, 8, A) X(128, 16, A)

/* Type-generic names need distinct C types, so these groups contain base types only: int32_t is int
 * or long, and so on. Signed bitwise routines only exist under their fixed-width names. */
#define SHMEM_C_AMO(X, A)          SHMEM_WORDS(X, A)
#define SHMEM_C_AMO_BITWISE(X, A)  SHMEM_UNSIGNED_WORDS(X, A) X(int32, int, A) X(int64, long, A)
#define SHMEM_C_AMO_EXTENDED(X, A) SHMEM_WORDS(X, A) SHMEM_REALS(X, A)
#define SHMEM_C_WAIT(X, A)         SHMEM_WORDS(X, A)
#define SHMEM_C_WAIT_UNTIL(X, A) /* for C++, where the deprecated function takes long */            \
    X(int, int, A) X(longlong, long long, A) SHMEM_UNSIGNED_WORDS(X, A)
#define SHMEM_C_RMA(X, A)                                                                          \
    SHMEM_WORDS(X, A) SHMEM_REALS(X, A) SHMEM_CHARS(X, A) SHMEM_SHORTS(X, A)                       \
    X(longdouble, long double, A)
#define SHMEM_C_ARITHMETIC(X, A)   SHMEM_C_RMA(X, A) SHMEM_COMPLEX(X, A)
#define SHMEM_C_BITWISE(X, A)                                                                      \
    SHMEM_C_AMO_BITWISE(X, A) X(int8, signed char, A) X(int16, short, A)                           \
    X(uchar, unsigned char, A) X(ushort, unsigned short, A)
/* clang-format on */

#endif
