/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: reserved address space can be neither read nor written and is not part of a core
 * file, so that tools that read all memory of a process skip it. Granted heap memory is accessible
 * on all PEs, and part of the core file of its own PE. PEs: 1 2 3 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tap.h"

#define MIB ((size_t)1 << 20)

/* Bytes of the mappings of one memfd: all, the accessible ones, and those in a core file. */
struct mapped {
    size_t all, accessible, dumped;
};

static struct mapped mapped_of(const char *name) {
    struct mapped sum = {0};
    char line[512], access[8];
    unsigned long begin, end;
    size_t bytes = 0; /* of the mapping whose lines are being read; 0 if it is another memfd's */
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, access) == 3) {
            bytes = strstr(line, name) ? end - begin : 0;
            sum.all += bytes;
            sum.accessible += strncmp(access, "---", 3) != 0 ? bytes : 0;
        } else if (strncmp(line, "VmFlags:", 8) == 0 && !strstr(line, " dd")) {
            sum.dumped += bytes;
        }
    }
    if (maps)
        fclose(maps);
    return sum;
}

static void is_reserved(size_t npes) {
    tap_case("little of the reserve is accessible, and less of it in a core file");
    shmem_free(shmem_malloc(4096));
    struct mapped heap = mapped_of("weft-heap"), scratch = mapped_of("weft-scratch");
    EXPECT(heap.all >= npes * 16 * MIB, "%zu bytes", heap.all);
    EXPECT(heap.accessible <= npes * 8 * MIB, "%zu bytes of the heaps are accessible",
           heap.accessible);
    EXPECT(heap.dumped <= 8 * MIB, "%zu bytes of the heaps are dumped", heap.dumped);
    EXPECT(scratch.accessible <= npes * 64 * MIB, "%zu bytes of the scratch are accessible",
           scratch.accessible);
    EXPECT(scratch.dumped == 0, "%zu bytes of the scratch are dumped", scratch.dumped);
}

static void is_granted(int me, int npes) {
    tap_case("what is granted is accessible on all PEs, and the own part is in the core file");
    size_t bytes = 40 * MIB;
    char *object = shmem_malloc(bytes);
    EXPECT(object != NULL, "no memory");
    for (int pe = 0; object && pe < npes; pe++) {
        char *theirs = shmem_ptr(object, pe);
        for (size_t at = 0; theirs && at < bytes; at += MIB)
            theirs[at + (size_t)me] = 1;
    }
    shmem_barrier_all();
    struct mapped heap = mapped_of("weft-heap");
    EXPECT(heap.accessible >= (size_t)npes * bytes, "%zu bytes of the heaps are accessible",
           heap.accessible);
    EXPECT(heap.dumped >= bytes && heap.dumped < 2 * bytes + 8 * MIB,
           "%zu bytes of the heaps are dumped", heap.dumped);
    shmem_free(object);
}

int main(void) {
    shmem_init();
    tap_start(shmem_my_pe());
    if (getenv("WEFT_PRETEND_HOSTS")) {
        printf("1..0 # SKIP peers are far\n");
        shmem_finalize();
        return 0;
    }
    is_reserved((size_t)shmem_n_pes());
    is_granted(shmem_my_pe(), shmem_n_pes());
    shmem_finalize();
    return tap_finish();
}
