#!/bin/sh
# The small examples check their results themselves: on any number of PEs they have to agree.
build=${WEFT_BUILD:-build}
number=0
failed=0
check() {
    what=$1
    shift
    number=$((number + 1))
    if output=$(timeout 60 "$@" 2>&1); then
        echo "ok $number - $what"
    else
        echo "$output" | sed 's/^/# /' >&2
        echo "not ok $number - $what"
        failed=1
    fi
}
for pes in 1 2 3 4 6; do
    for example in counts heat primes; do
        check "$example on $pes PEs" "$build/bin/oshrun" -n $pes "$build/examples/$example"
    done
    for type in f32 bf16; do
        check "matmul_allreduce of $type on $pes PEs" env BUILD="$build" examples/matmul_allreduce/run.sh \
            -ranks $pes -M 130 -K 96 -N 200 -type $type -device cpu
    done
    check "matmul_allreduce on $pes GPUs" env BUILD="$build" LD_LIBRARY_PATH="$build/tests/gpu/driver" \
        examples/matmul_allreduce/run.sh -ranks $pes -M 60 -K 40 -N 50 -device gpu
done
echo "1..$number"
exit $failed
