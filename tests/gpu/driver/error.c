/* SPDX-License-Identifier: BSD-3-Clause */
#include "call.h"

static const struct {
    int number;
    const char *name, *text;
} errors[] = {
#define CUDA_ERROR_LINE(name, number, text) {number, #name, text},
    CUDA_ERRORS(CUDA_ERROR_LINE)
#undef CUDA_ERROR_LINE
};

int cuGetErrorName(int error, const char **name) {
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].number == error) {
            *name = errors[i].name;
            return 0;
        }
    *name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

int cuGetErrorString(int error, const char **text) {
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].number == error) {
            *text = errors[i].text;
            return 0;
        }
    *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}
