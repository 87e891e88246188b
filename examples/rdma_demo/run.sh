#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs the example on -ranks PEs (2), on this host or on those of -hosts. Other options are the program's:
#
#     run.sh [-ranks N] [-hosts a,b:2] [-max BYTES] [-gpu]
#
# -pes is another name for -ranks. BUILD names the folder of the build.
ranks=2
hosts=
words=$#
while [ "$words" -gt 0 ]; do
    word=$1
    shift
    words=$((words - 1))
    case $word in
    -ranks | -pes | -hosts)
        if [ "$words" -eq 0 ]; then
            echo "run.sh: $word needs a value" >&2
            exit 2
        fi
        [ "$word" = -hosts ] && hosts=$1 || ranks=$1
        shift
        words=$((words - 1))
        ;;
    *) set -- "$@" "$word" ;;
    esac
done
build=${BUILD:-$(dirname "$0")/../../build}
exec "$build/bin/oshrun" -n "$ranks" ${hosts:+--hosts "$hosts"} "$build/examples/rdma_demo" "$@"
