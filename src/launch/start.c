/* SPDX-License-Identifier: BSD-3-Clause */
/* A table lists the items of the start text for the reader. Each item is checked when it is read,
 * then all of them together, because later code uses the numbers as indices. */
#include "launch/start.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/version.h>
#include "launch/option_table.h"

enum { NAME_MAX_BYTES = 16, HEAD_MAX = 48, KEY_DIGITS = 2 * WEFT_TLS_KEY_BYTES };

/* --- Writing --------------------------------------------------------------------------------- */

static void item_put(FILE *text, const char *name, const char *value) {
    fprintf(text, "%s %zu\n%s\n", name, strlen(value), value);
}

static void number_put(FILE *text, const char *name, int value) {
    char number[16];
    snprintf(number, sizeof number, "%d", value);
    item_put(text, name, number);
}

static void key_put(FILE *text, const unsigned char *key) {
    char digits[KEY_DIGITS + 1];
    for (int i = 0; i < WEFT_TLS_KEY_BYTES; i++)
        snprintf(digits + 2 * i, 3, "%02x", key[i]);
    item_put(text, "key", digits);
    explicit_bzero(digits, sizeof digits);
}

/* Writes the host of every PE, as "0,0,1". */
static void placement_put(FILE *text, const struct weft_start *start) {
    char *list = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&list, &bytes);
    for (int pe = 0; stream && pe < start->options.npes; pe++)
        fprintf(stream, "%s%d", pe ? "," : "", start->host_of[pe]);
    if (stream && fclose(stream) == 0)
        item_put(text, "pes", list);
    free(list);
}

static void environment_put(FILE *text, const struct weft_environment *environment) {
    for (int i = 0; i < environment->count; i++) {
        const struct weft_environment_change *change = &environment->change[i];
        if (change->name)
            fprintf(text, "set %zu\n%s=%s\n", strlen(change->name) + 1 + strlen(change->value),
                    change->name, change->value);
        else
            item_put(text, "keep", change->value);
    }
}

static void option_put(FILE *text, const struct weft_option *option) {
    char name[WEFT_OPTION_NAME_BYTES];
    const char *names = option->row->names;
    weft_option_next(&names, name);
    if (option->value)
        fprintf(text, "option %zu\n%s=%s\n", strlen(name) + 1 + strlen(option->value), name,
                option->value);
    else
        item_put(text, "option", name);
}

static void program_put(FILE *text, const struct weft_program *program) {
    number_put(text, "program", program->npes);
    item_put(text, "folder", program->folder);
    if (program->found)
        item_put(text, "found", program->found);
    for (char **word = program->argv; *word; word++)
        item_put(text, "argument", *word);
    environment_put(text, &program->environment);
}

static void start_put(FILE *text, const struct weft_start *start) {
    const struct weft_options *options = &start->options;
    item_put(text, "version", WEFT_VERSION_STRING);
    key_put(text, start->key);
    number_put(text, "host", start->host);
    for (int host = 0; host < start->nhosts; host++)
        item_put(text, "name", start->name[host]);
    placement_put(text, start);
    for (int i = 0; i < start->naddresses; i++)
        item_put(text, "address", start->address[i]);
    number_put(text, "port", start->port);
    number_put(text, "silence", start->silence_ms);
    number_put(text, "front", start->by_front);
    number_put(text, "below", start->below);
    number_put(text, "fanout", start->fan_out);
    for (int i = 0; start->below > 1 && i < start->below; i++)
        item_put(text, "called", start->called[i]);
    if (start->below > 1)
        item_put(text, "ssh", start->ssh);
    for (int i = 0; i < options->for_hosts.count; i++)
        option_put(text, &options->for_hosts.option[i]);
    environment_put(text, &options->environment);
    for (int i = 0; i < options->nprograms; i++)
        program_put(text, &options->program[i]);
}

int weft_start_write(const struct weft_start *start, char **text, size_t *bytes) {
    char *body = NULL;
    size_t body_bytes;
    FILE *stream = open_memstream(&body, &body_bytes);
    if (!stream)
        return -ENOMEM;
    start_put(stream, start);
    bool whole = !ferror(stream);
    whole = fclose(stream) == 0 && whole;
    char *all = whole ? malloc(HEAD_MAX + body_bytes) : NULL;
    if (all) {
        int head = snprintf(all, HEAD_MAX, "weft-start %u %zu\n", WEFT_TREE_LAYOUT, body_bytes);
        memcpy(all + head, body, body_bytes);
        *text = all;
        *bytes = (size_t)head + body_bytes;
    }
    if (body)
        explicit_bzero(body, whole ? body_bytes : 0);
    free(body);
    return all ? 0 : -ENOMEM;
}

/* --- Reading --------------------------------------------------------------------------------- */

typedef struct weft_start start_t;

/* Takes the value of one item. Returns 0, -EINVAL, -ENOMEM, or -EPROTO: another version of Weft. */
typedef int item_take(start_t *start, char *value);

/* Grows an array by one element; returns NULL without memory. */
static void *array_grow(void *array, int count, size_t bytes) {
    return realloc(array, ((size_t)count + 1) * bytes);
}

static int number_read(const char *text, int least, int most, int *number) {
    *number = weft_options_number(text, least, most);
    return *number < 0 ? -EINVAL : 0;
}

/* Reads comma-separated numbers. Returns how many there are, or -1 if there are more than `room` or
 * the text is invalid. */
static int numbers_read(char *text, int *numbers, int room) {
    int count = 0;
    char *rest = text, *word;
    while ((word = strsep(&rest, ",")))
        if (count == room || number_read(word, 0, INT_MAX, &numbers[count++]) != 0)
            return -1;
    return count;
}

static int take_version(start_t *start, char *value) {
    (void)start;
    return strcmp(value, WEFT_VERSION_STRING) == 0 ? 0 : -EPROTO;
}

static int take_key(start_t *start, char *value) {
    bool good = strlen(value) == KEY_DIGITS && strspn(value, "0123456789abcdef") == KEY_DIGITS;
    for (int i = 0; good && i < WEFT_TLS_KEY_BYTES; i++) {
        char digits[3] = {value[2 * i], value[2 * i + 1], '\0'};
        start->key[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    explicit_bzero(value, strlen(value));
    return good ? 0 : -EINVAL;
}

static int take_host(start_t *start, char *value) {
    return number_read(value, 0, INT_MAX, &start->host);
}

/* Appends a host name to an array. */
static int name_take(const char ***names, int *count, const char *value) {
    if (!*value || *value == '-' || strlen(value) >= WEFT_TREE_NAME_BYTES)
        return -EINVAL;
    for (const char *at = value; *at; at++)
        if (*at <= ' ' || *at > '~')
            return -EINVAL;
    const char **longer = array_grow(*names, *count, sizeof *longer);
    if (!longer)
        return -ENOMEM;
    *names = longer;
    longer[(*count)++] = value;
    return 0;
}

static int take_name(start_t *start, char *value) {
    return name_take(&start->name, &start->nhosts, value);
}

static int take_called(start_t *start, char *value) {
    return name_take(&start->called, &start->ncalled, value);
}

static int take_ssh(start_t *start, char *value) {
    start->ssh = value;
    return *value ? 0 : -EINVAL;
}

static int take_front(start_t *start, char *value) {
    int by_front, error = number_read(value, 0, 1, &by_front);
    start->by_front = by_front == 1;
    return error;
}

static int take_below(start_t *start, char *value) {
    return number_read(value, 1, WEFT_WIRE_PES_MAX, &start->below);
}

static int take_fan_out(start_t *start, char *value) {
    return number_read(value, 1, WEFT_WIRE_PES_MAX, &start->fan_out);
}

static int take_placement(start_t *start, char *value) {
    int room = 1;
    for (const char *at = value; *at; at++)
        room += *at == ',';
    if (room > WEFT_WIRE_PES_MAX)
        return -EINVAL;
    start->host_of = calloc((size_t)room, sizeof *start->host_of);
    if (!start->host_of)
        return -ENOMEM;
    start->options.npes = numbers_read(value, start->host_of, room);
    return start->options.npes == room ? 0 : -EINVAL;
}

static int take_address(start_t *start, char *value) {
    if (!*value || start->naddresses == WEFT_START_ADDRESSES_MAX)
        return -EINVAL;
    start->address[start->naddresses++] = value;
    return 0;
}

static int take_port(start_t *start, char *value) {
    return number_read(value, 1, 65535, &start->port);
}

static int take_silence(start_t *start, char *value) {
    return number_read(value, 1, INT_MAX, &start->silence_ms);
}

/* Acts on an option of the front's command line, as the front has done. */
static int take_option(start_t *start, char *value) {
    char *equals = strchr(value, '=');
    if (equals)
        *equals = '\0';
    struct weft_option_use use = {.word = value, .value = equals ? equals + 1 : NULL};
    const struct weft_option_row *row = weft_option_find(value);
    bool takes =
        row && row->scope == WEFT_OPTION_HOSTS && weft_option_arguments(row) == (equals != NULL);
    return takes && weft_option_act(&start->options, row, &use) < 0 ? 0 : -EINVAL;
}

static int take_program(start_t *start, char *value) {
    struct weft_options *options = &start->options;
    struct weft_program *programs =
        array_grow(options->program, options->nprograms, sizeof *programs);
    if (!programs)
        return -ENOMEM;
    options->program = programs;
    start->nwords = 0;
    programs[options->nprograms] = (struct weft_program){0};
    return number_read(value, 1, WEFT_WIRE_PES_MAX, &programs[options->nprograms++].npes);
}

/* Returns the program to which the next items belong, or NULL if there is none yet. */
static struct weft_program *program_now(start_t *start) {
    struct weft_options *options = &start->options;
    return options->nprograms ? &options->program[options->nprograms - 1] : NULL;
}

static int take_folder(start_t *start, char *value) {
    struct weft_program *program = program_now(start);
    if (!program || program->folder || *value != '/')
        return -EINVAL;
    program->folder = value;
    return 0;
}

static int take_found(start_t *start, char *value) {
    struct weft_program *program = program_now(start);
    if (!program || program->found || *value != '/')
        return -EINVAL;
    program->found = value;
    return 0;
}

static int take_argument(start_t *start, char *value) {
    struct weft_program *program = program_now(start);
    if (!program)
        return -EINVAL;
    char **argv = array_grow(program->argv, start->nwords + 1, sizeof *argv);
    if (!argv)
        return -ENOMEM;
    program->argv = argv;
    argv[start->nwords++] = value;
    argv[start->nwords] = NULL;
    return 0;
}

static struct weft_environment *environment_now(start_t *start) {
    struct weft_program *program = program_now(start);
    return program ? &program->environment : &start->options.environment;
}

static int take_variable(start_t *start, char *value) {
    char *equals = strchr(value, '=');
    if (!equals || equals == value)
        return -EINVAL;
    *equals = '\0';
    return weft_environment_note(environment_now(start), value, equals + 1);
}

static int take_kept(start_t *start, char *value) {
    return weft_environment_note(environment_now(start), NULL, value);
}

/* `least`, `most`: how often an item may occur; `most` 0: no limit. */
static const struct row {
    const char *name;
    int least, most;
    item_take *take;
} rows[] = {
    {"version", 1, 1, take_version},   {"key", 1, 1, take_key},
    {"host", 1, 1, take_host},         {"name", 1, 0, take_name},
    {"pes", 1, 1, take_placement},     {"address", 1, 0, take_address},
    {"port", 1, 1, take_port},         {"silence", 1, 1, take_silence},
    {"front", 1, 1, take_front},       {"below", 1, 1, take_below},
    {"fanout", 1, 1, take_fan_out},    {"called", 0, 0, take_called},
    {"ssh", 0, 1, take_ssh},           {"option", 0, 0, take_option},
    {"program", 1, 0, take_program},   {"folder", 1, 0, take_folder},
    {"argument", 1, 0, take_argument}, {"set", 0, 0, take_variable},
    {"keep", 0, 0, take_kept},         {"found", 0, 0, take_found},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* The error text for the caller. A process reads only one start text. */
static char complaint[128];

static int complain(const char **why, int error, const char *what, const char *name) {
    snprintf(complaint, sizeof complaint, what, name);
    *why = complaint;
    return error;
}

/* Splits off the next item. Returns the text after it, or NULL if the item is incomplete. */
static char *item_cut(char *at, char *end, char name[NAME_MAX_BYTES], char **value) {
    char *newline = memchr(at, '\n', (size_t)(end - at));
    char *blank = newline ? memchr(at, ' ', (size_t)(newline - at)) : NULL;
    if (!blank || blank - at >= NAME_MAX_BYTES)
        return NULL;
    memcpy(name, at, (size_t)(blank - at));
    name[blank - at] = '\0';
    *newline = '\0';
    int bytes = weft_options_number(blank + 1, 0, WEFT_START_BYTES_MAX);
    *value = newline + 1;
    if (bytes < 0 || end - *value <= bytes || (*value)[bytes] != '\n')
        return NULL;
    (*value)[bytes] = '\0';
    return strlen(*value) == (size_t)bytes ? *value + bytes + 1 : NULL;
}

static int item_read(start_t *start, int count[ROWS], const char *name, char *value,
                     const char **why) {
    int row = 0;
    while (row < ROWS && strcmp(rows[row].name, name) != 0)
        row++;
    if (row == ROWS)
        return complain(why, -EINVAL, "there is no item '%.16s'", name);
    if (rows[row].most && count[row] == rows[row].most)
        return complain(why, -EINVAL, "the item '%s' occurs twice", name);
    count[row]++;
    int error = rows[row].take(start, value);
    if (error == -EPROTO)
        return complain(why, -EINVAL,
                        "the front is Weft %.32s, and this is Weft " WEFT_VERSION_STRING, value);
    if (error == -EINVAL)
        return complain(why, error, "the item '%s' is wrong", name);
    return error;
}

/* Checks the items against each other. */
static int start_check(const start_t *start, const char **why) {
    const struct weft_options *options = &start->options;
    int npes = 0;
    if (start->host >= start->nhosts)
        return complain(why, -EINVAL, "%s", "there is no such host");
    if (start->below > start->nhosts - start->host)
        return complain(why, -EINVAL, "%s", "there are fewer hosts than it is to serve");
    if (start->ncalled != (start->below > 1 ? start->below : 0) ||
        (start->below > 1) != (start->ssh != NULL))
        return complain(why, -EINVAL, "%s", "the hosts below it have no names for ssh");
    for (int pe = 0; pe < options->npes; pe++)
        if (start->host_of[pe] >= start->nhosts)
            return complain(why, -EINVAL, "%s", "a PE is on a host that does not exist");
    for (int i = 0; i < options->nprograms; i++) {
        npes += npes <= options->npes ? options->program[i].npes : 0;
        if (!options->program[i].argv || !options->program[i].folder)
            return complain(why, -EINVAL, "%s", "a program has no name or no folder");
    }
    return npes == options->npes
               ? 0
               : complain(why, -EINVAL, "%s",
                          "the PEs of the programs are not as many as those of the job");
}

int weft_start_parse(char *text, size_t bytes, struct weft_start *start, const char **why) {
    char name[NAME_MAX_BYTES], *value, *end = text + bytes;
    int count[ROWS] = {0}, error = 0;
    *start = (struct weft_start){.options.binding = WEFT_BINDING_DEFAULT};
    for (char *at = text; error == 0 && at < end;) {
        at = item_cut(at, end, name, &value);
        error = at ? item_read(start, count, name, value, why)
                   : complain(why, -EINVAL, "%s", "an item has no end");
        if (!at)
            break;
    }
    for (int row = 0; error == 0 && row < ROWS; row++)
        if (count[row] < rows[row].least)
            error = complain(why, -EINVAL, "the item '%s' is missing", rows[row].name);
    return error ? error : start_check(start, why);
}
