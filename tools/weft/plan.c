/* SPDX-License-Identifier: BSD-3-Clause */
/* `weft info --plan M N K`: how GPUs multiply a shape of bf16 or f16, as far as this machine knows.
 * Needs no GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/size.h"
#include "command.h"
#include "fused/choice.h"
#include "fused/hopper_task.h"
#include "fused/library.h"
#include "fused/plan.h"

enum { H200_SMS = 132 };

/* C is m x n. */
struct shape {
    size_t m, n, k;
    int lines; /* that were printed */
};

static void print_tiles(const struct shape *shape, bool transposed) {
    size_t clusters = H200_SMS / WEFT_HOPPER_CLUSTER;
    unsigned width = weft_plan_width(shape->m, shape->n, transposed, H200_SMS);
    size_t tiles = weft_steps_up(shape->m, WEFT_HOPPER_TILE_ROWS) * weft_steps_up(shape->n, width);
    printf("  %-13s %zu tiles of %d x %u, in %zu rounds of %zu, b by %s\n", "Weft's kernel", tiles,
           WEFT_HOPPER_TILE_ROWS, width, weft_steps_up(tiles, clusters), clusters,
           weft_memo_order(transposed));
}

/* Returns whether a remark is of a product or a sum of this shape, or of a part of its A. */
static bool is_of_shape(const struct shape *shape, const char *remark) {
    size_t rows, cols;
    char text[80];
    int n;
    if (sscanf(remark, "%zu x %zu, all-gather of %d", &rows, &cols, &n) == 3)
        return rows * (size_t)n == shape->m && cols == shape->k;
    snprintf(text, sizeof text, "%zu x %zu x %zu ", shape->m, shape->n, shape->k);
    if (strncmp(remark, text, strlen(text)) == 0)
        return true;
    snprintf(text, sizeof text, "%zu x %zu, ", shape->m, shape->n);
    return strncmp(remark, text, strlen(text)) == 0;
}

/* The remark of an exchange has the number of members. */
static const char *way_of(const char *remark, const uint64_t *value) {
    if (strstr(remark, " of "))
        return value[0] == WEFT_BY_KERNEL ? "kernel" : "engines";
    return weft_library_is_own(value) ? "Weft's kernel" : "cuBLASLt";
}

static void print_line(void *context, uint64_t key, const uint64_t *value, const char *remark) {
    struct shape *shape = context;
    (void)key;
    if (!is_of_shape(shape, remark))
        return;
    printf("  %-13s %s\n", way_of(remark, value), remark);
    shape->lines++;
}

static bool read_size(size_t *size, const char *word) {
    char *end;
    unsigned long long value = strtoull(word, &end, 10);
    *size = (size_t)value;
    return word[0] >= '1' && word[0] <= '9' && *end == '\0' && value <= UINT32_MAX;
}

int weft_info_plan(char **words) {
    struct shape shape = {.lines = 0};
    if (!read_size(&shape.m, words[0]) || !read_size(&shape.n, words[1]) ||
        !read_size(&shape.k, words[2])) {
        fprintf(stderr, "weft info --plan: '%s %s %s' are not three sizes from 1 on\n", words[0],
                words[1], words[2]);
        return 2;
    }
    printf("%zu x %zu x %zu, bf16 or f16, on one H100 or H200\n", shape.m, shape.n, shape.k);
    print_tiles(&shape, true);
    print_tiles(&shape, false);
    printf("kept by earlier runs, the last line of a shape holds\n");
    weft_memo_visit(print_line, &shape);
    if (shape.lines == 0)
        printf("  nothing: the first call of the shape times it\n");
    return 0;
}
