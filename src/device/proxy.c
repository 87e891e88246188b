/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that work for streams: they do what no GPU can, such as reaching a far PE.
 *
 *   stream:   earlier work | a function of the host | a kernel that waits for a word | later work
 *                              posts the task              ^ set after the task
 *   thread:                    takes tasks in order, and runs them
 *
 * One thread serves tasks that involve single PEs; it never waits for the program of another PE.
 * Each team that synchronises in this way has a thread of its own, and its calls have one order on
 * all members. The team's tasks use the words of a second team with the same members, so that the
 * host may be in a call of the team at the same time.
 *
 * A word only grows, so the next task can use it as soon as it is set. A task that a graph keeps
 * has a word of its own, which the function resets at each replay: two graphs may run at once, but
 * not two instances of the same graph. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <shmem.h>
#include "base/hash.h"
#include "base/size.h"
#include "base/thread.h"
#include "device/device.h"

/* A word in host memory, on which the GPU waits and which a thread sets. */
struct word {
    uint64_t *at, value; /* value: set by the last task that has this word */
    struct word *next;
};

struct proxy {
    pthread_t thread;
    pthread_mutex_t changing;
    pthread_cond_t posted;
    struct task *first, **last; /* tasks that streams have reached */
    bool stops;
    shmem_team_t meets; /* the second team, for the thread of a team */
    struct proxy *left; /* next in the list of threads whose teams have ended, but which a graph may
                           still use */
};

struct task {
    void (*run)(const void *arguments);
    const char *call; /* that has requested the task */
    struct proxy *proxy;
    struct word *word;
    bool kept; /* by a graph */
    struct task *next;
    _Alignas(16) char arguments[];
};

static struct {
    pthread_mutex_t changing;
    struct proxy *single, *of_teams[WEFT_TEAMS_MAX], *left;
    struct word *words; /* not in use */
    struct memory {
        void *at; /* a page of words */
        struct memory *next;
        struct word words[];
    } * memory;
    struct task *kept;
} proxies = {.changing = PTHREAD_MUTEX_INITIALIZER};

/* --- Words ------------------------------------------------------------------------------------ */

/* Adds a page of free words. Called under the lock. */
static int make_words(void) {
    size_t bytes = weft_page_bytes(), count = bytes / sizeof(uint64_t);
    struct memory *memory = malloc(sizeof *memory + count * sizeof memory->words[0]);
    void *at = aligned_alloc(bytes, bytes);
    int error = memory && at ? 0 : weft_fail(-ENOMEM, "no memory for words that streams wait for");
    error = error ? error : weft_gpu_register(at, bytes);
    if (error) {
        free(at);
        free(memory);
        return error;
    }
    *memory = (struct memory){at, proxies.memory};
    proxies.memory = memory;
    memset(at, 0, bytes);
    for (size_t i = 0; i < count; i++) {
        memory->words[i] = (struct word){(uint64_t *)at + i, 0, proxies.words};
        proxies.words = &memory->words[i];
    }
    return 0;
}

static int take_word(struct word **word) {
    pthread_mutex_lock(&proxies.changing);
    int error = proxies.words ? 0 : make_words();
    *word = proxies.words;
    if (error == 0)
        proxies.words = (*word)->next;
    pthread_mutex_unlock(&proxies.changing);
    return error;
}

static void give_word(struct word *word) {
    pthread_mutex_lock(&proxies.changing);
    word->next = proxies.words;
    proxies.words = word;
    pthread_mutex_unlock(&proxies.changing);
}

/* --- The thread ------------------------------------------------------------------------------- */

static void task_do(struct task *task) {
    struct word *word = task->word;
    uint64_t value = word->value;
    bool kept = task->kept;
    {
        WEFT_IN_CALL(task->call);
        task->run(task->arguments);
    }
    if (!kept)
        free(task);
    __atomic_store_n(word->at, value, __ATOMIC_RELEASE); /* the stream continues */
    if (!kept)
        give_word(word);
}

static void *proxy_main(void *argument) {
    struct proxy *proxy = argument;
    pthread_mutex_lock(&proxy->changing);
    while (proxy->first || !proxy->stops) {
        struct task *task = proxy->first;
        if (!task) {
            pthread_cond_wait(&proxy->posted, &proxy->changing);
            continue;
        }
        proxy->first = task->next;
        if (!proxy->first)
            proxy->last = &proxy->first;
        pthread_mutex_unlock(&proxy->changing);
        task_do(task);
        pthread_mutex_lock(&proxy->changing);
    }
    pthread_mutex_unlock(&proxy->changing);
    return NULL;
}

/* Runs on a thread of the driver, which may not call CUDA, when the stream gets here. */
static void task_post(void *argument) {
    struct task *task = argument;
    struct proxy *proxy = task->proxy;
    if (task->kept)
        __atomic_store_n(task->word->at, 0, __ATOMIC_RELEASE);
    task->next = NULL;
    pthread_mutex_lock(&proxy->changing);
    *proxy->last = task;
    proxy->last = &task->next;
    pthread_cond_signal(&proxy->posted);
    pthread_mutex_unlock(&proxy->changing);
}

static int proxy_start(struct proxy **made) {
    struct proxy *proxy = calloc(1, sizeof *proxy);
    if (!proxy)
        return weft_fail(-ENOMEM, "no memory for a thread that works for streams");
    pthread_mutex_init(&proxy->changing, NULL);
    pthread_cond_init(&proxy->posted, NULL);
    proxy->last = &proxy->first;
    proxy->meets = SHMEM_TEAM_INVALID;
    int error = weft_thread_start(&proxy->thread, proxy_main, proxy);
    if (error) {
        free(proxy);
        return weft_fail(error, "cannot start a thread that works for streams");
    }
    *made = proxy;
    return 0;
}

/* Ends the thread, which must have no tasks left. */
static void proxy_stop(struct proxy *proxy) {
    pthread_mutex_lock(&proxy->changing);
    proxy->stops = true;
    pthread_cond_signal(&proxy->posted);
    pthread_mutex_unlock(&proxy->changing);
    weft_thread_join(proxy->thread);
    free(proxy);
}

/* --- Choosing the thread ---------------------------------------------------------------------- */

static int single_find(struct proxy **found) {
    pthread_mutex_lock(&proxies.changing);
    int error = proxies.single ? 0 : proxy_start(&proxies.single);
    *found = proxies.single;
    pthread_mutex_unlock(&proxies.changing);
    return error;
}

static int second_team_make(shmem_team_t *meets, const struct weft_team *team, int own) {
    int pes[team->npes];
    for (int i = 0; i < team->npes; i++)
        pes[i] = weft_team_world_pe(team, i);
    uint64_t tag = weft_hash(WEFT_HASH_BASIS, &team->slot, sizeof team->slot);
    struct weft_boot_subset subset = {pes, team->npes, weft_hash(tag, "on stream", 9),
                                      weft_job_die_aborted};
    int error = weft_boot_agree_among(&subset, own);
    return error ? error : weft_team_create(&subset, meets);
}

int weft_proxy_begin(const struct weft_team *team) {
    struct proxy **proxy = &proxies.of_teams[team->slot];
    if (*proxy)
        return 0;
    int error = proxy_start(proxy), own = error;
    shmem_team_t meets = SHMEM_TEAM_INVALID;
    error = second_team_make(&meets, team, own);
    if (error == 0) {
        (*proxy)->meets = meets;
    } else if (own == 0) {
        proxy_stop(*proxy);
        *proxy = NULL;
    }
    return error;
}

struct weft_team *weft_proxy_team(const struct weft_team *team) {
    return weft_team_find(proxies.of_teams[team->slot]->meets);
}

/* --- Tasks ------------------------------------------------------------------------------------ */

static void task_keep(struct task *task) {
    pthread_mutex_lock(&proxies.changing);
    task->next = proxies.kept;
    proxies.kept = task;
    pthread_mutex_unlock(&proxies.changing);
}

static int task_make(struct task **made, struct proxy *proxy, const struct weft_proxy_task *wanted,
                     bool kept) {
    struct task *task = malloc(sizeof *task + wanted->bytes);
    if (!task)
        return weft_fail(-ENOMEM, "no memory for a task of a stream");
    *task =
        (struct task){.run = wanted->run, .call = weft_current_call, .proxy = proxy, .kept = kept};
    memcpy(task->arguments, wanted->arguments, wanted->bytes);
    int error = take_word(&task->word);
    if (error)
        free(task);
    else
        *made = task;
    return error;
}

int weft_proxy_run(const struct weft_team *team, const struct weft_proxy_task *wanted,
                   weft_cu_stream stream) {
    struct proxy *proxy = team ? proxies.of_teams[team->slot] : NULL;
    struct task *task = NULL;
    if (!weft_device.gpu->sees_registered_memory)
        return weft_fail(-ENOTSUP,
                         "%s cannot access words in host memory, on which a stream waits for "
                         "calls to far PEs: call from the host",
                         weft_device.gpu->name);
    int error = proxy ? 0 : single_find(&proxy);
    error = error ? error : task_make(&task, proxy, wanted, weft_gpu_capturing(stream));
    if (error)
        return error;
    struct word *word = task->word;
    uint64_t value = ++word->value;
    bool kept = task->kept;
    error =
        weft_cuda_check(weft_cuda.cuLaunchHostFunc(stream, task_post, task), "cuLaunchHostFunc");
    if (error) { /* undo: no task will run */
        word->value--;
        give_word(word);
        free(task);
        return error;
    }
    if (kept) /* a task that runs once may have been freed by now */
        task_keep(task);
    return weft_gpu_wait(word->at, SHMEM_CMP_GE, value, stream);
}

/* --- The end ---------------------------------------------------------------------------------- */

void weft_proxy_team_ended(const struct weft_team *team, bool finished) {
    struct proxy *proxy = proxies.of_teams[team->slot];
    proxies.of_teams[team->slot] = NULL;
    if (proxy && finished && !weft_device_turns_captured(team)) {
        struct weft_team *meets = weft_team_find(proxy->meets);
        proxy_stop(proxy);
        weft_team_destroy(meets);
    } else if (proxy) {
        proxy->left = proxies.left;
        proxies.left = proxy;
    }
}

void weft_proxies_close(void) {
    for (int slot = 0; slot < WEFT_TEAMS_MAX; slot++)
        if (proxies.of_teams[slot])
            proxy_stop(proxies.of_teams[slot]);
    for (struct proxy *next; proxies.left; proxies.left = next) {
        next = proxies.left->left;
        proxy_stop(proxies.left);
    }
    if (proxies.single)
        proxy_stop(proxies.single);
    for (struct task *next; proxies.kept; proxies.kept = next) {
        next = proxies.kept->next;
        free(proxies.kept);
    }
    for (struct memory *next; proxies.memory; proxies.memory = next) {
        next = proxies.memory->next;
        weft_gpu_unregister(proxies.memory->at);
        free(proxies.memory->at);
        free(proxies.memory);
    }
    memset(proxies.of_teams, 0, sizeof proxies.of_teams);
    proxies.single = NULL;
    proxies.words = NULL;
}
