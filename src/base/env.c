/* SPDX-License-Identifier: BSD-3-Clause */
/* The standard's names win over the deprecated SMA_ ones where both are set. */
#include "base/env.h"
#include "base/log.h"
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct weft_env weft_env;

static const char *env_find(const char *name, const char *old, const char **origin) {
    const char *value = getenv(name);
    *origin = value ? name : old;
    return value ? value : old ? getenv(old) : NULL;
}

static int env_suffix_shift(char suffix) {
    static const char suffixes[] = "kmgt";
    const char *at = suffix ? strchr(suffixes, tolower((unsigned char)suffix)) : NULL;
    return at ? 10 * (int)(at - suffixes + 1) : 0;
}

int weft_env_parse_size(const char *text, size_t *bytes) {
    while (isspace((unsigned char)*text))
        text++;
    if (!isdigit((unsigned char)*text) && *text != '.')
        return -EINVAL; /* no sign, no "inf", no "nan" */
    if (text[0] == '0' && tolower((unsigned char)text[1]) == 'x')
        return -EINVAL;
    char *end;
    long double number = strtold(text, &end);
    if (end == text)
        return -EINVAL;
    int shift = env_suffix_shift(*end);
    if (*end && !shift)
        return -EINVAL;
    number *= (long double)((uint64_t)1 << shift);
    if (!(number < (long double)SIZE_MAX))
        return -EINVAL;
    *bytes = (size_t)number;
    *bytes += (long double)*bytes < number; /* what is left over rounds up */
    return 0;
}

static int env_read_flag(const char *name, const char *old, struct weft_env_flag *flag) {
    const char *origin;
    flag->set = env_find(name, old, &origin) != NULL;
    return 0;
}

static int env_read_size(const char *name, const char *old, struct weft_env_size *size) {
    const char *origin, *text = env_find(name, old, &origin);
    size->set = text != NULL;
    size->value = 0;
    if (!text || weft_env_parse_size(text, &size->value) == 0)
        return 0;
    weft_log("%s=%s is no size: a non-negative number with an optional k, m, g or t is needed",
             origin, text);
    return -EINVAL;
}

int weft_env_read(void) {
    int result = 0;
#define WEFT_ENV_READ(kind, field, name, old, meaning) \
    if (result == 0)                                   \
        result = env_read_##kind(name, old, &weft_env.field);
    WEFT_ENV(WEFT_ENV_READ)
#undef WEFT_ENV_READ
    return result;
}

static void env_print_one(const char *name, const char *old, const char *meaning) {
    const char *origin, *value = env_find(name, old, &origin);
    if (value)
        printf("  %-22s = %s (from %s)\n", name, value, origin);
    else
        printf("  %-22s   (not set)\n", name);
    printf("      %s; deprecated name: %s\n", meaning, old ? old : "none");
}

void weft_env_print(void) {
    printf("Weft environment variables:\n");
#define WEFT_ENV_PRINT(kind, field, name, old, meaning) env_print_one(name, old, meaning);
    WEFT_ENV(WEFT_ENV_PRINT)
#undef WEFT_ENV_PRINT
}
