/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the start text of a daemon: a written text is read correctly, and any other text is
 * rejected with a reason, or results in a start with consistent numbers. PEs: 1 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "launch/option_table.h"
#include "launch/start.h"
#include "tap.h"

enum { CHANGED_TEXTS = 20000 };

/* A start lives as long as its daemon and is never freed. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

static int32_t host_of[] = {0, 0, 1};
static const char *names[] = {"a", "b.example"};
static char *words[] = {"./prog", "", "two\nlines", NULL}, *other[] = {"/bin/echo", NULL};

static struct weft_start start_make(void) {
    static struct weft_program programs[2];
    programs[0] = (struct weft_program){.npes = 2, .argv = words, .folder = "/tmp"};
    programs[1] = (struct weft_program){.npes = 1, .argv = other, .folder = "/"};
    struct weft_start start = {.host = 1, .nhosts = 2, .name = names, .host_of = host_of};
    for (int i = 0; i < WEFT_TLS_KEY_BYTES; i++)
        start.key[i] = (unsigned char)(7 * i + 3);
    start.naddresses = 2;
    start.address[0] = "10.77.0.1";
    start.address[1] = "fe80::1%eth0";
    start.port = 40123;
    start.silence_ms = 1500;
    start.by_front = true;
    start.below = 1;
    start.fan_out = 32;
    start.options = (struct weft_options){.program = programs, .nprograms = 2, .npes = 3};
    static const char *const options[][2] = {{"bind-to", "core"},        {"map-by", "socket"},
                                             {"cpus-per-rank", "2"},     {"cpu-set", "0-3"},
                                             {"output-filename", "out"}, {"verbose", NULL}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct weft_option_use use = {.word = options[i][0], .value = options[i][1]};
        weft_option_act(&start.options, weft_option_find(use.word), &use);
    }
    weft_environment_note(&start.options.environment, "WEFT_A", "1");
    weft_environment_note(&programs[0].environment, NULL, "PATH,HOME");
    weft_environment_note(&programs[0].environment, "B", "x=y\nz");
    return start;
}

static char *start_text(size_t *bytes) {
    struct weft_start start = start_make();
    char *text = NULL;
    int error = weft_start_write(&start, &text, bytes);
    EXPECT(error == 0, "%d", error);
    return text;
}

/* Reads a start from a pipe that contains this text. */
static int start_from(const char *text, size_t bytes, struct weft_start *start) {
    int ends[2];
    if (pipe(ends) < 0 || write(ends[1], text, bytes) != (ssize_t)bytes)
        return -EIO;
    close(ends[1]);
    int error = weft_start_read(ends[0], start);
    close(ends[0]);
    return error;
}

static void read_again(void) {
    struct weft_start wanted = start_make(), start;
    size_t bytes;
    char *text = start_text(&bytes);
    tap_case("what is written is read again");
    int error = start_from(text, bytes, &start);
    EXPECT(error == 0, "%d", error);
    EXPECT(memcmp(start.key, wanted.key, sizeof start.key) == 0, "the key");
    EXPECT(start.host == 1 && start.nhosts == 2 && !strcmp(start.name[1], "b.example"), "hosts");
    EXPECT(start.options.npes == 3 && !memcmp(start.host_of, host_of, sizeof host_of), "PEs");
    EXPECT(start.naddresses == 2 && !strcmp(start.address[1], "fe80::1%eth0"), "addresses");
    EXPECT(start.by_front && start.below == 1 && start.fan_out == 32, "what is below");
    EXPECT(start.port == 40123 && start.silence_ms == 1500, "%d %d", start.port, start.silence_ms);
    const struct weft_options *options = &start.options;
    EXPECT(options->binding.kind == WEFT_BIND_LEVEL && options->binding.level == WEFT_LEVEL_CORE &&
               options->binding.map == WEFT_LEVEL_SOCKET && options->binding.width == 2 &&
               !options->binding.report && !strcmp(options->binding.only, "0-3"),
           "the binding");
    EXPECT(!strcmp(options->output_folder, "out") && options->verbose, "other options");
    EXPECT(options->nprograms == 2 && options->program[0].npes == 2, "programs");
    for (int i = 0; words[i]; i++)
        EXPECT(!strcmp(options->program[0].argv[i], words[i]), "argument %d", i);
    EXPECT(!options->program[0].argv[3] && !options->program[1].argv[1], "the ends of arguments");
    const struct weft_environment *environment = &options->program[0].environment;
    EXPECT(environment->count == 2 && !environment->change[0].name &&
               !strcmp(environment->change[1].value, "x=y\nz"),
           "the environment of a program");
    EXPECT(options->environment.count == 1 &&
               !strcmp(options->environment.change[0].name, "WEFT_A"),
           "the environment of all");
    free(text);
}

static void cut_short(void) {
    size_t bytes;
    char *text = start_text(&bytes);
    struct weft_start start;
    tap_case("a text that is cut short anywhere is refused");
    freopen("/dev/null", "w", stderr); /* each text is logged */
    int taken = 0;
    for (size_t cut = 0; cut < bytes; cut++)
        taken += start_from(text, cut, &start) == 0;
    freopen("/dev/stdout", "a", stderr);
    setvbuf(stderr, NULL, _IOLBF, 0); /* lines of stderr must not be split by lines of stdout */
    EXPECT(taken == 0, "%d were taken", taken);
    free(text);
}

/* Returns the text with one item removed, repeated, or with another value. */
static char *text_change(const char *name, int times, const char *value, size_t *bytes) {
    char *text = start_text(bytes), *end = text + *bytes, *all = calloc(1, 3 * *bytes), *to = all;
    char *at = strchr(text, '\n') + 1;
    while (at < end) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t length = strcspn(at, " "), has = strtoul(at + length, NULL, 10);
        char *next = newline + has + 2;
        bool this = strlen(name) == length && !memcmp(at, name, length);
        for (int i = 0; i < (this ? times : 1); i++)
            if (this && value)
                to += sprintf(to, "%s %zu\n%s\n", name, strlen(value), value);
            else
                to = mempcpy(to, at, (size_t)(next - at));
        at = next;
    }
    *bytes = (size_t)(to - all);
    free(text);
    return all;
}

/* A reader that serves several hosts gets their names for ssh. A text with too many hosts, or
 * without the names, is rejected. */
static void relays(void) {
    static const char *called[] = {"me@a", "b"};
    struct weft_start wanted = start_make(), start;
    char *text = NULL;
    size_t bytes;
    tap_case("a relay's text");
    wanted.host = 0;
    wanted.below = 2;
    wanted.ssh = "ssh -p 22";
    wanted.called = called;
    EXPECT(weft_start_write(&wanted, &text, &bytes) == 0 && start_from(text, bytes, &start) == 0,
           "the text");
    EXPECT(start.below == 2 && start.ncalled == 2 && !strcmp(start.called[0], "me@a") &&
               !strcmp(start.ssh, wanted.ssh),
           "what it sees to");
    free(text);
    wanted.host = 1;
    EXPECT(weft_start_write(&wanted, &text, &bytes) == 0, "the text");
    EXPECT(start_from(text, bytes, &start) == -EINVAL, "two hosts from the last one on are there");
    free(text);
    wanted.host = 0;
    called[1] = "-oProxyCommand=x";
    EXPECT(weft_start_write(&wanted, &text, &bytes) == 0, "the text");
    EXPECT(start_from(text, bytes, &start) == -EINVAL, "an option is called");
    free(text);
}

static void items_wrong(void) {
    static const char *const one[] = {"version", "key",   "host",  "pes",   "port",
                                      "silence", "front", "below", "fanout"};
    static const char *const wrong[][2] = {
        {"version", "0.0.9"},
        {"key", "12"},
        {"host", "2"},
        {"host", "-1"},
        {"host", "x"},
        {"name", ""},
        {"name", "a b"},
        {"pes", ""},
        {"pes", "0,1"},
        {"pes", "0,0,2"},
        {"pes", "0,,1"},
        {"pes", "0,0,99999999999"},
        {"address", ""},
        {"port", "0"},
        {"port", "65536"},
        {"silence", "0"},
        {"program", "0"},
        {"program", "4"},
        {"folder", "tmp"},
        {"set", "=1"},
        {"set", "A"},
        {"front", "2"},
        {"below", "0"},
        {"below", "2"},
        {"fanout", "0"},
        {"option", ""},
        {"option", "bind-to=nowhere"},
        {"option", "cpu-set=x"},
        {"option", "bind-to"},
        {"option", "verbose=1"},
        {"option", "output-filename="},
        {"option", "np=2"},
        {"option", "no-such-option"},
    };
    struct weft_start start;
    size_t bytes;
    const char *why;
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        for (int times = 0; times <= 2; times += 2) {
            tap_case(times ? "an item twice is refused" : "an item less is refused");
            char *text = text_change(one[i], times, NULL, &bytes);
            why = "";
            EXPECT(weft_start_parse(text, bytes, &start, &why) == -EINVAL, "%s", one[i]);
            EXPECT(strstr(why, one[i]), "'%s' of %s", why, one[i]);
            free(text);
        }
    tap_case("a wrong value is refused with its name");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *text = text_change(wrong[i][0], 1, wrong[i][1], &bytes);
        why = "";
        EXPECT(weft_start_parse(text, bytes, &start, &why) == -EINVAL && *why, "%s '%s' was taken",
               wrong[i][0], wrong[i][1]);
        free(text);
    }
    char *text = text_change("version", 1, "0.0.9", &bytes);
    weft_start_parse(text, bytes, &start, &why);
    EXPECT(strstr(why, "0.0.9"), "'%s' does not name the front's version", why);
    free(text);
}

/* Later code uses these numbers as indices. */
static void start_expect_sound(const struct weft_start *start) {
    int npes = 0;
    EXPECT(start->host >= 0 && start->host < start->nhosts, "%d of %d", start->host, start->nhosts);
    for (int pe = 0; pe < start->options.npes; pe++)
        EXPECT(start->host_of[pe] >= 0 && start->host_of[pe] < start->nhosts, "PE %d", pe);
    for (int i = 0; i < start->options.nprograms; i++) {
        npes += start->options.program[i].npes;
        EXPECT(start->options.program[i].argv[0] && *start->options.program[i].folder == '/', "%d",
               i);
    }
    EXPECT(npes == start->options.npes, "%d and %d", npes, start->options.npes);
}

/* Prefers changes that keep the form of the text, which are more likely to be accepted. */
static void change_at_random(char *text, size_t bytes) {
    static const char likely[] = "0123456789,\n =-";
    for (int changes = 1 + rand() % 3; changes > 0; changes--)
        text[(size_t)rand() % bytes] =
            rand() % 4 ? likely[(size_t)rand() % (sizeof likely - 1)] : (char)(rand() % 256);
}

static void changed_at_random(void) {
    size_t bytes;
    char *text = start_text(&bytes), *behind = strchr(text, '\n') + 1;
    size_t rest = bytes - (size_t)(behind - text);
    int taken = 0;
    tap_case("a text changed at random is refused with words, or makes sense");
    srand(18);
    for (int i = 0; i < CHANGED_TEXTS; i++) {
        struct weft_start start;
        const char *why = "";
        char *changed = malloc(rest); /* so that a sanitizer detects reads past it */
        memcpy(changed, behind, rest);
        change_at_random(changed, rest);
        int error = weft_start_parse(changed, rest, &start, &why);
        taken += error == 0;
        if (error == 0)
            start_expect_sound(&start);
        else
            EXPECT(error == -EINVAL && *why, "%d", error);
        free(changed);
    }
    EXPECT(taken > 0 && taken < CHANGED_TEXTS, "%d of %d were taken", taken, CHANGED_TEXTS);
    free(text);
}

int main(void) {
    tap_start(0);
    read_again();
    cut_short();
    relays();
    items_wrong();
    changed_at_random();
    return tap_finish();
}
