/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct name {
    const char *name;
    size_t offset;
} names[] = {
#define SETTING(name, preset, meaning) {#name, offsetof(struct settings, name)},
    FAKE_ENGINE_SETTINGS(SETTING)
#undef SETTING
};

static void fail(const char *text) {
    fprintf(stderr, "fake engine: FAKE_ENGINE has \"%s\", which is no setting; there are pe", text);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fprintf(stderr, ", %s", names[i].name);
    fputc('\n', stderr);
    abort();
}

static uint64_t *find(struct settings *settings, const char *name) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i].name) == 0)
            return (uint64_t *)(void *)((char *)settings + names[i].offset);
    return NULL;
}

/* Reads one setting, name=number. Returns false if the rest of the group is for another PE. */
static bool read_one(struct settings *settings, char *text, int pe) {
    char *equals = strchr(text, '='), *end;
    if (!equals)
        fail(text);
    uint64_t number = strtoull(equals + 1, &end, 0);
    if (end == equals + 1 || *end)
        fail(text);
    *equals = '\0';
    if (strcmp(text, "pe") == 0)
        return number == (uint64_t)pe;
    uint64_t *setting = find(settings, text);
    if (!setting)
        fail(text);
    *setting = number;
    return true;
}

void settings_read(struct settings *settings, int pe) {
    *settings = (struct settings){
#define SETTING(name, preset, meaning) .name = (preset),
        FAKE_ENGINE_SETTINGS(SETTING)
#undef SETTING
    };
    const char *given = getenv("FAKE_ENGINE");
    char text[1024], *groups, *rest = text;
    snprintf(text, sizeof text, "%s", given ? given : "");
    while ((groups = strsep(&rest, ";")) != NULL)
        for (char *one; (one = strsep(&groups, ", ")) != NULL;)
            if (*one && !read_one(settings, one, pe))
                break;
}
