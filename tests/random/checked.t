#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checked mode sees no misuse in a random program, which contains none. Far: also, where tests are long.
build=${WEFT_BUILD:-build}
number=0
failed=0
for pes in 2 3 5; do
    number=$((number + 1))
    if output=$(SHMEM_DEBUG=1 "$build/bin/oshrun" -n $pes "$build/tests/random/random" \
        --ops 40000 2>&1); then
        echo "ok $number - on $pes PEs"
    else
        failed=1
        echo "not ok $number - on $pes PEs"
        echo "$output" | grep -v '%$' | sed 's/^/# /' >&2
    fi
done
echo "1..$number"
exit $failed
