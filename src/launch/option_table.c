/* SPDX-License-Identifier: BSD-3-Clause */
/* First the actions of options, then the table, then the search for names. An action gets words of
 * the command line, which are never freed, so it may keep pointers to them. */
#include "launch/option_table.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "boot/wire.h"
#include "launch/hosts.h"

typedef struct weft_options options_t;
typedef const struct weft_option_use use_t;

/* Returns the length of the option's name with its dashes; the value may be in the same word. */
static int name_length(use_t *use) {
    size_t length = strlen(use->word);
    if (use->value && use->value > use->word && use->value <= use->word + length)
        length = (size_t)(use->value - use->word) - (use->value[-1] == '=');
    return (int)length;
}

static int value_refuse(use_t *use, const char *reason) {
    return weft_options_error("%.*s %s: %s", name_length(use), use->word, use->value, reason);
}

static int number_take(use_t *use, int *number) {
    char reason[64];
    *number = weft_options_number(use->value, 1, WEFT_WIRE_PES_MAX);
    if (*number > 0)
        return -1;
    snprintf(reason, sizeof reason, "the number of PEs must be 1 to %d", WEFT_WIRE_PES_MAX);
    return value_refuse(use, reason);
}

static int set_npes(options_t *options, use_t *use) {
    (void)options;
    return number_take(use, &use->program->npes);
}

static int set_per_host(options_t *options, use_t *use) {
    return number_take(use, &options->per_host);
}

/* clang-format off */
/* Actions that only set a field. */
#define SETTER(NAME, FIELD, VALUE)                      \
    static int NAME(options_t *options, use_t *use) {   \
        (void)use;                                      \
        options->FIELD = VALUE;                         \
        return -1;                                      \
    }
SETTER(set_one_per_host, per_host, 1)
SETTER(set_no_more, no_more_than_processors, true)
SETTER(set_report, binding.report, true)
SETTER(set_tag, tag_output, true)
SETTER(set_by_host, by_host, true)
SETTER(set_verbose, verbose, true)
SETTER(ask_help, answer, WEFT_ANSWER_HELP)
SETTER(ask_version, answer, WEFT_ANSWER_VERSION)
/* clang-format on */

static int set_per_socket(options_t *options, use_t *use) {
    options->binding.map = WEFT_LEVEL_SOCKET;
    return number_take(use, &options->binding.per);
}

static int set_hosts(options_t *options, use_t *use) {
    return weft_hosts_take_list(options, use->word, use->value);
}

static int set_hostfile(options_t *options, use_t *use) {
    return weft_hosts_take_file(options, use->word, use->value);
}

static int set_folder(options_t *options, use_t *use) {
    (void)options;
    use->program->folder = use->value;
    return -1;
}

static int set_bind(options_t *options, use_t *use) {
    const char *wrong = weft_bind_parse_level(&options->binding, use->value);
    return wrong ? value_refuse(use, wrong) : -1;
}

/* Returns whether the word before a colon assigns PEs to hosts round-robin. */
static bool word_means_hosts(const char *text) {
    static const char *const words[] = {"node", "host", "machine", "board"};
    size_t length = strcspn(text, ":");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && strncasecmp(words[i], text, length) == 0)
            return true;
    return false;
}

static int set_map(options_t *options, use_t *use) {
    const char *wrong = weft_bind_parse_map(&options->binding, use->value);
    options->by_host = options->by_host || word_means_hosts(use->value);
    return wrong ? value_refuse(use, wrong) : -1;
}

static int set_rank(options_t *options, use_t *use) {
    const char *wrong = weft_bind_parse_rank(&options->binding, use->value);
    options->by_host = options->by_host || word_means_hosts(use->value);
    return wrong ? value_refuse(use, wrong) : -1;
}

static int set_width(options_t *options, use_t *use) {
    options->binding.width = weft_options_number(use->value, 1, CPU_SETSIZE);
    return options->binding.width > 0 ? -1
                                      : value_refuse(use, "this is not a number of processors");
}

static int set_processors(options_t *options, use_t *use) {
    cpu_set_t ignored;
    options->binding.only = use->value;
    return weft_topology_parse(use->value, &ignored)
               ? -1
               : value_refuse(use, "a list of processors is like 0-3,8");
}

static int note_variable(struct weft_environment *environment, const char *name,
                         const char *value) {
    return weft_environment_note(environment, name, value) == 0
               ? -1
               : weft_options_error("no memory for the environment");
}

/* Splits NAME=VALUE in place. */
static int set_pair(struct weft_environment *environment, use_t *use, const char *value) {
    char *equals = strchr(use->value, '=');
    if (equals == use->value || !*use->value)
        return value_refuse(use, "the name of the variable is missing");
    if (equals)
        *equals = '\0';
    return note_variable(environment, use->value, equals ? equals + 1 : value);
}

/* A variable without a value is one of this process. PEs on this host inherit it in any case. */
static int export_variable(options_t *options, use_t *use) {
    (void)options;
    if (strchr(use->value, '=') || !*use->value)
        return set_pair(&use->program->environment, use, "");
    const char *own = getenv(use->value);
    if (own)
        return note_variable(&use->program->environment, use->value, own);
    fprintf(stderr, "oshrun: -x %s: this variable is not set, so PEs will not have it\n",
            use->value);
    return -1;
}

static int set_variable(options_t *options, use_t *use) {
    (void)options;
    return set_pair(&use->program->environment, use, use->second);
}

static int set_variable_of_all(options_t *options, use_t *use) {
    return set_pair(&options->environment, use, use->second);
}

static int keep_variables(options_t *options, use_t *use) {
    (void)options;
    return note_variable(&use->program->environment, NULL, use->value ? use->value : "");
}

static int keep_variables_of_all(options_t *options, use_t *use) {
    return note_variable(&options->environment, NULL, use->value ? use->value : "");
}

static int set_output(options_t *options, use_t *use) {
    options->tag_host = strcasecmp(use->value, "tag-host") == 0;
    if (strcasecmp(use->value, "tag") != 0 && !options->tag_host)
        return value_refuse(use, "tag and tag-host are known; for files there is "
                                 "--output-filename");
    return set_tag(options, use);
}

static int set_tag_host(options_t *options, use_t *use) {
    options->tag_host = true;
    return set_tag(options, use);
}

static int set_output_folder(options_t *options, use_t *use) {
    options->output_folder = use->value;
    return *use->value ? -1 : value_refuse(use, "the name of the folder is missing");
}

static int set_timeout(options_t *options, use_t *use) {
    options->timeout_s = weft_options_number(use->value, 1, INT_MAX / 1000);
    return options->timeout_s > 0 ? -1
                                  : value_refuse(use, "this is not a number of seconds from 1");
}

/* clang-format off */
#define START       WEFT_OPTION_START
#define PLACE       WEFT_OPTION_PLACE
#define ENVIRONMENT WEFT_OPTION_ENVIRONMENT
#define OUTPUT      WEFT_OPTION_OUTPUT
#define HARMLESS    WEFT_OPTION_HARMLESS
#define REFUSED     WEFT_OPTION_REFUSED
#define FRONT       WEFT_OPTION_FRONT
#define HOSTS       WEFT_OPTION_HOSTS

const struct weft_option_row weft_option_table[] = {
    {START, FRONT, "n np c", "N", set_npes,
     "number of PEs; without it one for each slot of -H or task of a Slurm allocation, or 1"},
    {START, FRONT, "N ppn npernode perhost", "N", set_per_host,
     "maximal number of PEs on a host; without -n, the number on each"},
    {START, FRONT, "pernode", "", set_one_per_host, "as -N 1"},
    {START, FRONT, "nooversubscribe", "", set_no_more,
     "start no more PEs than there are processors"},
    {START, HOSTS, "npersocket", "N", set_per_socket, "as --map-by ppr:N:socket"},
    {START, FRONT, "H host hosts", "HOST[:SLOTS],...", set_hosts,
     "the hosts to start PEs on, with ssh"},
    {START, FRONT, "hostfile f machinefile default-hostfile", "FILE", set_hostfile,
     "the same, with one host per line of a file: localhost slots=4"},
    {START, FRONT, "bynode", "", set_by_host, "assign PEs to hosts round-robin, as --map-by node"},
    {START, FRONT, "wdir wd", "DIR", set_folder, "the folder in which the program starts"},

    {PLACE, HOSTS, "bind-to", "PART", set_bind,
     "bind each PE to a part of the machine: none, hwthread, core, l1cache, l2cache, l3cache, numa "
     "or socket; without it each has an equal share of the processors, if there are enough"},
    {PLACE, HOSTS, "map-by", "[ppr:N:]PART[:PE=N]", set_map,
     "place PEs round-robin on parts of the machine; ppr:N: N on each; PE=N: N cores for each PE; "
     "slot: in order; node: round-robin on hosts"},
    {PLACE, HOSTS, "rank-by", "PART", set_rank,
     "number the PEs round-robin over parts of the machine"},
    {PLACE, HOSTS, "cpus-per-rank cpus-per-proc", "N", set_width, "as --map-by :PE=N"},
    {PLACE, HOSTS, "cpu-set cpu-list", "LIST", set_processors,
     "use only these processors, like 0-3,8"},
    {PLACE, HOSTS, "report-bindings", "", set_report, "say which processors each PE has"},

    {ENVIRONMENT, FRONT, "x", "NAME[=VALUE]", export_variable,
     "set a variable for this program's PEs"},
    {ENVIRONMENT, FRONT, "env", "NAME VALUE", set_variable, "the same"},
    {ENVIRONMENT, FRONT, "genv", "NAME VALUE", set_variable_of_all, "the same for all programs"},
    {ENVIRONMENT, FRONT, "envlist", "NAME,...", keep_variables, "pass on only these variables"},
    {ENVIRONMENT, FRONT, "genvlist", "NAME,...", keep_variables_of_all,
     "the same for all programs"},
    {ENVIRONMENT, FRONT, "envnone", "", keep_variables, "pass on no variables"},
    {ENVIRONMENT, FRONT, "genvnone", "", keep_variables_of_all, "the same for all programs"},

    {OUTPUT, FRONT, "l tag-output prepend-rank", "", set_tag,
     "put [PE] before every line that a PE writes"},
    {OUTPUT, FRONT, "tag-host", "", set_tag_host, "put [PE host] there"},
    {OUTPUT, FRONT, "output", "tag", set_output, "the same, and tag-host"},
    {OUTPUT, HOSTS, "output-filename", "DIR", set_output_folder,
     "write what PE n writes into DIR/rank.n/stdout and DIR/rank.n/stderr"},
    {OUTPUT, FRONT, "timeout", "SECONDS", set_timeout,
     "end the job after that time, with status 124"},
    {OUTPUT, HOSTS, "v verbose", "", set_verbose,
     "print what is started, which options do nothing, and which PE called shmem_global_exit"},
    {OUTPUT, FRONT, "h help", "", ask_help, "print this"},
    {OUTPUT, FRONT, "V version", "", ask_version, "print the version"},

    {HARMLESS, FRONT, "oversubscribe", "", NULL, "there may always be more PEs than processors"},
    {HARMLESS, FRONT, "allow-run-as-root", "", NULL, "root may always run programs"},
    {HARMLESS, FRONT, "mca gmca omca pmca prtemca pmixmca", "NAME VALUE", NULL,
     "these are settings of Open MPI; those of Weft are in weft(7)"},
    {HARMLESS, FRONT, "tune am", "FILE", NULL, "this is a file with settings of Open MPI"},
    {HARMLESS, FRONT, "byslot leave-session-attached print-all-exitcodes", "", NULL,
     "this is always so"},
    {HARMLESS, FRONT, "usize", "N", NULL, "the number of PEs of a job is fixed"},
    {HARMLESS, FRONT, "prefix tmpdir", "DIR", NULL,
     "nothing is looked for there, and no files are made"},
    {HARMLESS, FRONT, "noprefix", "", NULL, "nothing is looked for elsewhere"},
    {HARMLESS, FRONT, "use-hwthread-cpus use-hwthreads", "", NULL,
     "a hardware thread is a processor here"},
    {HARMLESS, FRONT, "q quiet", "", NULL, "oshrun prints only what is necessary"},
    {HARMLESS, FRONT, "envall genvall", "", NULL, "PEs have the whole environment anyway"},
    {HARMLESS, FRONT, "launcher launcher-exec bootstrap bootstrap-exec rmk iface", "NAME", NULL,
     "WEFT_SSH names what starts processes on other hosts"},
    {HARMLESS, FRONT, "hetero-nodes enable-x disable-x disable-hostname-propagation", "", NULL,
     "it has no meaning here"},
    {HARMLESS, FRONT, "display-map display-allocation display-topo", "", NULL,
     "--report-bindings says where PEs run"},

    {REFUSED, FRONT, "rankfile rf", "FILE", NULL,
     "--map-by, --bind-to and --cpu-set say where PEs run"},
    {REFUSED, FRONT, "app configfile", "FILE", NULL,
     "programs stand on the command line, with a colon between them"},
    {REFUSED, FRONT, "nolocal", "", NULL, "leave this host out of the list of hosts"},
    {REFUSED, FRONT, "debug tv gdb", "", NULL,
     "start the debugger as the program, such as oshrun -n 2 xterm -e gdb ./program"},
    {REFUSED, FRONT, "xterm", "RANKS", NULL,
     "start it as the program: oshrun -n 2 xterm -hold -e ./program"},
    {REFUSED, FRONT, "stdin s", "RANK", NULL,
     "PE 0 reads standard input, and the others read nothing"},
    {REFUSED, FRONT, "timestamp-output", "", NULL, "send the output through a program such as ts"},
    {REFUSED, FRONT, "merge-stderr-to-stdout", "", NULL, "start sh -c './program 2>&1'"},
    {REFUSED, FRONT, "outfile-pattern errfile-pattern", "PATTERN", NULL,
     "there is --output-filename, with a folder"},
};
/* clang-format on */
const int weft_option_table_count = sizeof weft_option_table / sizeof *weft_option_table;

static bool noted[sizeof weft_option_table / sizeof *weft_option_table];

bool weft_option_next(const char **names, char name[WEFT_OPTION_NAME_BYTES]) {
    size_t length = strcspn(*names, " ");
    if (length == 0 || length >= WEFT_OPTION_NAME_BYTES)
        return false;
    memcpy(name, *names, length);
    name[length] = '\0';
    *names += length + ((*names)[length] == ' ');
    return true;
}

int weft_option_arguments(const struct weft_option_row *row) {
    return !*row->arguments ? 0 : strchr(row->arguments, ' ') ? 2 : 1;
}

const struct weft_option_row *weft_option_find(const char *name) {
    char each[WEFT_OPTION_NAME_BYTES];
    for (int row = 0; row < weft_option_table_count; row++)
        for (const char *at = weft_option_table[row].names; weft_option_next(&at, each);)
            if (strcmp(each, name) == 0)
                return &weft_option_table[row];
    return NULL;
}

/* Returns the edit distance of two words (Levenshtein). */
static int words_distance(const char *from, size_t length, const char *to) {
    int row[WEFT_OPTION_NAME_BYTES + 1], width = (int)strlen(to);
    for (int j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 0; i < length; i++) {
        int diagonal = row[0];
        row[0] = (int)i + 1;
        for (int j = 1; j <= width; j++) {
            int changed = diagonal + (from[i] != to[j - 1]);
            int one_more = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            diagonal = row[j];
            row[j] = changed < one_more ? changed : one_more;
        }
    }
    return row[width];
}

const char *weft_option_nearest(const char *name) {
    static char near[WEFT_OPTION_NAME_BYTES];
    char each[WEFT_OPTION_NAME_BYTES];
    size_t length = strcspn(name, "=");
    int best = (int)length / 3 + 1; /* a larger distance is another word */
    near[0] = '\0';
    for (int row = 0; length > 1 && length < sizeof each && row < weft_option_table_count; row++)
        for (const char *at = weft_option_table[row].names; weft_option_next(&at, each);) {
            int away = words_distance(name, length, each);
            if (each[1] && away <= best && away < (int)length) {
                best = away - 1;
                memcpy(near, each, sizeof near);
            }
        }
    return near[0] ? near : NULL;
}

static int hosts_note(struct weft_option_list *list, const struct weft_option_row *row,
                      const char *value) {
    void *longer = realloc(list->option, ((size_t)list->count + 1) * sizeof *list->option);
    if (!longer)
        return weft_options_error("no memory for the options");
    list->option = longer;
    list->option[list->count++] = (struct weft_option){row, value};
    return -1;
}

int weft_option_act(options_t *options, const struct weft_option_row *row, use_t *use) {
    noted[row - weft_option_table] = row->kind == WEFT_OPTION_HARMLESS;
    int status = row->act ? row->act(options, use) : -1;
    bool forwarded = status < 0 && row->scope == WEFT_OPTION_HOSTS;
    return forwarded ? hosts_note(&options->for_hosts, row, use->value) : status;
}

void weft_option_show_notes(void) {
    char name[WEFT_OPTION_NAME_BYTES];
    for (int row = 0; row < weft_option_table_count; row++) {
        const char *at = weft_option_table[row].names;
        if (noted[row] && weft_option_next(&at, name))
            fprintf(stderr, "oshrun: %s%s has no effect: %s\n", name[1] ? "--" : "-", name,
                    weft_option_table[row].text);
    }
}
