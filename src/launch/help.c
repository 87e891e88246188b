/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the help text from the table of options. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/version.h>
#include "launch/option_table.h"

enum { COLUMN = 26, WIDTH = 96 };

static const char opening[] =
    "usage: oshrun [options] [--] program [arguments...] [: [options] program...]\n"
    "\n"
    "Starts the processing elements (PEs) of an OpenSHMEM program, on this machine or on the "
    "hosts\n"
    "that are named. Long options have one dash or two, and values follow as in --np 2, --np=2 or "
    "-n2.\n";

static const char closing[] =
    "\n"
    "PE 0 reads oshrun's standard input, the others read nothing. Signals sent to oshrun reach\n"
    "all PEs. When a PE dies the job ends and oshrun names the PE. The exit status is that of\n"
    "shmem_global_exit, otherwise the first that is not 0 (128 + s for signal s); 127: no such\n"
    "program; 126: not executable; 124: --timeout; 2: a wrong option.\n";

static const char *const headings[] = {
    [WEFT_OPTION_START] = "What to start",
    [WEFT_OPTION_PLACE] = "On which processors",
    [WEFT_OPTION_ENVIRONMENT] = "In which environment",
    [WEFT_OPTION_OUTPUT] = "Output and end",
    [WEFT_OPTION_HARMLESS] = "Accepted without an effect (-v says why)",
    [WEFT_OPTION_REFUSED] = "Refused with an error that says why",
};
enum { KINDS = sizeof headings / sizeof *headings };

/* Prints words from column `begin` on, where the cursor is, with line breaks before column WIDTH.
 */
static void words_print(const char *text, int begin) {
    int at = begin;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (at > begin && at + 1 + length > WIDTH)
            at = printf("\n%*s", begin, "") - 1;
        else if (at > begin)
            at += printf(" ");
        at += printf("%.*s", length, text);
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

/* Prints "-n, --np N". */
static int names_print(const struct weft_option_row *row) {
    char name[WEFT_OPTION_NAME_BYTES];
    const char *at = row->names;
    int used = printf(" ");
    for (bool first = true; weft_option_next(&at, name); first = false)
        used += printf("%s %s%s", first ? "" : ",", name[1] ? "--" : "-", name);
    return used + (*row->arguments ? printf(" %s", row->arguments) : 0);
}

static void row_print(const struct weft_option_row *row) {
    int at = names_print(row);
    if (at >= COLUMN) {
        putchar('\n');
        at = 0;
    }
    printf("%*s", COLUMN - at, "");
    words_print(row->text, COLUMN);
}

/* Options that do nothing are listed by name only. */
static void names_print_only(enum weft_option_kind kind) {
    char name[WEFT_OPTION_NAME_BYTES], line[4096] = "";
    size_t used = 0;
    for (int row = 0; row < weft_option_table_count; row++) {
        const char *at = weft_option_table[row].names;
        while (weft_option_table[row].kind == kind && weft_option_next(&at, name) &&
               used < sizeof line)
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s%s", used ? " " : "",
                                     name[1] ? "--" : "-", name);
    }
    printf("  ");
    words_print(line, 2);
}

static void help_print(void) {
    fputs(opening, stdout);
    for (int kind = 0; kind < KINDS; kind++) {
        printf("\n%s:\n", headings[kind]);
        if (kind >= WEFT_OPTION_HARMLESS)
            names_print_only((enum weft_option_kind)kind);
        for (int row = 0; row < weft_option_table_count; row++)
            if (kind < WEFT_OPTION_HARMLESS && (int)weft_option_table[row].kind == kind)
                row_print(&weft_option_table[row]);
    }
    fputs(closing, stdout);
}

int weft_help_answer(int answer) {
    if (answer == WEFT_ANSWER_HELP)
        help_print();
    else
        puts("oshrun (Weft) " WEFT_VERSION_STRING);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_SUCCESS;
    fprintf(stderr, "oshrun: cannot write to standard output: %s\n", strerror(errno));
    return WEFT_STATUS_OUTPUT;
}
