#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes the data of the example, runs it on -ranks PEs (2), on this host or on those of -hosts, and verifies the results:
#
#     run.sh [-ranks N] [-hosts a,b:2] [-type int32_t|float16_t|bfloat16_t|all] [-cases N] [-times N] [-data FOLDER] [-gpu]
#
# -pes is another name for -ranks. BUILD names the folder of the build. The data is removed at the end unless -data names
# a folder for it.
set -eu
here=$(dirname "$0")
build=${BUILD:-$here/../../build}
ranks=2 hosts='' types=int32_t cases=14 data='' gpu='' times=20

fail() {
    echo "run.sh: $1" >&2
    exit 2
}
number() {
    if ! [ "$2" -ge 1 ] 2>/dev/null || [ "$2" -gt "$3" ]; then
        fail "$1 $2: a number from 1 to $3 is needed"
    fi
}
while [ $# -gt 0 ]; do
    case $1 in
    -gpu) gpu=-gpu ;;
    -ranks | -pes | -hosts | -type | -cases | -times | -data)
        [ $# -gt 1 ] || fail "$1 needs a value"
        case $1 in
        -hosts) hosts=$2 ;;
        -type) types=$2 ;;
        -cases) number "$1" "$2" 24 && cases=$2 ;;
        -times) number "$1" "$2" 10000 && times=$2 ;;
        -data) data=$2 ;;
        *) number "$1" "$2" 4096 && ranks=$2 ;;
        esac
        shift
        ;;
    *) fail "$1: options are -ranks, -hosts, -type, -cases, -times and -data with a value, and -gpu" ;;
    esac
    shift
done
case $types in
all) types='int32_t float16_t bfloat16_t' ;;
int32_t | float16_t | bfloat16_t) ;;
*) fail "-type $types: types are int32_t, float16_t, bfloat16_t and all" ;;
esac
if [ -z "$data" ]; then
    data=$(mktemp -d)
    trap 'rm -rf "$data"' EXIT
fi
for type in $types; do
    "$here/data_gen.py" "$data/$type" "$ranks" "$type" "$cases"
    "$build/bin/oshrun" -n "$ranks" ${hosts:+--hosts "$hosts"} "$build/examples/allgather" -data "$data/$type" \
        -type "$type" -cases "$cases" -times "$times" $gpu
    "$here/verify.py" "$data/$type" "$ranks" "$cases"
done
