#!/bin/sh
# Runs the tests of one or more build folders with prove and prints its summary.
#
#   tests/prove.sh [-g] [-f FILTER] BUILD[:PE-COUNTS[:FILTER]]...
#
# A C or C++ test is run once per PE count under oshrun; the counts are the line "PEs: ..." of its
# head, or 1 2 3 4. PE-COUNTS (like 2,4) leaves only those of them. FILTER is an extended regular
# expression on room/name. A test of GPUs whose line says "also staged" is run once more, on 2 PEs
# where the two GPUs do not reach each other's memory; of the first build also on 3 PEs, and each test
# of GPUs on 2 PEs with delays. Scripts (tests/*/*.t) run once,
# for the first build only. With WEFT_TEST_LONG=1 in the environment tests take their long forms:
# more time, and 5 and 8 PEs where the head names none. As many tests run at once as there are
# processors, 4 at most (WEFT_TEST_JOBS=1: one behind the other); on real GPUs (-g) only one.
set -eu
if [ -n "${WEFT_TEST_LONG:-}" ]; then
    pes_default='1 2 3 4 5 8' patience=3600
else
    pes_default='1 2 3 4' patience=
fi
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
only=.
real_gpu=
if [ "${1:-}" = -g ]; then
    real_gpu=1
    shift
fi
if [ "${1:-}" = -f ]; then
    only=$2
    shift 2
fi
# Writes the script that prove runs, with these words before the program.
add() {
    script=$build/t/$(echo "$name" | tr / -)-${n}pe$1.t
    shift
    printf '#!/bin/sh\nexec %s timeout %s %s/bin/oshrun -n %s %s/tests/%s\n' \
        "$*" "${patience:-120}" "$build" "$n" "$build" "$name" >"$script"
    chmod +x "$script"
    list="$list $script"
}
add_gpu() {
    pretended="env LD_LIBRARY_PATH=$(realpath "$build")/tests/gpu/driver GPU_REQUIRED=1"
    delays="WEFT_FAKE_DELAY_US=200 WEFT_FAKE_SEED=$$"
    staged=$(sed -n 's/^.*PEs: .*also staged.*$/yes/p;15q' "$source" | head -n 1)
    if [ -n "$real_gpu" ]; then
        add ''
        [ "$n$staged" != 2yes ] || add -staged "env SHMEMX_PEER_ACCESS=off"
        return
    fi
    add '' "$pretended"
    [ "$n$staged" != 2yes ] || add -staged "$pretended WEFT_FAKE_NO_PEER=0-1 $delays"
    [ $first = 1 ] || return 0
    [ "$n" != 2 ] || add -delays "$pretended $delays"
    [ "$n$staged" != 3yes ] || add -staged "$pretended WEFT_FAKE_NO_PEER=0-1 WEFT_FAKE_GPUS=3"
}

jobs=${WEFT_TEST_JOBS:-$(nproc)}
[ "$jobs" -le 4 ] || jobs=4
[ -z "$real_gpu" ] || jobs=1
list=
first=1
for item; do
    build=$(echo "$item" | cut -d: -f1)
    counts=$(echo "$item" | cut -d: -f2 -s | tr , ' ')
    filter=$(echo "$item" | cut -d: -f3 -s)
    rm -rf "$build/t"
    mkdir -p "$build/t"
    # Scripts come first, for some of them wait long.
    if [ $first = 1 ] && [ -z "$real_gpu" ]; then
        WEFT_BUILD=$build
        export WEFT_BUILD
        for test in tests/*/*.t; do
            echo "$test" | grep -qE "$only" || continue
            script=$build/t/$(echo "$test" | sed 's|^tests/||' | tr / -)
            printf '#!/bin/sh\nexec timeout %s %s\n' "${patience:-300}" "$test" >"$script"
            chmod +x "$script"
            list="$list $script"
        done
    fi
    for source in tests/*/*.c tests/*/*.cc; do
        name=$(echo "$source" | sed 's|^tests/||; s|\.cc*$||')
        echo "$name" | grep -qE "${filter:-.}" && echo "$name" | grep -qE "$only" || continue
        case $name in gpu/*) ;; *) [ -z "$real_gpu" ] || continue ;; esac
        pes=$(sed -n 's/^.*PEs: *\([0-9 ]*\).*$/\1/p;15q' "$source" | head -n 1)
        grep -q 'PEs: none' "$source" && continue
        pes=$(echo ${pes:-$pes_default})
        for n in $pes; do
            case " ${counts:-$n} " in *" $n "*) ;; *) continue ;; esac
            case $name in gpu/*) add_gpu ;; *) add '' ;; esac
        done
    done
    # Of the scripts, only this one has to do with the machine's GPUs: all its scenes on n PEs.
    for n in ${real_gpu:+${counts:-$pes_default}}; do
        echo tests/gpu/death.t | grep -qE "$only" && [ "$n" != 1 ] || continue
        script=$build/t/gpu-death-${n}pe.t
        printf '#!/bin/sh\nexec env WEFT_BUILD=%s GPU_REAL=1 GPU_PES=%s timeout %s tests/gpu/death.t\n' \
            "$build" "$n" "${patience:-300}" >"$script"
        chmod +x "$script"
        list="$list $script"
    done
    first=0
done
# shellcheck disable=SC2086
exec prove --jobs "$jobs" --timer --exec '' $list
