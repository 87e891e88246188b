/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: inside kernels, tiles that are put by bulk copies have arrived when the signal after
 * them has, as seen by bulk copies that load them; and elements added by bulk copies are the sum of
 * all members' elements, for five types. PEs: 1 2 3 4 */
#include "gpu/handles.h"
#include "gpu/own_memory.h"
#include "gpu/device_bulk/task.h"

enum { BLOCKS = 2, CALLS = 3 };

static struct bulk_rounds rounds; /* its arrays are symmetric */
static char *sum;                 /* so is this */

static void exchange(const weft_device_team *t) {
    size_t places = (size_t)BLOCKS * (size_t)t->n;
    handles_zero(rounds.sig, places * sizeof *rounds.sig);
    handles_zero(rounds.acks, places * sizeof *rounds.acks);
    rounds.seed = (uint32_t)gpu_draw((uint64_t)t->n, UINT32_MAX);
    rounds.count = (uint32_t)gpu_rounds_together(2000, 12);
    rounds.found = handles_found;
    handles_sync();
    for (uint32_t call = 0; call < CALLS; call++) {
        rounds.first = call * rounds.count;
        handles_launch("bulk_exchange", BLOCKS, BULK_THREADS, t, &rounds);
    }
    handles_expect(t, "tiles");
    handles_sync();
}

/* --- Sums ------------------------------------------------------------------------------------- */

static const unsigned sizes[BULK_TYPES] = {4, 2, 2, 4, 8};

/* A small whole number, which all types hold exactly, and sums of a few. */
static int number_of(int type, int member, unsigned i) {
    return (int)gpu_draw((uint64_t)(type * 64 + member) << 32 | i, 31) - (type < BULK_U32 ? 15 : 0);
}

static uint64_t bits_of(int type, int number) {
    float value = (float)number;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type == BULK_F32)
        return bits;
    if (type == BULK_BF16)
        return bits >> 16;
    if (type != BULK_F16)
        return (uint64_t)number;
    if (number == 0)
        return 0;
    return (bits >> 31) << 15 | ((bits >> 23 & 255) - 127 + 15) << 10 | (bits >> 13 & 1023);
}

static void fill(void *to, int type, int from, int members) {
    for (unsigned i = 0; i < BULK_TILE / sizes[type]; i++) {
        int number = 0;
        for (int m = from; m < from + members; m++)
            number += number_of(type, m, i);
        uint64_t bits = bits_of(type, number);
        memcpy((char *)to + i * sizes[type], &bits, sizes[type]);
    }
}

static void add(const weft_device_team *t) {
    static char data[BULK_TILE];
    void *own = own_memory(BULK_TILE);
    for (int type = 0; type < BULK_TYPES; type++) {
        fill(data, type, t->me, 1);
        gpu_write(own, data, BULK_TILE);
        handles_zero(sum, BULK_TILE);
        handles_sync();
        handles_launch("bulk_sum", 1, BULK_THREADS, t, &sum, &own, &type);
        handles_sync();
        fill(data, type, 0, t->n);
        gpu_expect(sum, data, BULK_TILE, "type %d of %d members", type, t->n);
    }
}

int main(void) {
    shmem_init();
    handles_start();
    int major = 0;
    GPU(cuDeviceGetAttribute(&major, WEFT_CU_DEVICE_CAPABILITY_MAJOR, gpu_device));
    if (major < 9 && !gpu_is_pretended())
        gpu_skip("GPUs of this kind have no bulk copies");
    size_t places = (size_t)BLOCKS * (size_t)shmem_n_pes();
    rounds.landing = handles_malloc(places * BULK_TILE);
    rounds.sig = handles_malloc(places * sizeof *rounds.sig);
    rounds.acks = handles_malloc(places * sizeof *rounds.acks);
    sum = handles_malloc(BULK_TILE);
    tap_case("tiles that are put are there for who loads them");
    handles_for_each(exchange);
    tap_case("sums are those of all members");
    handles_for_each(add);
    return handles_finish();
}
