/* SPDX-License-Identifier: BSD-3-Clause */
/* A strict pull reader for JSON: the caller requests the items that it expects, and no tree is
 * built in memory.
 *
 *     struct json json = json_over(bytes, n);
 *     for (json_open(&json, '{'); json_key(&json, key, sizeof key);)
 *         strcmp(key, "hidden_size") ? json_skip(&json) : json_u64(&json, &hidden);
 *     if (json_finish(&json)) ... json.error says what, json.at where
 *
 * The first fault sticks: every later call returns false, so that loops end and need no checks. */
#ifndef MINILM_JSON_H
#define MINILM_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
    const char *at, *end;
    const char *error; /* NULL if there is no error */
    bool fresh;        /* an object or array was just opened: no comma is due */
};

struct json json_over(const char *bytes, size_t n);

bool json_open(struct json *json, char bracket);

/* Advances to the next member or item; returns false at the closing bracket, which is consumed. */
bool json_key(struct json *json, char *key, size_t size);
bool json_item(struct json *json);

/* Reads a string, decoded to UTF-8 and terminated; a string that does not fit is a fault. */
bool json_string(struct json *json, char *dest, size_t size);
bool json_u64(struct json *json, uint64_t *value);
bool json_number(struct json *json, double *value);
bool json_skip(struct json *json);

/* Returns 0 if the text was read to its end (except white space) without a fault, otherwise -1. */
int json_finish(struct json *json);

#endif
