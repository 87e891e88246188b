#!/bin/sh
# Runs the benchmarks three times, Weft and other OpenSHMEM libraries in turn, and leaves JSON lines.
#
#   bench/run.sh BUILD RESULTS
#
# PEER names a folder with another library's oshcc and oshrun; without it the first oshcc in PATH is
# taken, and PEER= (empty) leaves peers out. PEER_FLAGS go to its oshrun.
set -eu
build=$1 results=$2
: "${PEER=$(dirname "$(command -v oshcc || echo /)")}"
: "${PEER_FLAGS=--allow-run-as-root --oversubscribe --bind-to none}"
programs="point_to_point collectives"
patience=300 # seconds; a peer that takes longer, or does not run here, has no rows
mkdir -p "$results"

# Prints the milliseconds of a command as a row.
time_empty() { # library, command...
    library=$1
    shift
    begin=$(date +%s%N)
    "$@" >/dev/null 2>&1 || return 0
    end=$(date +%s%N)
    echo "{\"row\": \"empty program under the launcher\", \"value\": $(((end - begin) / 1000))e-3," \
        "\"unit\": \"ms\", \"limit\": 0, \"pes\": 2, \"library\": \"$library\"}"
}

if [ -n "$PEER" ] && [ -x "$PEER/oshcc" ] && [ -x "$PEER/oshrun" ]; then
    mkdir -p "$build/bench/peer"
    for program in $programs empty; do
        "$PEER/oshcc" -O2 -D_GNU_SOURCE -Ibench "bench/$program.c" -o "$build/bench/peer/$program"
    done
else
    PEER=
fi

for run in 1 2 3; do
    echo "bench: run $run of 3" >&2
    for pes in 2 4; do
        "$build/bin/oshrun" -n $pes "$build/bench/point_to_point" \
            >"$results/point_to_point-${pes}pe-$run.jsonl"
    done
    "$build/bin/oshrun" -n 2 "$build/bench/collectives" >"$results/collectives-2pe-$run.jsonl"
    "$build/bin/oshrun" -n 2 "$build/bench/far" >"$results/near-2pe-$run.jsonl"
    WEFT_PRETEND_HOSTS=each WEFT_ENGINE="$(realpath "$build")/tests/far/libweft_fake_engine.so" \
        "$build/bin/oshrun" -n 2 "$build/bench/far" >"$results/far-2pe-$run.jsonl"
    time_empty Weft "$build/bin/oshrun" -n 2 "$build/bench/empty" >"$results/start-2pe-$run.jsonl"
    if [ -n "$PEER" ]; then
        for program in $programs; do
            # shellcheck disable=SC2086
            timeout $patience "$PEER/oshrun" $PEER_FLAGS -np 2 "$build/bench/peer/$program" \
                >"$results/peer-$program-2pe-$run.jsonl" 2>/dev/null || true
        done
        # shellcheck disable=SC2086
        time_empty "$(sed -n 's/.*"library": "\(.*\)".*/\1/p;q' "$results/peer-collectives-2pe-$run.jsonl")" \
            "$PEER/oshrun" $PEER_FLAGS -np 2 "$build/bench/peer/empty" >"$results/peer-start-2pe-$run.jsonl"
    fi
    "$build/bin/oshrun" -n 2 "$build/bench/operators" >"$results/operators-2pe-$run.jsonl"
done
for pes in 1 2 4 8 16 32 64; do
    "$build/bin/oshrun" -n $pes "$build/bench/scaling" >"$results/scaling-${pes}pe.jsonl"
done
