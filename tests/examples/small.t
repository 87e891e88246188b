#!/bin/sh
# The small examples check their results themselves: on any number of PEs they have to agree.
build=${WEFT_BUILD:-build}
number=0
failed=0
for example in counts heat primes; do
    for pes in 1 2 3 4 6; do
        number=$((number + 1))
        if output=$(timeout 60 "$build/bin/oshrun" -n $pes "$build/examples/$example" 2>&1); then
            echo "ok $number - $example on $pes PEs"
        else
            echo "$output" | sed 's/^/# /' >&2
            echo "not ok $number - $example on $pes PEs"
            failed=1
        fi
    done
done
echo "1..$number"
exit $failed
