// SPDX-License-Identifier: BSD-3-Clause
// Description: waits of kernels rest between two looks: a long one, and at once one of a word in
// host memory, or of PEs that share a GPU; and look at the abort word every millisecond.
// PEs: 1
#include <cstdint>
#include <initializer_list>
#include <time.h>

static uint64_t now_ns, rested_ns;
static unsigned rests;

// A clock that goes on only by rests and by what the test says a look takes.
static void pretend_clock(struct timespec *now) {
    now->tv_sec = static_cast<time_t>(now_ns / 1000000000);
    now->tv_nsec = static_cast<long>(now_ns % 1000000000);
}
static void pretend_rest(uint32_t ns) {
    rests++;
    rested_ns += ns;
    now_ns += ns;
}
#define clock_gettime(clock, now) pretend_clock(now)
#define WEFT_HOST_REST(ns)        pretend_rest(ns)
#include "base/gpu.cuh"
#include "transport/gpu_kernel.h"
#include "tap.h"

static const unsigned LOOK_NS = 600;
static uint32_t over, gave_up[4];

struct waited {
    unsigned turns, rests;
    uint64_t rested_ns;
};

// A wait of so many turns, unless it gives up.
static waited wait_for(unsigned turns, uint32_t own_rest_ns, uint32_t rest_ns) {
    struct weft_gpu_abort abort = {&over, gave_up, rest_ns};
    struct weft_spin spin = {};
    waited result = {};
    spin.rest_ns = own_rest_ns;
    rests = 0, rested_ns = 0, now_ns = 1000000;
    while (result.turns < turns && weft_spin(&spin, abort)) {
        now_ns += LOOK_NS;
        result.turns++;
    }
    result.rests = rests, result.rested_ns = rested_ns;
    return result;
}

int main() {
    tap_start(0);
    tap_case("a wait of 10 us does not rest");
    EXPECT(wait_for(17, 0, 0).rests == 0, "%u rests", rests);
    tap_case("a wait of 100 us rests between any two looks, when 20 us are over");
    waited lasting = wait_for(167, 0, 0);
    EXPECT(lasting.rests >= 100 && lasting.rests <= 167 - 33, "%u rests", lasting.rests);
    EXPECT(lasting.rested_ns == 100 * lasting.rests, "%u rests of %llu ns in all", lasting.rests,
           static_cast<unsigned long long>(lasting.rested_ns));
    tap_case("a wait for a word of the host rests from the first look on");
    waited host = wait_for(10, WEFT_GPU_REST_NS, 0);
    EXPECT(host.rests == 10 && host.rested_ns == 10 * WEFT_GPU_REST_NS, "%u rests", host.rests);
    tap_case("so does one of a PE that shares its GPU");
    waited shared = wait_for(10, 0, WEFT_GPU_REST_NS);
    EXPECT(shared.rests == 10 && shared.rested_ns == 10 * WEFT_GPU_REST_NS, "%u rests",
           shared.rests);
    tap_case("each gives up when the job is over");
    over = 1;
    for (uint32_t own_rest_ns : {0U, 500U})
        for (uint32_t rest_ns : {0U, 500U}) {
            gave_up[0] = 0;
            EXPECT(wait_for(4000, own_rest_ns, rest_ns).turns < 2000 && gave_up[0] == 1,
                   "rests of %u and %u ns", own_rest_ns, rest_ns);
        }
    return tap_finish();
}
