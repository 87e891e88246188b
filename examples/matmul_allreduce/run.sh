#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs the example on -ranks PEs (2), with the other options: run.sh -ranks 2 -M 1024 -K 2048 -N 8192. BUILD names the
# folder of the build.
ranks=2
if [ "$1" = -ranks ]; then
    ranks=$2
    shift 2
fi
build=${BUILD:-$(dirname "$0")/../../build}
exec "$build/bin/oshrun" -n "$ranks" "$build/examples/matmul_allreduce" "$@"
