/* SPDX-License-Identifier: BSD-3-Clause */
/* Common parts of the examples that move data in host memory or, on a CUDA stream, in GPU memory:
 * calls that must succeed, memory, files, times, and words of the command line. */
#ifndef TRANSFER_H
#define TRANSFER_H

#include <errno.h>
#include <shmemx.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft.h>

static const char *program;
static int me, npes;
static bool on_gpu;
static weft_stream stream = WEFT_STREAM_HOST;
static uint64_t finished; /* symmetric: the stream has finished this many rounds */

static inline void job_begin(const char *name) {
    program = name;
    shmem_init();
    me = shmem_my_pe(), npes = shmem_n_pes();
}

static inline void use_gpu(void) {
    on_gpu = true;
    stream = NULL; /* CUDA's default stream */
}

/* Prints a line, as printf does, and ends the job. */
__attribute__((format(printf, 1, 2))) static inline void give_up(const char *format, ...) {
    va_list arguments;
    fprintf(stderr, "%s: PE %d: ", program, me);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    shmem_global_exit(1);
}

static inline void require(int result) {
    if (result != 0)
        give_up("%s", weft_last_error());
}

/* Collective. */
static inline void *symmetric(size_t bytes) {
    void *made = shmemx_malloc(on_gpu ? SHMEMX_SPACE_DEVICE : SHMEMX_SPACE_HOST, bytes);
    if (!made)
        give_up("no symmetric memory: %s", weft_last_error());
    return made;
}

/* Waits until the stream has done all that was given to it. */
static inline void finish(void) {
    static uint64_t round;
    if (!on_gpu)
        return;
    require(shmemx_signal_op_on_stream(&finished, ++round, SHMEM_SIGNAL_SET, me,
                                       (shmemx_stream_t)stream));
    shmem_signal_wait_until(&finished, SHMEM_CMP_GE, round);
}

/* --- Files ------------------------------------------------------------------------------------ */

static inline FILE *file_open(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (!file)
        give_up("%s: %s", path, strerror(errno));
    return file;
}

/* Reads a file of this size. */
static inline void file_read(const char *path, void *to, size_t bytes) {
    FILE *file = file_open(path, "rb");
    if (fread(to, 1, bytes, file) != bytes || fgetc(file) != EOF)
        give_up("%s: its size is wrong: make it with data_gen.py and the same options", path);
    fclose(file);
}

static inline void file_write(const char *path, const void *from, size_t bytes) {
    FILE *file = file_open(path, "wb");
    size_t written = fwrite(from, 1, bytes, file);
    if (fclose(file) != 0 || written != bytes)
        give_up("%s: the file cannot be written: is the disk full?", path);
}

/* --- Times ------------------------------------------------------------------------------------ */

static inline double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* Returns the mean of many calls; one before them is not counted. Collective. */
static inline double mean_us(void (*call)(void), long times) {
    call();
    finish();
    shmem_barrier_all();
    double begin = now_us();
    for (long i = 0; i < times; i++)
        call();
    finish();
    return (now_us() - begin) / (double)times;
}

static inline int compare(const void *x, const void *y) {
    double first = *(const double *)x, second = *(const double *)y;
    return (first > second) - (first < second);
}

/* Sorts the values. */
static inline double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, compare);
    return values[n / 2];
}

/* --- Options ---------------------------------------------------------------------------------- */

static inline bool read_number(const char *text, long least, long largest, long *number) {
    char *end;
    *number = strtol(text, &end, 10);
    return *text && !*end && *number >= least && *number <= largest;
}

/* Takes -gpu, and pairs of an option and its value by take_value. Returns the wrong word, or NULL.
 */
static inline const char *take_options(char **words,
                                       bool (*take_value)(const char *name, const char *value)) {
    for (; *words; words++)
        if (strcmp(*words, "-gpu") == 0)
            use_gpu();
        else if (!words[1] || !take_value(words[0], words[1]))
            return *words;
        else
            words++;
    return NULL;
}

#endif
