/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, get, atomics and looks at words where memory of a space (core/space.h) is on one side or
 * both.
 *
 * Errors as in core/rma.h. The blocking forms are complete when they return; what a non-blocking
 * one has begun is completed by weft_space_quiet. */
#ifndef WEFT_CORE_RMA_SPACE_H
#define WEFT_CORE_RMA_SPACE_H

#include "core/amo.h"
#include "core/rma.h"
#include "core/space.h"

struct weft_rma_space {
    /* Whether a copy between this local address and a symmetric one is this space's work, because
     * its memory is on either side. */
    bool (*concerns)(const void *symmetric, const void *local);

    /* Where `pe` keeps its copy of the symmetric [p, p + bytes), of this space or of the host's,
     * for this PE's device; NULL as weft_near. */
    void *(*near)(const void *p, size_t bytes, int pe);

    int (*put)(void *dest, const void *source, size_t bytes, int pe, bool nbi, const char *call);
    int (*get)(void *dest, const void *source, size_t bytes, int pe, bool nbi, const char *call);

    /* An element of this space, whose value the host has or wants. */
    int (*put_value)(void *dest, const void *value, size_t bytes, int pe, const char *call);
    int (*get_value)(void *value, const void *source, size_t bytes, int pe, const char *call);

    int (*put_strided)(void *dest, const void *source, const struct weft_strided *shape, int pe,
                       const char *call);
    int (*get_strided)(void *dest, const void *source, const struct weft_strided *shape, int pe,
                       const char *call);
    int (*put_signal)(void *dest, const void *source, size_t bytes, uint64_t *sig_addr,
                      uint64_t signal, enum weft_signal_op op, int pe, bool nbi, const char *call);
    int (*signal)(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op, int pe,
                  const char *call);

    /* As weft_amo, where the word is in this space, or `fetched`, or both. */
    int (*amo)(enum weft_amo_op op, size_t bytes, void *dest, const void *value, const void *cond,
               void *fetched, int pe, const char *call);

    /* Copies this PE's words that a wait or test looks at to the host: [words, words + bytes) to
     * `snapshot`. What their writers ordered before them is visible then. */
    void (*look)(void *snapshot, const void *words, size_t bytes, const char *call);
};

#endif
