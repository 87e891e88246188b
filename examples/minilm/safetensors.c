/* SPDX-License-Identifier: BSD-3-Clause */
/* The safetensors reader. Rules of the format that are enforced here: the header is at most
 * 100 MB, names are unique, a tensor's bytes are its shape's, and the tensors fill the buffer
 * exactly (https://github.com/huggingface/safetensors, "Format"). */
#include "safetensors.h"
#include "error.h"
#include "json.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_BYTES_MAX = 100 * 1000 * 1000, TENSORS_MAX = 4096 };

/* Bytes of an element; 0 for an unknown type. */
static size_t dtype_bytes(const char *dtype) {
    static const struct {
        const char *name;
        size_t bytes;
    } dtypes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2},  {"BF16", 2},    {"I64", 8},
                  {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
                  {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtype, dtypes[i].name))
            return dtypes[i].bytes;
    return 0;
}

static bool parse_shape(struct json *json, struct tensor *tensor) {
    json_open(json, '[');
    while (json_item(json)) {
        uint64_t extent = 0;
        if (tensor->rank == TENSOR_RANK_MAX) {
            json->error = "too many dimensions";
            return false;
        }
        json_u64(json, &extent);
        tensor->shape[tensor->rank++] = extent;
    }
    return !json->error;
}

static bool parse_offsets(struct json *json, struct tensor *tensor) {
    uint64_t begin = 0, end = 0;
    json_open(json, '[');
    if (!json_item(json) || !json_u64(json, &begin) || !json_item(json) || !json_u64(json, &end) ||
        json_item(json))
        json->error = json->error ? json->error : "two offsets expected";
    tensor->begin = begin;
    tensor->end = end;
    return !json->error;
}

static bool parse_tensor(struct json *json, struct tensor *tensor) {
    char key[32];
    unsigned seen = 0;
    for (json_open(json, '{'); json_key(json, key, sizeof key);) {
        unsigned bit = !strcmp(key, "dtype")          ? 1
                       : !strcmp(key, "shape")        ? 2
                       : !strcmp(key, "data_offsets") ? 4
                                                      : 0;
        if (!bit || (seen & bit))
            json->error = "one each of dtype, shape and data_offsets expected";
        else if (bit == 1)
            json_string(json, tensor->dtype, sizeof tensor->dtype);
        else
            bit == 2 ? parse_shape(json, tensor) : parse_offsets(json, tensor);
        seen |= bit;
    }
    if (!json->error && seen != 7)
        json->error = "dtype, shape and data_offsets expected";
    return !json->error;
}

static struct tensor *append(struct safetensors *file) {
    if ((file->count & (file->count - 1)) == 0) { /* full at every power of two */
        size_t room = file->count ? 2 * file->count : 1;
        struct tensor *grown = realloc(file->tensors, room * sizeof *grown);
        if (!grown)
            return NULL;
        file->tensors = grown;
    }
    file->tensors[file->count] = (struct tensor){.nelems = 1};
    return &file->tensors[file->count++];
}

static int parse_header(struct safetensors *file, const char *header, size_t bytes) {
    char name[TENSOR_NAME_MAX];
    struct json json = json_over(header, bytes);
    for (json_open(&json, '{'); json_key(&json, name, sizeof name);) {
        if (!strcmp(name, "__metadata__")) {
            json_skip(&json);
            continue;
        }
        struct tensor *tensor = file->count < TENSORS_MAX ? append(file) : NULL;
        if (!tensor)
            return fail("%s: more than %zu tensors: no room", file->path, file->count);
        memcpy(tensor->name, name, sizeof name);
        if (!parse_tensor(&json, tensor))
            return fail("%s: header, tensor %s: %s", file->path, name, json.error);
    }
    if (json_finish(&json))
        return fail("%s: header, byte %td: %s", file->path, json.at - header, json.error);
    return 0;
}

static int check_tensor(const struct safetensors *file, struct tensor *tensor) {
    size_t bytes = dtype_bytes(tensor->dtype);
    if (!bytes)
        return fail("%s: tensor %s: unknown type %s", file->path, tensor->name, tensor->dtype);
    bool overflow = false;
    for (size_t i = 0; i < tensor->rank; i++)
        overflow |= __builtin_mul_overflow(tensor->nelems, tensor->shape[i], &tensor->nelems);
    overflow |= __builtin_mul_overflow(tensor->nelems, bytes, &bytes);
    if (tensor->begin > tensor->end || tensor->end > file->buffer_bytes)
        return fail("%s: tensor %s: bytes %zu to %zu of a buffer of %zu: is the file truncated?",
                    file->path, tensor->name, tensor->begin, tensor->end, file->buffer_bytes);
    if (overflow || bytes != tensor->end - tensor->begin)
        return fail("%s: tensor %s: its shape does not fit its %zu bytes", file->path, tensor->name,
                    tensor->end - tensor->begin);
    return 0;
}

static int by_offset(const void *a, const void *b) {
    const struct tensor *x = a, *y = b;
    return x->begin != y->begin ? (x->begin > y->begin) - (x->begin < y->begin)
                                : (x->end > y->end) - (x->end < y->end);
}

/* Every byte of the buffer belongs to exactly one tensor, and no name comes twice. */
static int check_layout(struct safetensors *file) {
    size_t end = 0;
    qsort(file->tensors, file->count, sizeof *file->tensors, by_offset);
    for (size_t i = 0; i < file->count; i++) {
        const struct tensor *tensor = &file->tensors[i];
        if (tensor->begin != end)
            return fail("%s: tensor %s: starts at byte %zu, not %zu where the one before it ends",
                        file->path, tensor->name, tensor->begin, end);
        end = tensor->end;
        for (size_t k = 0; k < i; k++)
            if (!strcmp(tensor->name, file->tensors[k].name))
                return fail("%s: tensor %s: comes twice", file->path, tensor->name);
    }
    if (end != file->buffer_bytes)
        return fail("%s: %zu bytes after the last tensor", file->path, file->buffer_bytes - end);
    return 0;
}

static int map_file(struct safetensors *file) {
    struct stat status;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return fail("%s: %s", file->path, strerror(error));
    }
    file->map_bytes = (size_t)status.st_size;
    void *map = file->map_bytes ? mmap(NULL, file->map_bytes, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    close(fd);
    if (map == MAP_FAILED)
        return fail("%s: cannot be mapped: %s", file->path, strerror(errno));
    file->map = map;
    return 0;
}

static int parse(struct safetensors *file) {
    uint64_t header_bytes = 0;
    if (file->map_bytes < 8)
        return fail("%s: %zu bytes are too few for a safetensors file", file->path,
                    file->map_bytes);
    for (int i = 8; i-- > 0;)
        header_bytes = header_bytes << 8 | file->map[i];
    if (header_bytes > HEADER_BYTES_MAX || header_bytes > file->map_bytes - 8)
        return fail("%s: a header of %ju bytes in a file of %zu: not safetensors, or truncated",
                    file->path, (uintmax_t)header_bytes, file->map_bytes);
    file->buffer = file->map + 8 + header_bytes;
    file->buffer_bytes = file->map_bytes - 8 - header_bytes;
    if (parse_header(file, (const char *)file->map + 8, header_bytes))
        return -1;
    for (size_t i = 0; i < file->count; i++)
        if (check_tensor(file, &file->tensors[i]))
            return -1;
    return check_layout(file);
}

int safetensors_open(struct safetensors *file, const char *path) {
    *file = (struct safetensors){.path = path};
    if (map_file(file) == 0 && parse(file) == 0)
        return 0;
    safetensors_close(file);
    return -1;
}

void safetensors_close(struct safetensors *file) {
    if (file->map)
        munmap((void *)file->map, file->map_bytes);
    free(file->tensors);
    *file = (struct safetensors){.path = file->path};
}

const struct tensor *safetensors_find(const struct safetensors *file, const char *name, size_t rows,
                                      size_t cols) {
    const struct tensor *tensor = NULL;
    for (size_t i = 0; i < file->count && !tensor; i++)
        if (!strcmp(file->tensors[i].name, name))
            tensor = &file->tensors[i];
    if (!tensor) {
        fail("%s: tensor %s is missing", file->path, name);
        return NULL;
    }
    if (tensor->rank != (cols ? 2 : 1) || (rows && tensor->shape[0] != rows) ||
        (cols && tensor->shape[1] != cols)) {
        fail("%s: tensor %s: %zu x %zu expected, has %zu dimensions, the first of %zu", file->path,
             name, rows, cols, tensor->rank, tensor->rank ? tensor->shape[0] : 0);
        return NULL;
    }
    if (strcmp(tensor->dtype, "F32") && strcmp(tensor->dtype, "F16") &&
        strcmp(tensor->dtype, "BF16")) {
        fail("%s: tensor %s: F32, F16 or BF16 expected, is %s", file->path, name, tensor->dtype);
        return NULL;
    }
    return tensor;
}

static float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float float_of_half(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7FFF;
    if (rest >= 0x7C00) /* infinity, not a number */
        return float_of_bits(sign | 0x7F800000 | (rest & 0x3FF) << 13);
    /* Shifted into place, the exponent is 112 too small; the product is exact and widens the
     * subnormal numbers too. */
    float magnitude = float_of_bits(rest << 13) * 0x1p112f;
    return sign ? -magnitude : magnitude;
}

void safetensors_read(const struct safetensors *file, const struct tensor *tensor, size_t first,
                      size_t nelems, float *dest) {
    const unsigned char *bytes = file->buffer + tensor->begin;
    if (!strcmp(tensor->dtype, "F32")) {
        memcpy(dest, bytes + 4 * first, 4 * nelems);
        return;
    }
    bool half = !strcmp(tensor->dtype, "F16");
    for (size_t i = 0; i < nelems; i++) {
        uint16_t bits;
        memcpy(&bits, bytes + 2 * (first + i), 2);
        dest[i] = half ? float_of_half(bits) : float_of_bits((uint32_t)bits << 16);
    }
}
