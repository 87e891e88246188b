#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes the data of the example, runs it on -ranks PEs (2), on this host or on those of -hosts, and verifies the results:
#
#     run.sh [-ranks N] [-hosts a,b:2] [-blocks N] [-heads N] [-page-size N] [-head-dim N] [-times N] [-data FOLDER] [-gpu]
#
# -pes is another name for -ranks. BUILD names the folder of the build. The data is removed at the end unless -data names
# a folder for it.
set -eu
here=$(dirname "$0")
build=${BUILD:-$here/../../build}
ranks=2 hosts='' blocks=64 heads=8 page_size=16 head_dim=128 data='' gpu='' times=20

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
    -ranks | -pes | -hosts | -blocks | -heads | -page-size | -head-dim | -times | -data)
        [ $# -gt 1 ] || fail "$1 needs a value"
        case $1 in
        -hosts) hosts=$2 ;;
        -blocks) number "$1" "$2" 65536 && blocks=$2 ;;
        -heads) number "$1" "$2" 128 && heads=$2 ;;
        -page-size) number "$1" "$2" 1024 && page_size=$2 ;;
        -head-dim) number "$1" "$2" 512 && head_dim=$2 ;;
        -times) number "$1" "$2" 10000 && times=$2 ;;
        -data) data=$2 ;;
        *) number "$1" "$2" 4096 && ranks=$2 ;;
        esac
        shift
        ;;
    *) fail "$1: options are -ranks, -hosts, -blocks, -heads, -page-size, -head-dim, -times and -data with a value, and -gpu" ;;
    esac
    shift
done
if [ -z "$data" ]; then
    data=$(mktemp -d)
    trap 'rm -rf "$data"' EXIT
fi
"$here/data_gen.py" "$data" "$ranks" "$blocks" "$heads" "$page_size" "$head_dim"
"$build/bin/oshrun" -n "$ranks" ${hosts:+--hosts "$hosts"} "$build/examples/kv_shuffle" -data "$data" -blocks "$blocks" \
    -heads "$heads" -page-size "$page_size" -head-dim "$head_dim" -times "$times" $gpu
"$here/verify.py" "$data" "$ranks" "$blocks"
