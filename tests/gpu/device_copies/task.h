/* SPDX-License-Identifier: BSD-3-Clause */
/* Structures shared by the host and the kernels of the test of copies. */
#ifndef TESTS_GPU_DEVICE_COPIES_TASK_H
#define TESTS_GPU_DEVICE_COPIES_TASK_H

#include <stdint.h>

enum copies_kind { COPY_COPY, COPY_PUT, COPY_GET, COPY_KINDS };
enum copies_scope { COPY_T, COPY_W, COPY_B, COPY_SCOPES };

/* Bytes from one offset to another, to or from a member. */
struct copies_piece {
    uint32_t to, from, bytes;
    int32_t member;
};

#endif
