/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the words that streams wait for are released when the job is over, all of them,
 * again and again, but none before, no other words, and none of a process without work. PEs: 1 2 */
#include "inside.h"
#include "base/clock.h"
#include "base/futex.h"
#include "transport/gpu_rescue.h"
#include <sys/mman.h>

enum { WORDS = 200, SPARE = 8, EQUAL = 1 }; /* more words than a batch of the driver accepts */

static _Atomic uint32_t *job_over; /* a job's abort word, of this test's own */
static uint32_t *words, *others;

static void begin_watch(void) {
    const uint32_t zeros[WORDS + SPARE] = {0};
    gpu_write(words, zeros, sizeof zeros);
    gpu_write(others, zeros, SPARE * sizeof *others);
    *job_over = 0;
    INSIDE(weft_gpu_rescue_open(weft_device.gpu, job_over));
}

static void end_job(void) {
    *job_over = 1;
    weft_futex_wake(job_over, WEFT_FUTEX_ALL);
}

static int count_set(const uint32_t *array, int n) {
    uint32_t values[WORDS + SPARE];
    int set = 0;
    gpu_copy(values, array, (size_t)n * sizeof *values);
    for (int i = 0; i < n; i++)
        set += values[i] == 1;
    return set;
}

static void release(void) {
    tap_case("a stream that waits is released once the job is over, and not before");
    begin_watch();
    INSIDE(weft_gpu_rescue_add(words, WORDS));
    INSIDE(weft_gpu_rescue_add(words, WORDS / 2)); /* the larger count holds */
    INSIDE(weft_gpu_rescue_add(others, 1));
    weft_cu_stream stream = gpu_stream_new();
    INSIDE(weft_cuda.cuStreamWaitValue32(stream, (weft_cu_address)&words[0], 1, EQUAL));
    INSIDE(weft_cuda.cuStreamWaitValue32(stream, (weft_cu_address)&words[WORDS - 1], 1, EQUAL));
    INSIDE(weft_cuda.cuStreamWaitValue32(stream, (weft_cu_address)&others[0], 1, EQUAL));
    weft_gpu_rescue_note();
    weft_clock_sleep_ms(20);
    EXPECT(count_set(words, WORDS) == 0, "released ahead of the job's end");
    end_job();
    INSIDE(weft_cuda.cuStreamSynchronize(stream));
    INSIDE((weft_gpu_rescue_close(), 0)); /* within the 400 ms that a process is granted */
    EXPECT(count_set(words, WORDS + SPARE) == WORDS, "%d of %d words",
           count_set(words, WORDS + SPARE), WORDS);
    EXPECT(count_set(others, SPARE) == 1, "%d other words, not 1", count_set(others, SPARE));
    INSIDE(weft_cuda.cuStreamDestroy(stream));
}

static void no_work(void) {
    tap_case("a process that never had work is left alone, and a second close does nothing");
    begin_watch();
    INSIDE(weft_gpu_rescue_add(words, WORDS));
    end_job();
    weft_clock_sleep_ms(60);
    INSIDE((weft_gpu_rescue_close(), 0));
    INSIDE((weft_gpu_rescue_close(), 0));
    EXPECT(count_set(words, WORDS) == 0, "%d words are set", count_set(words, WORDS));
}

int main(void) {
    shmem_init();
    inside_start();
    INSIDE((weft_gpu_rescue_close(), 0)); /* the library's own */
    words = inside_malloc((WORDS + SPARE) * sizeof *words);
    others = inside_malloc(SPARE * sizeof *others);
    job_over = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (getenv("WEFT_FAKE_DELAY_US")) /* each word takes so long that the GPU has not stopped in
                                         time */
        tap_case("a stream that waits is released # SKIP the pretended GPU is slowed down");
    else
        release();
    no_work();
    return gpu_finish();
}
