/* SPDX-License-Identifier: BSD-3-Clause */
/* The pulling JSON reader (RFC 8259). No byte at or beyond `end` is ever read: the text may be a
 * mapping of an untrusted file. */
#include "json.h"
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 32 };

struct json json_over(const char *bytes, size_t n) {
    return (struct json){.at = bytes, .end = bytes + n};
}

static bool fault(struct json *json, const char *what) {
    if (!json->error)
        json->error = what;
    return false;
}

/* Returns the next byte that is not white space, or 0 at the end or after a fault. */
static char peek(struct json *json) {
    while (json->at < json->end && strchr(" \t\r\n", *json->at) && *json->at)
        json->at++;
    return json->error || json->at == json->end ? 0 : *json->at;
}

static bool accept(struct json *json, char c) {
    bool found = peek(json) == c;
    json->at += found;
    return found;
}

bool json_open(struct json *json, char bracket) {
    json->fresh = true;
    return accept(json, bracket) ||
           fault(json, bracket == '{' ? "an object expected" : "an array expected");
}

/* True before a member or item. */
static bool more(struct json *json, char closing) {
    bool comma_due = !json->fresh;
    json->fresh = false;
    if (accept(json, closing))
        return false;
    return !comma_due ? !json->error : accept(json, ',') || fault(json, "a comma expected");
}

bool json_key(struct json *json, char *key, size_t size) {
    return more(json, '}') && json_string(json, key, size) &&
           (accept(json, ':') || fault(json, "a colon expected"));
}

bool json_item(struct json *json) {
    return more(json, ']');
}

static bool hex4(struct json *json, uint32_t *value) {
    *value = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit =
            json->at < json->end && *json->at ? strchr(digits, *json->at | 0x20) : NULL;
        if (!digit)
            return fault(json, "four hexadecimal digits expected");
        *value = *value << 4 | (uint32_t)(digit - digits);
        json->at++;
    }
    return true;
}

/* Returns the code point after \u, from one or two surrogates. */
static bool unicode_escape(struct json *json, uint32_t *code) {
    uint32_t low;
    if (!hex4(json, code))
        return false;
    if (*code - 0xD800 >= 0x800)
        return true;
    if (*code >= 0xDC00 || json->end - json->at < 2 || memcmp(json->at, "\\u", 2))
        return fault(json, "a lone surrogate");
    json->at += 2;
    if (!hex4(json, &low) || low - 0xDC00 >= 0x400)
        return fault(json, "a lone surrogate");
    *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
    return true;
}

static size_t utf8(uint32_t code, char out[4]) {
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(lead[n] | code);
    return n;
}

/* Decodes the characters after a backslash into at most four bytes; returns 0 for a fault. */
static size_t escape(struct json *json, char out[4]) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    uint32_t code;
    char name = json->at < json->end ? *json->at++ : 0;
    if (name == 'u')
        return unicode_escape(json, &code) ? utf8(code, out) : 0;
    const char *known = name ? strchr(names, name) : NULL;
    if (!known)
        return fault(json, "an unknown escape");
    out[0] = values[known - names];
    return 1;
}

bool json_string(struct json *json, char *dest, size_t size) {
    size_t used = 0;
    if (!accept(json, '"'))
        return fault(json, "a string expected");
    while (json->at < json->end && *json->at != '"') {
        char bytes[4] = {*json->at++};
        if ((unsigned char)bytes[0] < 0x20)
            return fault(json, "a control character in a string");
        size_t n = bytes[0] == '\\' ? escape(json, bytes) : 1;
        if (n == 0 || used + n >= size)
            return fault(json, "a string too long");
        memcpy(dest + used, bytes, n);
        used += n;
    }
    dest[used] = 0;
    return accept(json, '"') || fault(json, "a string without end");
}

bool json_u64(struct json *json, uint64_t *value) {
    const char *first = (peek(json), json->at);
    uint64_t sum = 0;
    while (!json->error && json->at < json->end && *json->at >= '0' && *json->at <= '9')
        if (__builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)(*json->at++ - '0'), &sum))
            return fault(json, "a number too large");
    if (json->at == first || (*first == '0' && json->at > first + 1))
        return fault(json, "a whole number expected");
    *value = sum;
    return true;
}

bool json_number(struct json *json, double *value) {
    char digits[64], *stop;
    size_t n = 0;
    for (peek(json); json->at < json->end && *json->at && strchr("+-.0123456789eE", *json->at);) {
        if (n == sizeof digits - 1)
            return fault(json, "a number too long");
        digits[n++] = *json->at++;
    }
    digits[n] = 0;
    *value = strtod(digits, &stop);
    return (n && !*stop && !json->error) || fault(json, "a number expected");
}

static bool skip_word(struct json *json, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(json->end - json->at) < n || memcmp(json->at, word, n))
        return fault(json, "an unknown word");
    json->at += n;
    return true;
}

static bool skip(struct json *json, int depth) {
    char text[1024];
    double number;
    char first = peek(json);
    if (depth == DEPTH_MAX)
        return fault(json, "nested too deeply");
    if (first == '{')
        for (json_open(json, '{'); json_key(json, text, sizeof text);)
            skip(json, depth + 1);
    else if (first == '[')
        for (json_open(json, '['); json_item(json);)
            skip(json, depth + 1);
    else if (first == '"')
        json_string(json, text, sizeof text);
    else if (first == 't' || first == 'f' || first == 'n')
        skip_word(json, first == 't' ? "true" : first == 'f' ? "false" : "null");
    else
        json_number(json, &number);
    return !json->error;
}

bool json_skip(struct json *json) {
    return skip(json, 0);
}

int json_finish(struct json *json) {
    peek(json);
    if (json->at < json->end)
        fault(json, "something follows the value");
    return json->error ? -1 : 0;
}
