/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices for the tests of the tensor operators: random values that every PE can compute for all
 * PEs, conversions written for clarity instead of speed, memory of all kinds, and guard bytes
 * before, between and after the rows. */
#ifndef TESTS_OPS_TENSOR_H
#define TESTS_OPS_TENSOR_H

#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <shmem.h>
#include <weft.h>
#include "tap.h"

enum memory { PRIVATE, HEAP, STATICS, MEMORIES };
enum { GUARD = 0x5a, GUARD_BYTES = 64 };
enum { HEAP_BYTES = 12 << 20, STATIC_BYTES = 4 << 20, FILE_BYTES = 32 << 20 };
enum { FAR_FILE_BYTES = 68 << 20 }; /* words of teams need more if PEs are far */

static const weft_dtype all_dtypes[] = {WEFT_F32, WEFT_F64, WEFT_BF16, WEFT_F16};
static const char *const dtype_names[] = {"",       "f32", "f64", "bf16", "f16", "f8e4m3",
                                          "f8e5m2", "i8",  "i16", "i32",  "i64", "u8",
                                          "u16",    "u32", "u64", "bool", "c64", "c128"};

struct tensor {
    weft_matrix m;
    unsigned char *block;
    size_t bytes;
    enum memory memory;
};

/* --- Numbers --------------------------------------------------------------------------------- */

static inline uint64_t mix(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t random_state = 1;
static inline size_t random_below(size_t bound) {
    random_state = mix(random_state);
    return random_state % bound;
}

/* Returns 2^exponent, for normal numbers. */
static inline double power_of_two(int exponent) {
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Rounds a number below 2^900 to a type, with its number of mantissa bits and its smallest normal
 * exponent: adding and subtracting 1.5 * 2^52 units rounds to a unit, in a fraction of the time of
 * functions of libm. Tests round millions of numbers. */
static inline double round_to(weft_dtype dtype, double x) {
    int bits = dtype == WEFT_F32 ? 24 : dtype == WEFT_BF16 ? 8 : 11;
    int least = dtype == WEFT_F16 ? -13 : -125;
    uint64_t image;
    if (dtype == WEFT_F64 || !isfinite(x))
        return x;
    memcpy(&image, &x, sizeof image);
    int exponent = (int)(image >> 52 & 2047) - 1022;
    double large = 0x1.8p52 * power_of_two((exponent > least ? exponent : least) - bits);
    double rounded = copysign(fabs(x) + large - large, x);
    return dtype == WEFT_F16 && fabs(rounded) > 65504 ? copysign(INFINITY, x) : rounded;
}

static inline double dtype_epsilon(weft_dtype dtype) {
    return dtype == WEFT_F64    ? 0x1p-53
           : dtype == WEFT_F32  ? 0x1p-24
           : dtype == WEFT_BF16 ? 0x1p-8
                                : 0x1p-11;
}

/* Returns a value in (-1, 1) that the type represents exactly. */
static inline double value_at(weft_dtype dtype, uint64_t seed, size_t i, size_t j) {
    uint64_t bits = mix(mix(seed * 1000003 + i) + j * 7919);
    return round_to(dtype, ((double)(int64_t)bits) * 0x1p-63);
}

static inline double half_value(uint16_t h) {
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double magnitude = exponent == 0    ? ldexp(mantissa, -24)
                       : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                        : ldexp(1024 + mantissa, exponent - 25);
    return h & 0x8000 ? -magnitude : magnitude;
}

/* 4 bits of exponent with a bias of 7, 3 of mantissa; no infinities, and one NaN of either sign. */
static inline double e4m3_value(uint8_t byte) {
    int exponent = byte >> 3 & 15, mantissa = byte & 7;
    double magnitude = (byte & 0x7f) == 0x7f ? NAN
                       : exponent == 0       ? ldexp(mantissa, -9)
                                             : ldexp(8 + mantissa, exponent - 10);
    return byte & 0x80 ? -magnitude : magnitude;
}

static inline uint16_t half_bits(double x) { /* x is exact in f16 */
    int exponent;
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    double fraction = frexp(fabs(x), &exponent);
    if (x == 0)
        return sign;
    if (exponent < -13)
        return (uint16_t)(sign | (int)ldexp(fabs(x), 24));
    return (uint16_t)(sign | (exponent + 14) << 10 | ((int)ldexp(fraction, 11) & 1023));
}

static inline double element_get(weft_dtype dtype, const void *p) {
    float f;
    double d;
    uint16_t h;
    uint32_t bits;
    switch (dtype) {
    case WEFT_F32:
        memcpy(&f, p, 4);
        return f;
    case WEFT_F64:
        memcpy(&d, p, 8);
        return d;
    case WEFT_F8E4M3:
        return e4m3_value(*(const uint8_t *)p);
    case WEFT_F8E5M2:
        return half_value((uint16_t)(*(const uint8_t *)p << 8));
    case WEFT_BF16:
        memcpy(&h, p, 2);
        bits = (uint32_t)h << 16;
        memcpy(&f, &bits, 4);
        return f;
    default:
        memcpy(&h, p, 2);
        return half_value(h);
    }
}

static inline void element_set(weft_dtype dtype, void *p, double x) {
    float f = (float)x;
    uint32_t bits;
    uint16_t h;
    memcpy(&bits, &f, 4);
    h = dtype == WEFT_BF16 ? (uint16_t)(bits >> 16) : half_bits(dtype == WEFT_F16 ? x : 0);
    if (dtype == WEFT_F32)
        memcpy(p, &f, 4);
    else if (dtype == WEFT_F64)
        memcpy(p, &x, 8);
    else
        memcpy(p, &h, 2);
}

/* --- Memory ---------------------------------------------------------------------------------- */

static unsigned char static_arena[STATIC_BYTES];
static unsigned char *heap_arena;
static size_t static_used, heap_used;

/* Starts a PE. `small` gives teams workspaces of 120 KiB, so that small tensors need several bands:
 * a workspace is a team's share of the largest file that a process may have. */
static inline void tensors_open(bool small) {
    bool far = getenv("WEFT_PRETEND_HOSTS") || getenv("WEFT_TEST_HOSTS");
    rlim_t bytes = far ? FAR_FILE_BYTES : FILE_BYTES;
    struct rlimit limit = {bytes, bytes};
    if (small)
        setrlimit(RLIMIT_FSIZE, &limit);
#ifdef __SANITIZE_ADDRESS__
    /* LeakSanitizer crashes on sleeping OpenMP threads: use one processor and one thread. */
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
#endif
    shmem_init();
    tap_start(shmem_my_pe());
    heap_arena = shmem_malloc(HEAP_BYTES);
}

/* Frees all symmetric tensors of this PE. Local, because PEs may have their objects at different
 * offsets. */
static inline void tensors_reset(void) {
    static_used = heap_used = 0;
}

static inline void *memory_new(enum memory memory, size_t bytes) {
    size_t rounded = (bytes + 63) / 64 * 64;
    if (memory == HEAP && heap_used + rounded <= HEAP_BYTES)
        return heap_arena + (heap_used += rounded) - rounded;
    if (memory == STATICS && static_used + rounded <= STATIC_BYTES)
        return static_arena + (static_used += rounded) - rounded;
    return NULL;
}

/* The contiguous lines of a matrix: its rows or, if it is transposed, its columns. */
struct lines {
    size_t count, nelems;
};
static inline struct lines lines_of(const weft_matrix *m) {
    return m->transposed ? (struct lines){m->cols, m->rows} : (struct lines){m->rows, m->cols};
}

static inline struct tensor tensor_of(enum memory memory, weft_matrix shape) {
    struct tensor t = {.m = shape, .memory = memory};
    t.bytes = lines_of(&shape).count * shape.ld * weft_dtype_bytes(shape.dtype) + 2 * GUARD_BYTES;
    t.block = memory_new(memory, t.bytes);
    if (!t.block) {
        t.memory = PRIVATE;
        t.block = malloc(t.bytes);
    }
    memset(t.block, GUARD, t.bytes);
    t.m.data = t.block + GUARD_BYTES;
    return t;
}

static inline struct tensor tensor_new(enum memory memory, size_t rows, size_t cols, size_t ld,
                                       weft_dtype dtype) {
    return tensor_of(memory, (weft_matrix){NULL, rows, cols, ld, dtype, false});
}

/* A factor of a product, transposed or not, whose lines are up to 3 elements apart. */
static inline struct tensor tensor_factor(enum memory memory, size_t rows, size_t cols,
                                          weft_dtype dtype) {
    bool transposed = random_below(2);
    size_t ld = (transposed ? rows : cols) + random_below(4);
    return tensor_of(memory, (weft_matrix){NULL, rows, cols, ld, dtype, transposed});
}

static inline void tensor_free(struct tensor *t) {
    if (t->memory == PRIVATE)
        free(t->block);
}

static inline void *tensor_at(const struct tensor *t, size_t i, size_t j) {
    size_t line = t->m.transposed ? j : i, within = t->m.transposed ? i : j;
    return (char *)t->m.data + (line * t->m.ld + within) * weft_dtype_bytes(t->m.dtype);
}

static inline double tensor_get(const struct tensor *t, size_t i, size_t j) {
    return element_get(t->m.dtype, tensor_at(t, i, j));
}

static inline void tensor_fill(struct tensor *t, uint64_t seed) {
    for (size_t i = 0; i < t->m.rows; i++)
        for (size_t j = 0; j < t->m.cols; j++)
            element_set(t->m.dtype, tensor_at(t, i, j), value_at(t->m.dtype, seed, i, j));
}

/* Returns whether every byte outside of the elements still has the guard's value. */
static inline bool tensor_guarded(const struct tensor *t) {
    size_t element = weft_dtype_bytes(t->m.dtype), step = t->m.ld * element;
    struct lines lines = lines_of(&t->m);
    for (size_t at = 0; at < t->bytes; at++) {
        size_t inside = at - GUARD_BYTES;
        bool is_element = at >= GUARD_BYTES && step > 0 && inside < lines.count * step &&
                          inside % step < lines.nelems * element;
        if (!is_element && t->block[at] != GUARD)
            return false;
    }
    return true;
}

/* Returns whether no element has been written, either. */
static inline bool tensor_untouched(const struct tensor *t) {
    for (size_t at = 0; at < t->bytes; at++)
        if (t->block[at] != GUARD)
            return false;
    return true;
}

/* Returns a hash of the elements, which depends on how they are stored. */
static inline uint64_t tensor_hash(const struct tensor *t) {
    size_t element = weft_dtype_bytes(t->m.dtype), step = t->m.ld * element;
    struct lines lines = lines_of(&t->m);
    uint64_t sum = 0, bits;
    for (size_t i = 0; i < lines.count; i++)
        for (size_t at = 0, end = lines.nelems * element; at < end; at += sizeof bits) {
            bits = 0;
            memcpy(&bits, (const char *)t->m.data + i * step + at,
                   end - at < sizeof bits ? end - at : sizeof bits);
            sum = mix(sum + bits);
        }
    return sum;
}

/* --- Teams ----------------------------------------------------------------------------------- */

struct test_team {
    shmem_team_t team;
    int me, npes, start, stride; /* member i is world PE start + i * stride */
    const char *name;
};

/* Opens the teams to which this PE belongs: WORLD, every second PE, all PEs except the first, and a
 * team of this PE alone. Collective over WORLD. */
static inline int teams_open(struct test_team teams[4]) {
    int npes = shmem_n_pes(), me = shmem_my_pe(), count = 0;
    teams[count++] = (struct test_team){SHMEM_TEAM_WORLD, me, npes, 0, 1, "world"};
    struct test_team splits[] = {
        {.start = 0, .stride = 2, .npes = (npes + 1) / 2, .name = "even"},
        {.start = npes > 1, .stride = 1, .npes = npes > 1 ? npes - 1 : 1, .name = "tail"}};
    for (size_t i = 0; i < 2; i++) {
        struct test_team *t = &splits[i];
        shmem_team_split_strided(SHMEM_TEAM_WORLD, t->start, t->stride, t->npes, NULL, 0, &t->team);
        t->me = (me - t->start) / t->stride;
        if (t->team != SHMEM_TEAM_INVALID)
            teams[count++] = *t;
    }
    for (int pe = 0; pe < npes; pe++) {
        struct test_team t = {.start = pe, .stride = 1, .npes = 1, .name = "alone"};
        shmem_team_split_strided(SHMEM_TEAM_WORLD, pe, 1, 1, NULL, 0, &t.team);
        if (pe == me)
            teams[count++] = t;
    }
    return count;
}

#endif
