/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of K and V caches move between pairs of PEs by weft_kv_shuffle, in host memory or on a
 * CUDA stream. data_gen.py has made the caches, the pairs and the tables of blocks, verify.py
 * compares the results; only PE 0 reads and writes files, so that other hosts need no copy of them.
 *
 *   examples/kv_shuffle/run.sh -ranks 2 [-hosts a,b] [-blocks 64] [-heads 8] [-page-size 16]
 *                              [-head-dim 128] [-times 20] [-gpu]
 */
#include "../transfer.h"

enum { ELEMENT_BYTES = 2, CACHES = 2 };

static struct {
    const char *name;
    long largest, value;
} options[] = {{"-blocks", 65536, 64},
               {"-heads", 128, 8},
               {"-page-size", 1024, 16},
               {"-head-dim", 512, 128},
               {"-times", 10000, 20}};
enum { BLOCKS, HEADS, PAGE_SIZE, HEAD_DIM, TIMES, OPTIONS };

static const char *folder;

/* Symmetric: the caches, and the arguments that differ between PEs. With -gpu all but nblocks are
 * in GPU memory. */
static const char *const cache_names[CACHES] = {"k", "v"};
static void *cache_arrays[CACHES];
static weft_kv_caches caches = {cache_arrays, CACHES, 0, 0};
static int32_t *peer_and_role;
static int64_t *from_blocks, *to_blocks; /* each has room for all blocks of a cache */
static int64_t nblocks;

static char *image; /* has room for any file, in this process's own memory */

/* --- Files: PE 0 passes caches and tables to all PEs, and gets their results -------------------
 */

static size_t cache_bytes(void) {
    return caches.blocks * caches.block_bytes;
}

static size_t table_bytes(void) {
    return caches.blocks * sizeof(int64_t);
}

/* Returns FOLDER/NAME_WHAT_PE.bin, or FOLDER/WHAT_PE.bin if there is no name, until the next call.
 */
static const char *path_of(const char *name, const char *what, int pe) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s%s%s_%d.bin", folder, name, *name ? "_" : "", what, pe);
    return path;
}

/* Copies a file of this size to `image` and to dest on the PE. */
static void input_pass(void *dest, size_t bytes, const char *name, const char *what, int pe) {
    file_read(path_of(name, what, pe), image, bytes);
    shmem_putmem(dest, image, bytes, pe);
}

/* Returns the number of blocks that the PE sends. */
static size_t tables_pass(int pe) {
    int32_t pair[2];
    int64_t count;
    input_pass(peer_and_role, sizeof pair, "", "pair", pe);
    memcpy(pair, image, sizeof pair);
    input_pass(&nblocks, sizeof count, "", "nblocks", pe);
    memcpy(&count, image, sizeof count);
    if (count < 0 || (size_t)count > caches.blocks)
        give_up("%s: its number is wrong: make it with data_gen.py and the same options",
                path_of("", "nblocks", pe));
    input_pass(from_blocks, (size_t)count * sizeof count, "", "from", pe);
    input_pass(to_blocks, (size_t)count * sizeof count, "", "to", pe);
    if (count > 0)
        printf("PE %d sends %lld blocks of each cache to PE %d\n", pe, (long long)count, pair[0]);
    return (size_t)count;
}

/* Returns the number of blocks that all PEs send. */
static size_t inputs_read(void) {
    size_t sent = 0;
    for (int pe = 0; pe < npes; pe++) {
        for (int i = 0; i < CACHES; i++)
            input_pass(cache_arrays[i], cache_bytes(), cache_names[i], "input", pe);
        sent += tables_pass(pe);
    }
    return sent;
}

static void outputs_write(void) {
    for (int pe = 0; pe < npes; pe++)
        for (int i = 0; i < CACHES; i++) {
            shmem_getmem(image, cache_arrays[i], cache_bytes(), pe);
            file_write(path_of(cache_names[i], "output", pe), image, cache_bytes());
        }
}

/* --- The shuffle, and its time -----------------------------------------------------------------
 */

/* Senders keep their blocks, so every call copies the same bytes to the same places. */
static void shuffle(void) {
    require(weft_kv_shuffle(SHMEM_TEAM_WORLD, &caches, peer_and_role, from_blocks, to_blocks,
                            (size_t)nblocks, stream));
}

static void run(void) {
    size_t sent = me == 0 ? inputs_read() : 0;
    shmem_barrier_all(); /* all PEs have their inputs */
    double us = mean_us(shuffle, options[TIMES].value);
    shmem_barrier_all(); /* all PEs have their results */
    if (me == 0) {
        size_t bytes = CACHES * sent * caches.block_bytes;
        outputs_write();
        printf("%12s  %15s  %15s\n%12zu  %12.2f us  %10.3f GB/s\n", "bytes", "time", "bandwidth",
               bytes, us, 1e-3 * (double)bytes / us);
    }
    shmem_barrier_all(); /* PE 0 has read all results */
}

/* --- Options -----------------------------------------------------------------------------------
 */

static bool take_value(const char *name, const char *value) {
    for (int i = 0; i < OPTIONS; i++)
        if (strcmp(name, options[i].name) == 0)
            return read_number(value, 1, options[i].largest, &options[i].value);
    if (strcmp(name, "-data") != 0)
        return false;
    folder = value;
    return true;
}

static void print_usage(const char *wrong) {
    fprintf(stderr, "kv_shuffle: %s: options are -data FOLDER, ", wrong);
    for (int i = 0; i < OPTIONS; i++)
        fprintf(stderr, "%s 1 to %ld, ", options[i].name, options[i].largest);
    fprintf(stderr, "and -gpu\n");
}

static void open_memory(void) {
    caches.blocks = (size_t)options[BLOCKS].value;
    caches.block_bytes = (size_t)options[HEADS].value * (size_t)options[PAGE_SIZE].value *
                         (size_t)options[HEAD_DIM].value * ELEMENT_BYTES;
    for (int i = 0; i < CACHES; i++)
        cache_arrays[i] = symmetric(cache_bytes());
    peer_and_role = symmetric(2 * sizeof *peer_and_role);
    from_blocks = symmetric(table_bytes());
    to_blocks = symmetric(table_bytes());
    image = malloc(cache_bytes() + table_bytes());
    if (!image)
        give_up("no memory: use fewer -blocks");
}

int main(int argc, char **argv) {
    job_begin("kv_shuffle");
    const char *wrong = take_options(argv + (argc > 0), take_value);
    if (!wrong && !folder)
        wrong = "no -data";
    if (wrong) {
        if (me == 0)
            print_usage(wrong);
        shmem_global_exit(2);
    }
    open_memory();
    if (me == 0)
        printf("%d PEs, %s memory, K and V caches of %zu blocks of %zu bytes\n", npes,
               on_gpu ? "GPU" : "host", caches.blocks, caches.block_bytes);
    run();
    shmem_finalize();
    return 0;
}
