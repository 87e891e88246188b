/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts with signal, for processors (core/rma.h) and for kernels (transport/copy.cu). */
#ifndef WEFT_BASE_SIGNAL_H
#define WEFT_BASE_SIGNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "weft/device/team.cuh"

/* A put, and a signal that announces its arrival. An empty put signals, too. */
struct weft_put_signal {
    void *dest;
    const void *source;
    size_t bytes;
    uint64_t *sig_addr, signal;
    enum weft_signal_op op;
    bool nbi;
};

#endif
