/* SPDX-License-Identifier: BSD-3-Clause */
/* All-gathers of growing blocks: every PE receives the blocks of all PEs, by weft_all_gather, in
 * host memory or on a CUDA stream. data_gen.py has made the blocks, verify.py compares the results;
 * only PE 0 reads and writes files, so that other hosts need no copy of them.
 *
 *   examples/allgather/run.sh -ranks 2 [-hosts a,b] [-type int32_t] [-cases 14] [-times 20] [-gpu]
 */
#include <errno.h>
#include <shmemx.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft.h>

enum { CASES_MAX = 24, TIMES_MAX = 10000 };

static const char *folder;
static const char *type_name = "int32_t";
static long cases = 14, times = 20;
static bool on_gpu;

static int me, npes;
static weft_dtype dtype;
static weft_stream stream = WEFT_STREAM_HOST;
static uint64_t finished; /* symmetric: the stream has finished this many rounds */

/* Symmetric: this PE's block, and the blocks of all PEs. */
static char *block, *gathered;
static char *image; /* as large as `gathered`, in this process's own memory */

static void give_up(const char *what, const char *why) {
    fprintf(stderr, "allgather: PE %d: %s: %s\n", me, what, why);
    shmem_global_exit(1);
}

static void require(int result) {
    if (result != 0)
        give_up("failed", weft_last_error());
}

/* --- Files: PE 0 passes blocks to all PEs, and gets their results ------------------------------
 */

static size_t elements_of(long number) {
    return (size_t)16 << number;
}

static size_t block_bytes_of(long number) {
    return elements_of(number) * weft_dtype_bytes(dtype);
}

/* Opens FOLDER/case_NUMBER/WHAT_PE.bin. */
static FILE *file_open(long number, const char *what, int pe, const char *mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/case_%ld/%s_%d.bin", folder, number, what, pe);
    FILE *file = fopen(path, mode);
    if (!file)
        give_up(path, strerror(errno));
    return file;
}

static void inputs_read(long number) {
    size_t bytes = block_bytes_of(number);
    for (int pe = 0; pe < npes; pe++) {
        FILE *file = file_open(number, "input", pe, "rb");
        if (fread(image, 1, bytes, file) != bytes)
            give_up("an input is too short", "make it with data_gen.py");
        fclose(file);
        shmem_putmem(block, image, bytes, pe);
    }
}

static void outputs_write(long number) {
    size_t bytes = block_bytes_of(number) * (size_t)npes;
    for (int pe = 0; pe < npes; pe++) {
        shmem_getmem(image, gathered, bytes, pe);
        FILE *file = file_open(number, "output", pe, "wb");
        size_t written = fwrite(image, 1, bytes, file);
        if (fclose(file) != 0 || written != bytes)
            give_up("an output cannot be written", "is the disk full?");
    }
}

/* --- The all-gather, and its time --------------------------------------------------------------
 */

/* Waits until the stream has done all that was given to it. */
static void finish(void) {
    static uint64_t round;
    if (!on_gpu)
        return;
    require(shmemx_signal_op_on_stream(&finished, ++round, SHMEM_SIGNAL_SET, me,
                                       (shmemx_stream_t)stream));
    shmem_signal_wait_until(&finished, SHMEM_CMP_GE, round);
}

static void all_gather(long number) {
    require(weft_all_gather(SHMEM_TEAM_WORLD, gathered, block, elements_of(number), dtype, stream));
}

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* Returns the mean of many calls; one before them is not counted. */
static double time_us(long number) {
    all_gather(number);
    finish();
    shmem_barrier_all();
    double begin = now_us();
    for (long i = 0; i < times; i++)
        all_gather(number);
    finish();
    return (now_us() - begin) / (double)times;
}

static void print_case(long number, size_t bytes, double us) {
    printf("%10zu  %12zu  %12.2f us  %10.3f GB/s\n", elements_of(number), bytes, us,
           1e-3 * (double)bytes / us);
}

/* The results are cleared before, so that every byte of them is of these calls. */
static void run_case(long number) {
    size_t bytes = block_bytes_of(number) * (size_t)npes;
    memset(image, 0xff, bytes);
    shmem_putmem(gathered, image, bytes, me);
    if (me == 0)
        inputs_read(number);
    shmem_barrier_all(); /* all PEs have their blocks */
    double us = time_us(number);
    shmem_barrier_all(); /* all PEs have their results */
    if (me == 0) {
        outputs_write(number);
        print_case(number, bytes, us);
    }
    shmem_barrier_all(); /* PE 0 has read all results */
}

/* --- Options -----------------------------------------------------------------------------------
 */

static bool read_number(const char *text, long largest, long *number) {
    char *end;
    *number = strtol(text, &end, 10);
    return *text && !*end && *number >= 1 && *number <= largest;
}

static bool read_type(const char *name) {
    static const struct {
        const char *name;
        weft_dtype dtype;
    } types[] = {{"int32_t", WEFT_I32}, {"float16_t", WEFT_F16}, {"bfloat16_t", WEFT_BF16}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(name, types[i].name) == 0)
            dtype = types[i].dtype;
    return dtype != 0;
}

static bool take_value(const char *name, const char *value) {
    if (strcmp(name, "-cases") == 0)
        return read_number(value, CASES_MAX, &cases);
    if (strcmp(name, "-times") == 0)
        return read_number(value, TIMES_MAX, &times);
    if (strcmp(name, "-data") == 0)
        folder = value;
    else if (strcmp(name, "-type") == 0)
        type_name = value;
    else
        return false;
    return true;
}

/* Returns the wrong word, or NULL. */
static const char *take_options(char **words) {
    for (; *words; words++) {
        if (strcmp(*words, "-gpu") == 0)
            on_gpu = true;
        else if (!words[1] || !take_value(words[0], words[1]))
            return *words;
        else
            words++;
    }
    if (!read_type(type_name))
        return type_name;
    return folder ? NULL : "no -data";
}

static char *symmetric(size_t bytes) {
    char *made = shmemx_malloc(on_gpu ? SHMEMX_SPACE_DEVICE : SHMEMX_SPACE_HOST, bytes);
    if (!made)
        give_up("no symmetric memory", weft_last_error());
    return made;
}

static void open_memory(void) {
    size_t bytes = block_bytes_of(cases - 1);
    block = symmetric(bytes);
    gathered = symmetric(bytes * (size_t)npes);
    image = malloc(bytes * (size_t)npes);
    if (!image)
        give_up("no memory", "use fewer -cases");
    if (on_gpu)
        stream = NULL; /* CUDA's default stream */
}

int main(int argc, char **argv) {
    shmem_init();
    me = shmem_my_pe(), npes = shmem_n_pes();
    const char *wrong = take_options(argv + (argc > 0));
    if (wrong) {
        if (me == 0)
            fprintf(stderr,
                    "allgather: %s: options are -data FOLDER, -type int32_t, float16_t or "
                    "bfloat16_t, -cases 1 to %d, -times 1 to %d, and -gpu\n",
                    wrong, CASES_MAX, TIMES_MAX);
        shmem_global_exit(2);
    }
    open_memory();
    if (me == 0)
        printf("%d PEs, %s, %s memory\n%10s  %12s  %15s  %15s\n", npes, type_name,
               on_gpu ? "GPU" : "host", "elements", "result bytes", "time", "bandwidth");
    for (long number = 0; number < cases; number++)
        run_case(number);
    shmem_finalize();
    return 0;
}
