/* SPDX-License-Identifier: BSD-3-Clause */
/* All-gathers of growing blocks: every PE receives the blocks of all PEs, by weft_all_gather, in
 * host memory or on a CUDA stream. data_gen.py has made the blocks, verify.py compares the results;
 * only PE 0 reads and writes files, so that other hosts need no copy of them.
 *
 *   examples/allgather/run.sh -ranks 2 [-hosts a,b] [-type int32_t] [-cases 14] [-times 20] [-gpu]
 */
#include "../transfer.h"

enum { CASES_MAX = 24, TIMES_MAX = 10000 };

static const char *folder;
static const char *type_name = "int32_t";
static long cases = 14, times = 20;
static weft_dtype dtype;
static size_t nelems; /* of a block of this case */

/* Symmetric: this PE's block, and the blocks of all PEs. */
static char *block, *gathered;
static char *image; /* as large as `gathered`, in this process's own memory */

/* --- Files: PE 0 passes blocks to all PEs, and gets their results ------------------------------
 */

static size_t elements_of(long number) {
    return (size_t)16 << number;
}

static size_t block_bytes_of(long number) {
    return elements_of(number) * weft_dtype_bytes(dtype);
}

/* Returns FOLDER/case_NUMBER/WHAT_PE.bin, until the next call. */
static const char *path_of(long number, const char *what, int pe) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/case_%ld/%s_%d.bin", folder, number, what, pe);
    return path;
}

static void inputs_read(long number) {
    size_t bytes = block_bytes_of(number);
    for (int pe = 0; pe < npes; pe++) {
        file_read(path_of(number, "input", pe), image, bytes);
        shmem_putmem(block, image, bytes, pe);
    }
}

static void outputs_write(long number) {
    size_t bytes = block_bytes_of(number) * (size_t)npes;
    for (int pe = 0; pe < npes; pe++) {
        shmem_getmem(image, gathered, bytes, pe);
        file_write(path_of(number, "output", pe), image, bytes);
    }
}

/* --- The all-gather, and its time --------------------------------------------------------------
 */

static void all_gather(void) {
    require(weft_all_gather(SHMEM_TEAM_WORLD, gathered, block, nelems, dtype, stream));
}

static void print_case(size_t bytes, double us) {
    printf("%10zu  %12zu  %12.2f us  %10.3f GB/s\n", nelems, bytes, us, 1e-3 * (double)bytes / us);
}

/* The results are cleared before, so that every byte of them is of these calls. */
static void run_case(long number) {
    size_t bytes = block_bytes_of(number) * (size_t)npes;
    memset(image, 0xff, bytes);
    shmem_putmem(gathered, image, bytes, me);
    if (me == 0)
        inputs_read(number);
    shmem_barrier_all(); /* all PEs have their blocks */
    nelems = elements_of(number);
    double us = mean_us(all_gather, times);
    shmem_barrier_all(); /* all PEs have their results */
    if (me == 0) {
        outputs_write(number);
        print_case(bytes, us);
    }
    shmem_barrier_all(); /* PE 0 has read all results */
}

/* --- Options -----------------------------------------------------------------------------------
 */

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
        return read_number(value, 1, CASES_MAX, &cases);
    if (strcmp(name, "-times") == 0)
        return read_number(value, 1, TIMES_MAX, &times);
    if (strcmp(name, "-data") == 0)
        folder = value;
    else if (strcmp(name, "-type") == 0)
        type_name = value;
    else
        return false;
    return true;
}

/* Returns the wrong word, or NULL. */
static const char *wrong_option(char **words) {
    const char *wrong = take_options(words, take_value);
    if (!wrong && !read_type(type_name))
        return type_name;
    return wrong || folder ? wrong : "no -data";
}

static void open_memory(void) {
    size_t bytes = block_bytes_of(cases - 1);
    block = symmetric(bytes);
    gathered = symmetric(bytes * (size_t)npes);
    image = malloc(bytes * (size_t)npes);
    if (!image)
        give_up("no memory: use fewer -cases");
}

int main(int argc, char **argv) {
    job_begin("allgather");
    const char *wrong = wrong_option(argv + (argc > 0));
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
