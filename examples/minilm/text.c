/* SPDX-License-Identifier: BSD-3-Clause */
/* Cuts a text in one pass and in place: the output (single spaces) never overtakes the input (runs
 * of white space), so a sentence is a terminated piece of the file's own bytes. */
#include "text.h"
#include "error.h"
#include "file.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    SENTENCE_LONG = 400,    /* bytes: after this many, a comma ends a sentence */
    SENTENCE_MAX = 600,     /* and after this many, any space */
    SENTENCE_WORDS_MIN = 3, /* shorter ones have no meaning */
    TITLE_MAX = 80,         /* bytes of a title */
    TITLE_INDENT_MIN = 10,  /* spaces before a centred one */
};

struct cutter {
    struct text *text;
    char *write; /* end of the output */
    char *start; /* of the sentence being written */
    const char *section;
    size_t line;       /* being read */
    size_t start_line; /* of the sentence being written */
};

static bool is_space(char c) {
    return isspace((unsigned char)c);
}

static size_t count_words(const char *words) {
    size_t count = *words != 0;
    for (; *words; words++)
        count += *words == ' ';
    return count;
}

static int append(struct text *text, struct sentence sentence) {
    if ((text->count & (text->count - 1)) == 0) { /* full at every power of two */
        size_t room = text->count ? 2 * text->count : 1;
        struct sentence *grown = realloc(text->sentences, room * sizeof *grown);
        if (!grown)
            return fail("no memory for %zu sentences", room);
        text->sentences = grown;
    }
    text->sentences[text->count++] = sentence;
    return 0;
}

/* Ends the sentence being written. */
static int cut(struct cutter *cutter) {
    char *words = cutter->start;
    *cutter->write++ = 0;
    cutter->start = cutter->write;
    if (count_words(words) < SENTENCE_WORDS_MIN)
        return 0;
    return append(cutter->text, (struct sentence){words, cutter->section, cutter->start_line});
}

/* Returns true if the word that ends before `stop` (a full stop) is an abbreviation. */
static bool abbreviates(const char *start, const char *stop) {
    static const char *const known[] = {"e.g", "i.e", "etc", "cf",   "vs",  "no",  "mr", "mrs",
                                        "ms",  "dr",  "st",  "prof", "inc", "ltd", "co", "fig"};
    const char *word = stop;
    while (word > start && !strchr(" (\"'", word[-1]))
        word--;
    size_t n = (size_t)(stop - word);
    if (n == 1 && isalpha((unsigned char)*word))
        return true; /* an initial */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (n == strlen(known[i]) && !strncasecmp(word, known[i], n))
            return true;
    return false;
}

/* Returns true if a sentence ends at `end`, where `next` follows after white space. */
static bool sentence_ends(const char *start, const char *end, char next) {
    while (end > start && strchr("\"')]", end[-1]))
        end--;
    if (end == start || !strchr(".?!", end[-1]) || islower((unsigned char)next))
        return false;
    return end[-1] != '.' || !abbreviates(start, end - 1);
}

/* Returns true if the sentence is to be cut before `next`. */
static bool cut_due(const struct cutter *cutter, char next) {
    size_t bytes = (size_t)(cutter->write - cutter->start);
    return bytes && (sentence_ends(cutter->start, cutter->write, next) || bytes > SENTENCE_MAX ||
                     (bytes > SENTENCE_LONG && strchr(";:,", cutter->write[-1])));
}

/* Skips white space; returns true if that ends the paragraph (a blank line, the end). */
static bool skip_space(struct cutter *cutter, const char **read) {
    size_t lines = 0;
    for (; is_space(**read); ++*read)
        lines += **read == '\n';
    cutter->line += lines;
    return lines > 1 || !**read;
}

/* A list's mark: "- ", "* ", "a) ", "12) "; its length, or 0. */
static size_t list_mark(const char *line) {
    if (*line && strchr("-*", *line) && line[1] == ' ')
        return 2;
    size_t n = strspn(line, "0123456789");
    n += n == 0 && islower((unsigned char)*line);
    return n && line[n] == ')' && line[n + 1] == ' ' ? n + 2 : 0;
}

/* Reads words until the paragraph ends, and cuts sentences. Returns the end of the paragraph. */
static const char *flow(struct cutter *cutter, const char *read, int *error) {
    cutter->start = cutter->write;
    cutter->start_line = cutter->line;
    for (bool ended = false; !ended && !*error;) {
        while (*read && !is_space(*read))
            *cutter->write++ = *read++;
        ended = skip_space(cutter, &read);
        if (ended || cut_due(cutter, *read)) {
            *error = cut(cutter);
            cutter->start_line = cutter->line;
        } else {
            *cutter->write++ = ' ';
        }
    }
    return read;
}

/* Returns the length of the title at `read`, without the line's end, or 0 for running text.
 * `indent` is the white space before it on its line. */
static size_t title_length(const char *read, size_t indent) {
    size_t n = strcspn(read, "\r\n");
    const char *below = read + n;
    while (*below == '\r' || (*below == '\n' && below[-1] != '\n'))
        below++;
    size_t blank = strspn(below, " \t\r");
    bool alone = !below[blank] || below[blank] == '\n';
    bool numbered = isdigit((unsigned char)*read) && read[strspn(read, "0123456789")] == '.';
    bool stops = n && strchr(".?!:;,\"", read[n - 1]);
    bool title = indent >= TITLE_INDENT_MIN || (alone && (numbered || !stops));
    return title && n <= TITLE_MAX ? n : 0;
}

/* Stores the title as the section of the following sentences. */
static const char *take_title(struct cutter *cutter, const char *read, size_t n) {
    memmove(cutter->write, read, n);
    cutter->section = cutter->write;
    cutter->write += n;
    read += n;
    skip_space(cutter, &read); /* first: the terminator may fall on the line's end */
    *cutter->write++ = 0;
    return read;
}

static int cut_text(struct text *text) {
    struct cutter cutter = {.text = text, .write = text->storage, .section = "", .line = 1};
    const char *read = text->storage;
    int error = 0;
    skip_space(&cutter, &read);
    while (*read && !error) {
        const char *line = read;
        while (line > cutter.write && (line[-1] == ' ' || line[-1] == '\t'))
            line--;
        size_t title = title_length(read, (size_t)(read - line));
        if (title)
            read = take_title(&cutter, read, title);
        else
            read = flow(&cutter, read + list_mark(read), &error);
    }
    return error;
}

int text_open(struct text *text, const char *path) {
    size_t bytes;
    *text = (struct text){.storage = file_read(path, &bytes)};
    if (text->storage && cut_text(text) == 0 && text->count)
        return 0;
    if (text->storage && !text->count)
        fail("%s: holds no sentence", path);
    text_close(text);
    return -1;
}

void text_close(struct text *text) {
    free(text->storage);
    free(text->sentences);
    *text = (struct text){0};
}
