/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole text files in memory. */
#include "file.h"
#include "error.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads any kind of file to its end, including files without a size, such as pipes. */
static char *read_all(FILE *stream, size_t *bytes) {
    char *text = NULL;
    for (size_t used = 0, room = 1 << 16;; room *= 2) {
        char *grown = realloc(text, room);
        if (!grown)
            break;
        text = grown;
        used += fread(text + used, 1, room - 1 - used, stream);
        text[used] = 0;
        *bytes = used;
        if (used < room - 1 && !ferror(stream))
            return text;
        if (ferror(stream))
            break;
    }
    free(text);
    return NULL;
}

char *file_read(const char *path, size_t *bytes) {
    FILE *stream = fopen(path, "re");
    if (!stream) {
        fail("%s: %s", path, strerror(errno));
        return NULL;
    }
    char *text = read_all(stream, bytes);
    if (!text)
        fail("%s: cannot be read: %s", path, strerror(errno));
    fclose(stream);
    return text;
}
