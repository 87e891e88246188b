/* SPDX-License-Identifier: BSD-3-Clause */
/* A CUDA driver for tests on machines without a GPU: libcuda.so.1 with the calls of base/cuda.h,
 * over the host's memory and threads. It is strict where the real one is, and where the real one
 * is vague it takes the least convenient reading.
 *
 *   WEFT_FAKE_GPUS=2           how many GPUs (0: none); CUDA_VISIBLE_DEVICES chooses among them
 *   WEFT_FAKE_MEMORY_MB=4096   memory of each, counted per process
 *   WEFT_FAKE_NO_PEER=0-1,2-3  pairs of GPUs that cannot reach each other's memory
 *   WEFT_FAKE_NO_ATOMICS=0-1   pairs of GPUs without atomics on each other's memory
 *   WEFT_FAKE_FENCED_WRITES=1  stream writes without a fence are refused
 *   WEFT_FAKE_DELAY_US=0       up to so much delay before a stream's operation, at random
 *   WEFT_FAKE_SEED=0           of these delays, and of the order of a kernel's threads
 *   WEFT_FAKE_WEAK=1           a kernel's stores arrive late (buffer.h), loads are early (cache.h),
 *                              bulk copies take as long as they may (async.h)
 *   WEFT_FAKE_HANG_MS=0        a kernel traps whose threads have all polled for so long (0: never)
 *   WEFT_FAKE_SMS=132          multiprocessors of each, and resident blocks of its kernels
 *   WEFT_FAKE_TRAPS=FILE       gets a line for each trap of a kernel: the GPU, and when, in ns of
 *                              the clock that the kernel has read
 *
 * Files, upwards: error, link, call (this), gpu (devices, contexts), guard (who may touch GPU
 * memory), host (registration), memory, space (addresses), work, stream, graph, capture; and what
 * streams do: event, copy, word, function, fibre (stacks), buffer (stores), cache (loads), bulk_add
 * (sums), async (bulk copies), thread (what a kernel's threads call), grid (which of them runs),
 * module (kernels, with kernel.h and device.h).
 *
 * Every call is one expression under one lock: CALL(NEED, expression). */
#ifndef TESTS_GPU_DRIVER_CALL_H
#define TESTS_GPU_DRIVER_CALL_H

#include "base/cuda.h"
#include "error.h"
#include <pthread.h>
#include <stdbool.h>

/* The exported functions, under the names of the table; checked against it by the compiler. */
#define DECLARE(name, exported, arguments) \
    __attribute__((visibility("default"))) int name arguments __asm__(exported);
WEFT_CUDA_CALLS(DECLARE)
#undef DECLARE

/* Over all state of the driver. */
extern pthread_mutex_t driver_lock;

/* The requirements of a call: none, cuInit, a current context that has not failed, or a context
 * without a capture that forbids the call. */
enum need { NOTHING, INITIALISED, CONTEXT, NO_CAPTURE };

/* Takes the lock. Returns an error if the requirement is not met. */
int call_begin(enum need need);

/* Releases the lock, and returns its argument. */
int call_end(int error);

#define CALL(need, expression)                       \
    do {                                             \
        int refused = call_begin(need);              \
        int came = refused ? refused : (expression); \
        return call_end(came);                       \
    } while (0)

/* Set in threads that run a function of cuLaunchHostFunc, which may not call CUDA. */
extern _Thread_local bool call_in_host_function;

/* Returns a number from the environment, or `preset` if it is not set. */
long call_setting(const char *name, long preset);

#endif
