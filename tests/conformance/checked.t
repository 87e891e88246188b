#!/bin/sh
# Conforming programs contain no misuse: every program of this suite, and the small examples, in checked mode.
# Far: also.
build=${WEFT_BUILD:-build}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
number=0
failed=0
for source in tests/conformance/*.c tests/conformance/*.cc examples/counts examples/heat examples/primes; do
    program=$build/${source%.c*}
    number=$((number + 1))
    if SHMEM_DEBUG=1 timeout 120 "$build/bin/oshrun" -n 3 "$program" >"$log" 2>&1; then
        echo "ok $number - ${source#*/}"
    else
        sed 's/^/# /' "$log" >&2
        echo "not ok $number - ${source#*/}"
        failed=1
    fi
done
echo "1..$number"
exit $failed
