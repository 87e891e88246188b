/* SPDX-License-Identifier: BSD-3-Clause */
/* If both are set, the standard's names take precedence over the deprecated SMA_ ones. */
#include "base/env.h"
#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/size.h"

#define PRESET(kind, field, name, old, preset, meaning) .field = (preset),
struct weft_env weft_env = {WEFT_ENV(PRESET)};
#undef PRESET

/* Returns the value in force, or NULL if neither name is set; `origin` receives the name that was
 * set. */
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

/* Like strtold, but the decimal point is "." in every locale of the program. */
static long double env_parse_number(const char *text, char **end) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return strtold(text, end);
    long double number = strtold_l(text, end, plain);
    freelocale(plain);
    return number;
}

int weft_env_parse_size(const char *text, size_t *bytes) {
    while (isspace((unsigned char)*text))
        text++;
    if (*text == '+')
        text++;
    if (!isdigit((unsigned char)*text) && *text != '.')
        return -EINVAL; /* rejects a minus sign, "inf" and "nan" */
    char *end;
    long double number = env_parse_number(text, &end);
    if (end == text)
        return -EINVAL;
    int shift = env_suffix_shift(*end);
    if (*end && !shift)
        return -EINVAL;
    number *= (long double)((uint64_t)1 << shift);
    if (!(number < (long double)SIZE_MAX))
        return -EINVAL;
    *bytes = (size_t)number;
    *bytes += (long double)*bytes < number; /* rounds a fraction of a byte up */
    return 0;
}

static int env_read_flag(const char *name, const char *old, bool *flag) {
    const char *origin;
    if (env_find(name, old, &origin))
        *flag = true;
    return 0;
}

static int env_read_size(const char *name, const char *old, size_t *size) {
    const char *origin, *text = env_find(name, old, &origin);
    if (!text || weft_env_parse_size(text, size) == 0)
        return 0;
    weft_log("%s is '%s', which is not a size: set it to a number from 0, with an optional k, m, g "
             "or t (powers of 1024), such as 64m or 1.5g",
             origin, text);
    return -EINVAL;
}

static int env_read_count(const char *name, const char *old, int *count) {
    const char *origin, *text = env_find(name, old, &origin);
    char *end;
    if (!text)
        return 0;
    long number = strtol(text, &end, 10);
    if (isdigit((unsigned char)*text) && *end == '\0' && number >= 1 &&
        number <= WEFT_ENV_COUNT_MAX) {
        *count = (int)number;
        return 0;
    }
    weft_log("%s is '%s', which is not a number: set it to a whole number from 1 to %d", origin,
             text, WEFT_ENV_COUNT_MAX);
    return -EINVAL;
}

/* Accepts up to three years. */
static int env_read_seconds(const char *name, const char *old, double *seconds) {
    const char *origin, *text = env_find(name, old, &origin);
    char *end;
    if (!text)
        return 0;
    long double number = env_parse_number(text, &end);
    if (end != text && *end == '\0' && number >= 0 && number <= 1e8L) {
        *seconds = (double)number;
        return 0;
    }
    weft_log(
        "%s is '%s', which is not a time: set it to a number of seconds from 0, such as 30 or 0.5",
        origin, text);
    return -EINVAL;
}

static int env_read_text(const char *name, const char *old, const char **text) {
    const char *origin, *found = env_find(name, old, &origin);
    if (found)
        *text = found;
    return 0;
}

int weft_env_read(void) {
    int error = 0;
#define READ(kind, field, name, old, preset, meaning) \
    weft_env.field = (preset);                        \
    if (error == 0)                                   \
        error = env_read_##kind(name, old, &weft_env.field);
    WEFT_ENV(READ)
#undef READ
    return error;
}

/* Writes a setting's value for a person. */
static void env_show_flag(char *text, size_t bytes, bool flag) {
    snprintf(text, bytes, "%s", flag ? "on" : "off");
}

static void env_show_size(char *text, size_t bytes, size_t size) {
    snprintf(text, bytes, "%s", weft_size(size).text);
}

static void env_show_count(char *text, size_t bytes, int count) {
    snprintf(text, bytes, "%d", count);
}

static void env_show_seconds(char *text, size_t bytes, double seconds) {
    snprintf(text, bytes, "%g s", seconds);
}

static void env_show_text(char *text, size_t bytes, const char *value) {
    snprintf(text, bytes, "%s", value);
}

static void env_print_one(const char *name, const char *old, const char *value, const char *preset,
                          const char *meaning) {
    const char *origin, *text = env_find(name, old, &origin);
    if (text)
        printf("  %-21s %s (%s=%s; default: %s)\n", name, value, origin, text, preset);
    else
        printf("  %-21s %s (default)\n", name, value);
    if (old && getenv(name) && getenv(old))
        printf("      %s=%s has no effect beside it\n", old, getenv(old));
    printf("      %s%s%s\n", meaning, old ? "; deprecated name: " : "", old ? old : "");
}

void weft_env_print(void) {
    char value[32], preset_value[32];
    printf("environment\n");
#define PRINT(kind, field, name, old, preset, meaning)          \
    env_show_##kind(value, sizeof value, weft_env.field);       \
    env_show_##kind(preset_value, sizeof preset_value, preset); \
    env_print_one(name, old, value, preset_value, meaning);
    WEFT_ENV(PRINT)
#undef PRINT
}
