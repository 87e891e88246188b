/* SPDX-License-Identifier: BSD-3-Clause */
/* Products by warpgroups, of which each thread computes its own share, and stores of the sums. */
#include "block.h"
#include "number.h"
#include "tensor.h"
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 16, ROW_BYTES = 128, UNIT = 16, BOX_ROWS = 64, BOX_COLS = 64 };

/* --- Elements --------------------------------------------------------------------------------- */

/* Returns the matrix at an address of dynamic shared memory as the proxy has it; `bytes` of it are
 * read. */
static const char *matrix_at(const struct block *block, uint64_t unit, unsigned bytes) {
    const char *at = (const char *)(uintptr_t)(unit * UNIT);
    const struct shared *shared = block_shared(block, at, bytes);
    if (!shared || shared != block->dynamic)
        thread_fault("a product of a matrix at %p, which is no dynamic shared memory", at);
    return shared->behind ? shared->behind + (at - shared->memory) : at;
}

/* Elements of a row, and their bits. The compiler works on several at a time. */
typedef float row_of_floats __attribute__((vector_size(DEPTH * sizeof(float))));
typedef uint32_t row_of_words __attribute__((vector_size(DEPTH * sizeof(uint32_t))));
typedef uint16_t row_of_halves __attribute__((vector_size(DEPTH * sizeof(uint16_t))));
typedef float four_floats __attribute__((vector_size(4 * sizeof(float))));

/* As of_f16: with the same bits of exponent and fraction a float is 2^-112 times the number. */
static void widen_f16(row_of_floats *row, const row_of_words *bits) {
    row_of_floats size = (row_of_floats)((*bits & 0x7fff) << 13) * 0x1p112f;
    row_of_words no_number = (row_of_words)((*bits & 0x7c00) == 0x7c00) & 0x7f800000;
    *row = (row_of_floats)((row_of_words)size | no_number | (*bits & 0x8000) << 16);
}

static void widen(row_of_floats *row, const row_of_words *bits, bool f16) {
    if (f16)
        widen_f16(row, bits);
    else
        *row = (row_of_floats)(*bits << 16);
}

/* Loads DEPTH elements of a row. */
static void load_row(row_of_floats *row, const char *matrix, unsigned number, bool f16) {
    uintptr_t at = (uintptr_t)matrix + number * ROW_BYTES;
    row_of_halves halves;
    memcpy(&halves, (const void *)tensor_swizzle(at), UNIT);
    memcpy((char *)&halves + UNIT, (const void *)tensor_swizzle(at + UNIT), UNIT);
    row_of_words bits = __builtin_convertvector(halves, row_of_words);
    widen(row, &bits, f16);
}

/* Loads DEPTH elements of a column and of the next one, which lie one below the other in a box. */
static void load_columns(row_of_floats columns[2], const char *matrix, unsigned number, bool f16) {
    uintptr_t top = (uintptr_t)matrix + number / BOX_COLS * BOX_ROWS * ROW_BYTES;
    row_of_words pairs;
    for (unsigned k = 0; k < DEPTH; k++) {
        uintptr_t at = top + k * ROW_BYTES + number % BOX_COLS * sizeof(uint16_t);
        memcpy((char *)&pairs + k * sizeof(uint32_t), (const void *)tensor_swizzle(at),
               sizeof(uint32_t));
    }
    row_of_words bits[2] = {pairs & 0xffff, pairs >> 16};
    widen(&columns[0], &bits[0], f16);
    widen(&columns[1], &bits[1], f16);
}

static void load_rows(row_of_floats rows[2], const char *matrix, unsigned number, bool f16) {
    load_row(&rows[0], matrix, number, f16);
    load_row(&rows[1], matrix, number + 1, f16);
}

static void add(float *sum, const row_of_floats *a, const row_of_floats *b, bool keep) {
    row_of_floats terms = *a * *b;
    four_floats quarters[DEPTH / 4];
    memcpy(quarters, &terms, sizeof terms);
    four_floats all = (quarters[0] + quarters[1]) + (quarters[2] + quarters[3]);
    *sum = (keep ? *sum : 0) + ((all[0] + all[1]) + (all[2] + all[3]));
}

static void multiply(const struct thread *thread, const struct product *p) {
    unsigned number = (unsigned)thread_number(thread) % WARPGROUP;
    unsigned row = number / LANES * 16 + number % LANES / 4, count = 2 * (unsigned)p->nsums;
    unsigned boxes = ((count - 1) / BOX_COLS * BOX_ROWS + DEPTH) * ROW_BYTES;
    unsigned columns = (count - 1) * ROW_BYTES + UNIT;
    const char *a = matrix_at(thread->block, p->a, 63 * ROW_BYTES + UNIT);
    const char *b = matrix_at(thread->block, p->b, p->by_rows ? boxes : columns);
    row_of_floats above, below, cols[2];
    load_row(&above, a, row, p->f16);
    load_row(&below, a, row + 8, p->f16);
    for (unsigned i = 0; i < (unsigned)p->nsums; i += 4) {
        (p->by_rows ? load_columns : load_rows)(cols, b, 2 * i + number % 4 * 2, p->f16);
        for (unsigned k = 0; k < 2; k++) {
            add(&p->sums[i + k], &above, &cols[k], p->keep);
            add(&p->sums[i + 2 + k], &below, &cols[k], p->keep);
        }
    }
}

/* --- Products --------------------------------------------------------------------------------- */

void kernel_product(float *sums, int nsums, uint64_t a, uint64_t b, bool keep, bool f16,
                    bool by_rows) {
    struct thread *thread = thread_self();
    struct product product = {sums, nsums, keep, a, b, f16, by_rows, 0};
    if (!kernel_is_weak) {
        multiply(thread, &product);
        return;
    }
    thread_before_access(thread);
    if (thread->nproducts == thread->products_room) {
        thread->products_room = thread->products_room ? 2 * thread->products_room : 8;
        thread->products =
            realloc(thread->products, thread->products_room * sizeof *thread->products);
    }
    thread->products[thread->nproducts++] = product;
}

void kernel_product_commit(void) {
    struct thread *thread = thread_self();
    if (!kernel_is_weak)
        return;
    thread->product_groups++;
    for (unsigned i = 0; i < thread->nproducts; i++)
        if (thread->products[i].group == 0)
            thread->products[i].group = thread->product_groups;
}

/* Computes a thread's share of all groups except the newest ones. */
static void complete(struct thread *thread, unsigned newest) {
    unsigned left = 0;
    for (unsigned i = 0; i < thread->nproducts; i++) {
        struct product *product = &thread->products[i];
        if (product->group != 0 && product->group + newest <= thread->product_groups)
            multiply(thread, product);
        else
            thread->products[left++] = *product;
    }
    thread->nproducts = left;
}

/* A product is complete for all threads of the warpgroup at once, when all have begun it. */
void kernel_product_wait(unsigned newest) {
    struct thread *thread = thread_self();
    unsigned first = (unsigned)thread_number(thread) / WARPGROUP * WARPGROUP;
    kernel_warpgroup_meet();
    if (!kernel_is_weak)
        return;
    thread_before_access(thread);
    for (unsigned i = 0; i < WARPGROUP; i++)
        complete(&thread->block->threads[first + i], newest);
}

/* --- Stores ----------------------------------------------------------------------------------- */

/* Notes that the thread has written a word of shared memory, which the proxy has after a fence. */
static void note_written(struct thread *thread, uint32_t *word) {
    if (thread->nwritten == thread->written_room) {
        thread->written_room = thread->written_room ? 2 * thread->written_room : 64;
        thread->written = realloc(thread->written, thread->written_room * sizeof *thread->written);
    }
    thread->written[thread->nwritten++] = word;
}

void kernel_matrix_store(void *row, const uint32_t *elements, unsigned count) {
    struct thread *thread = thread_self();
    unsigned lane = (unsigned)thread_number(thread) % LANES;
    uint32_t lanes;
    if (kernel_is_weak)
        thread_before_access(thread);
    const uint64_t *rows = kernel_warp_meet((uintptr_t)row, &lanes);
    for (unsigned i = 0; i < count; i++) {
        char *at = (char *)(uintptr_t)rows[8 * i + lane / 4];
        if (lanes != UINT32_MAX || (uintptr_t)at % UNIT != 0 ||
            block_shared(thread->block, at, UNIT) != thread->block->dynamic)
            thread_fault("a store of matrices by lanes %x, with a row at %p", lanes, (void *)at);
        uint32_t *word = (uint32_t *)at + lane % 4;
        *word = elements[i];
        if (kernel_is_weak)
            note_written(thread, word);
    }
}

uint32_t kernel_pack(float first, float second, bool f16) {
    return f16 ? to_f16(first) | (uint32_t)to_f16(second) << 16
               : to_bf16(first) | (uint32_t)to_bf16(second) << 16;
}
