/* SPDX-License-Identifier: BSD-3-Clause */
/* Every environment variable that the library obeys, in one table.
 * What the launcher passes to its PEs (boot/boot.h) is no setting and is not listed. */
#ifndef WEFT_BASE_ENV_H
#define WEFT_BASE_ENV_H

#include <stdbool.h>
#include <stddef.h>

/* X(kind, field, name, deprecated name or NULL, meaning). Kinds: flag, any value sets it, also an
 * empty one (OpenSHMEM 1.6, "Environment Variables"); size, a number with an optional suffix. */
#define WEFT_ENV(X)                                                                             \
    X(flag, version, "SHMEM_VERSION", "SMA_VERSION", "print the library's version at start-up") \
    X(flag, info, "SHMEM_INFO", "SMA_INFO", "print this list at start-up")                      \
    X(flag, debug, "SHMEM_DEBUG", "SMA_DEBUG", "say what the library decides")                  \
    X(size, symmetric_size, "SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE",                       \
      "bytes of symmetric heap committed at start-up (number, k m g t); the heap grows beyond it")

struct weft_env_flag {
    bool set;
};
struct weft_env_size {
    bool set;
    size_t value;
};

struct weft_env {
#define WEFT_ENV_FIELD(kind, field, name, old, meaning) struct weft_env_##kind field;
    WEFT_ENV(WEFT_ENV_FIELD)
#undef WEFT_ENV_FIELD
};

extern struct weft_env weft_env;

/* Reads the environment. 0, or -EINVAL, logged with name and value. */
int weft_env_read(void);

/* Writes the table with values and origins to stdout. */
void weft_env_print(void);

/* "512", "1.5g", ".5m", "20kk" (what follows the suffix is ignored): bytes, rounded up.
 * 0 or -EINVAL. */
int weft_env_parse_size(const char *text, size_t *bytes);

#endif
