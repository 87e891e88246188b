#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A libpmix with random answers: errors, values of any type and size, NULL instead of values and texts, invalid ranks
and sizes. PEs never crash, and log what they reject. The library is built here and found like the real one.
WEFT_TEST_SEED repeats a run."""
import os
import re
import subprocess
import tempfile
import time

import starters
from harness import PE, case, main
from starters import spawn

LONG = bool(os.environ.get("WEFT_TEST_LONG"))
SEED = int(os.environ.get("WEFT_TEST_SEED", time.time_ns() % 1000000 if LONG else 1))
TIMES = 2000 if LONG else 80
AT_ONCE = 8
PATIENCE = 1  # seconds: if the answers describe a job of several PEs, the process waits for the others
SOURCE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
struct process { char job[256]; uint32_t rank; };
struct value { uint16_t type; union { char *string; uint32_t uint32; uint64_t room[8]; } data; };
static uint64_t state;
static uint32_t draw(uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}
static uint32_t number(uint32_t right) {
    static const uint32_t numbers[] = {0, 1, 2, 3, 4095, 4096, 4097, 1u << 31, UINT32_MAX, UINT32_MAX - 1};
    return draw(8) ? right : numbers[draw(10)];
}
static int status(void) { return draw(16) ? 0 : draw(2) ? -(int)draw(200) : (int)draw(1000); }
static char *text(void) {
    static const size_t sizes[] = {0, 1, 239, 240, 241, 255, 256, 300, 1 << 20};
    size_t size = draw(4) ? 240 : sizes[draw(9)];
    const char *digits = draw(4) ? "0123456789abcdef" : "%s%n\n\t \xff" "0az-ABCDEF";
    char *made = calloc(1, size + 1);
    for (size_t i = 0; i < size; i++)
        made[i] = digits[draw(16)];
    return draw(8) ? made : NULL;
}
int PMIx_Init(struct process *self, void *info, size_t ninfo) {
    (void)info, (void)ninfo;
    state = strtoull(getenv("FAKE_SEED"), NULL, 10) * 7919;
    memset(self, draw(2) ? 'x' : 0, sizeof self->job); /* without an end */
    self->rank = number(0);
    return status();
}
int PMIx_Put(uint8_t scope, const char *key, struct value *value) { (void)scope, (void)key, (void)value; return status(); }
int PMIx_Commit(void) { return status(); }
int PMIx_Fence(const struct process *who, size_t nwho, const void *info, size_t ninfo) {
    (void)who, (void)nwho, (void)info, (void)ninfo;
    return status();
}
int PMIx_Get(const struct process *of, const char *key, const void *info, size_t ninfo, struct value **value) {
    (void)of, (void)info, (void)ninfo;
    int size = strcmp(key, "pmix.job.size") == 0, wrong = !draw(8), rc = status();
    *value = rc && draw(2) ? NULL : calloc(1, sizeof **value);
    if (!*value || !draw(16)) {
        *value = NULL;
        return rc;
    }
    (*value)->type = wrong ? (uint16_t)(draw(2) ? draw(60) : draw(65536)) : size ? 14 : 3;
    if ((*value)->type == 3)
        (*value)->data.string = text();
    else
        (*value)->data.uint32 = number(1 + draw(8) / 2);
    return rc;
}
int PMIx_Finalize(const void *info, size_t ninfo) { (void)info, (void)ninfo; return status(); }
const char *PMIx_Error_string(int rc) { return rc % 2 ? NULL : "an error"; }
"""


def build(folder):
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", f"{folder}/libpmix.so.2"], input=SOURCE, text=True, check=True)


def outcome(process, until):
    """Returns the exit status, or None if the process waits for other PEs, and stderr."""
    try:
        _, err = process.communicate(timeout=max(0.1, until - time.monotonic()))
        return process.returncode, err
    except subprocess.TimeoutExpired:
        process.kill()
        return None, process.communicate()[1]


@case("answers drawn by lot")
def answers():
    print(f"# WEFT_TEST_SEED={SEED}")
    seen = {}
    with tempfile.TemporaryDirectory(prefix="weft-pmix-") as folder:
        build(folder)
        for first in range(SEED, SEED + TIMES, AT_ONCE):
            processes = {seed: spawn([PE, "join", "exchange", "leave"], {
                "PMIX_RANK": "0", "PMIX_NAMESPACE": "x", "LD_LIBRARY_PATH": folder, "FAKE_SEED": str(seed),
                "ASAN_OPTIONS": "detect_leaks=0"})  # in the library built here
                for seed in range(first, first + AT_ONCE)}
            until = time.monotonic() + PATIENCE
            for seed, process in processes.items():
                status, err = outcome(process, until)
                assert status in (None, 0, 71), f"seed {seed}: status {status}: {err}"
                assert err.isprintable() or err.count("\n") == 1, f"seed {seed}: not one line: {err!r}"
                assert status != 71 or re.search(r"^weft: .*(pmix|PMIx): .*\S", err, re.M), f"seed {seed}: no line: {err}"
                seen[status] = seen.get(status, 0) + 1
    print(f"# ended well: {seen.get(0, 0)}, refused: {seen.get(71, 0)}, waited for others: {seen.get(None, 0)}")
    assert seen.get(71, 0) > TIMES / 4, seen


main()
