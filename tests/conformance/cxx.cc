// SPDX-License-Identifier: BSD-3-Clause
// OpenSHMEM from C++: static objects of classes and templates as symmetric memory, containers as
// local buffers, handles in objects with destructors, threads, and every table of types.
#include <shmem.h>
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>
#include "tap.h"

namespace {

int me, npes, next_pe, before;

// Constructed before main, at each PE by itself; symmetric like every static.
class Counter {
  public:
    explicit Counter(long start) : value(start), first(start) {}
    void add(long amount, int pe) { shmem_long_atomic_add(&value, amount, pe); }
    void wait_for(long wanted) { shmem_long_wait_until(&value, SHMEM_CMP_EQ, wanted); }
    long value;
    const long first;
};

Counter counter(40);

struct Point {
    double x, y, z;
    char name[8];
};

template <typename T> struct Mailbox {
    static T slots[4];
    static inline T latest{};
};
template <typename T> T Mailbox<T>::slots[4];

Point &local_static() {
    static Point point = {1, 2, 3, "here"};
    return point;
}

class Team {
  public:
    Team(shmem_team_t parent, int start, int stride, int size) {
        shmem_team_split_strided(parent, start, stride, size, nullptr, 0, &handle);
    }
    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;
    ~Team() { shmem_team_destroy(handle); }
    shmem_team_t handle = SHMEM_TEAM_INVALID;
};

class Context {
  public:
    explicit Context(long options = 0) { shmem_ctx_create(options, &handle); }
    explicit Context(const Team &team) { shmem_team_create_ctx(team.handle, 0, &handle); }
    Context(const Context &) = delete;
    Context &operator=(const Context &) = delete;
    ~Context() { shmem_ctx_destroy(handle); }
    shmem_ctx_t handle = SHMEM_CTX_INVALID;
};

template <typename T> struct Free {
    void operator()(T *p) const { shmem_free(p); }
};
template <typename T> using Symmetric = std::unique_ptr<T[], Free<T>>;
template <typename T> Symmetric<T> allocate(size_t nelems) {
    return Symmetric<T>(static_cast<T *>(shmem_calloc(nelems, sizeof(T))));
}

void static_objects() {
    EXPECT(counter.value == 40 && counter.first == 40, "%ld", counter.value);
    shmem_barrier_all();
    counter.add(me + 1, next_pe);
    counter.wait_for(40 + before + 1);
    shmem_barrier_all();
    Point mine = {me + 0.25, 0, -1.0 * me, "point"};
    shmem_putmem(&Mailbox<Point>::slots[me % 4], &mine, sizeof mine, next_pe);
    shmem_putmem(&Mailbox<Point>::latest, &mine, sizeof mine, next_pe);
    shmem_putmem(&local_static(), &mine, sizeof mine, next_pe);
    shmem_int_p(&Mailbox<int>::latest, me + 3, next_pe);
    shmem_barrier_all();
    const Point &got = Mailbox<Point>::slots[before % 4];
    EXPECT(got.x == before + 0.25 && got.z == -1.0 * before, "%g %g", got.x, got.z);
    EXPECT(std::string(got.name) == "point", "%.8s", got.name);
    EXPECT(Mailbox<Point>::latest.x == before + 0.25, "%g", Mailbox<Point>::latest.x);
    EXPECT(local_static().x == before + 0.25, "%g", local_static().x);
    EXPECT(Mailbox<int>::latest == before + 3, "%d", Mailbox<int>::latest);
    shmem_barrier_all();
}

void containers() {
    auto inbox = allocate<double>(1000);
    std::vector<double> numbers(1000), back(1000);
    std::iota(numbers.begin(), numbers.end(), 0.5 + me);
    shmem_double_put(inbox.get(), numbers.data(), numbers.size(), next_pe);
    shmem_barrier_all();
    shmem_double_get_nbi(back.data(), inbox.get(), back.size(), next_pe);
    shmem_quiet();
    EXPECT(back == numbers, "what I put is not there");
    EXPECT(std::accumulate(&inbox[0], &inbox[1000], 0.0) == 1000 * (0.5 + before) + 499500,
           "the sum of what came");
    std::sort(back.begin(), back.end(), [](double a, double b) { return a > b; });
    EXPECT(back[0] == 999.5 + me, "%g", back[0]);
    shmem_barrier_all();
}

void handles() {
    static long words[64];
    Team reversed(SHMEM_TEAM_WORLD, npes - 1, -1, npes);
    EXPECT(shmem_team_my_pe(reversed.handle) == npes - 1 - me, "%d",
           shmem_team_my_pe(reversed.handle));
    Context of_team(reversed), of_world(SHMEM_CTX_NOSTORE);
    shmem_team_t team = SHMEM_TEAM_INVALID;
    EXPECT(shmem_ctx_get_team(of_team.handle, &team) == 0 && team == reversed.handle, "its team");
    for (int pe = 0; pe < npes; pe++)
        shmem_ctx_long_atomic_add(of_team.handle, &words[me], 1 + pe, pe);
    shmem_ctx_quiet(of_team.handle);
    EXPECT(shmem_team_sync(reversed.handle) == 0, "sync");
    for (int pe = 0; pe < npes; pe++)
        EXPECT(words[pe] == npes - me, "from PE %d: %ld", pe, words[pe]);
    EXPECT(shmem_ctx_long_g(of_world.handle, &words[me], next_pe) == npes - next_pe, "g");
    shmem_barrier_all();
}

// The signal is a reference to a word, the payload a string.
void signals() {
    static char text[64];
    static uint64_t sig, acknowledged;
    for (uint64_t turn = 1; turn <= 100; turn++) {
        std::string message = "turn " + std::to_string(turn) + " of PE " + std::to_string(me);
        shmem_char_put_signal(text, message.c_str(), message.size() + 1, &sig, turn,
                              SHMEM_SIGNAL_SET, next_pe);
        uint64_t got = shmem_signal_wait_until(&sig, SHMEM_CMP_GE, turn);
        std::string wanted = "turn " + std::to_string(turn) + " of PE " + std::to_string(before);
        EXPECT(got == turn && wanted == text, "%s", text);
        shmem_signal_add(&acknowledged, 1, before);
        shmem_signal_wait_until(&acknowledged, SHMEM_CMP_EQ, turn);
    }
    shmem_barrier_all();
}

void threads() {
    static long hits[8];
    std::atomic<int> wrong(0);
    std::vector<std::thread> all;
    for (int i = 0; i < 4; i++)
        all.emplace_back([i, &wrong] {
            Context mine(SHMEM_CTX_PRIVATE);
            for (int turn = 0; turn < 200; turn++)
                shmem_ctx_long_atomic_inc(mine.handle, &hits[i], turn % npes);
            long seen = shmem_ctx_long_atomic_fetch(mine.handle, &hits[i], 0);
            wrong += seen < 1 || seen > 200 * npes;
        });
    for (auto &thread : all)
        thread.join();
    shmem_barrier_all();
    long expected = 0;
    for (int turn = 0; turn < 200; turn++)
        expected += turn % npes == me ? npes : 0;
    for (int i = 0; i < 4; i++)
        EXPECT(hits[i] == expected, "%ld, not %ld", hits[i], expected);
    EXPECT(wrong == 0, "%d", wrong.load());
    shmem_barrier_all();
}

// Every type of the tables, by its name.
void every_type() {
#define ELEMENT(N, T, _)                                                           \
    {                                                                              \
        using Type = T;                                                            \
        static Type word, words[4];                                                \
        const T mine[4] = {Type(1), Type(2), Type(me + 3), Type(4)};               \
        shmem_##N##_p(&word, Type(me + 1), next_pe);                               \
        shmem_##N##_put(words, mine, 4, next_pe);                                  \
        shmem_barrier_all();                                                       \
        T got = shmem_##N##_g(&word, next_pe);                                     \
        EXPECT(got == Type(me + 1), "g of " #N);                                   \
        EXPECT(word == Type(before + 1), "p of " #N);                              \
        EXPECT(words[2] == Type(before + 3) && words[3] == Type(4), "put of " #N); \
        shmem_barrier_all();                                                       \
    }
    SHMEM_RMA_TYPES(ELEMENT, _)
#undef ELEMENT
#define ATOMIC(N, T, _)                                                                \
    {                                                                                  \
        using Type = T;                                                                \
        static Type word;                                                              \
        shmem_##N##_atomic_add(&word, Type(me + 1), 0);                                \
        shmem_##N##_wait_until(&word, SHMEM_CMP_GE, Type(0));                          \
        shmem_barrier_all();                                                           \
        EXPECT(shmem_##N##_atomic_fetch(&word, 0) == Type(npes * (npes + 1) / 2), #N); \
        shmem_barrier_all();                                                           \
    }
    SHMEM_AMO_TYPES(ATOMIC, _)
#undef ATOMIC
}

} // namespace

int main() {
    int provided = -1;
    EXPECT(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0, "%d", provided);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    next_pe = (me + 1) % npes;
    before = (me + npes - 1) % npes;
    tap_start(me);
    tap_case("static objects of classes and templates");
    static_objects();
    tap_case("containers as local buffers, symmetric memory in a smart pointer");
    containers();
    tap_case("teams and contexts in objects");
    handles();
    tap_case("signals and strings");
    signals();
    tap_case("a context for each std::thread");
    threads();
    tap_case("every type by name");
    every_type();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
