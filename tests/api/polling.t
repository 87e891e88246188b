#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# tests/api/polling.c by three PEs on one processor, so that they share it on every machine. Far: also.
build=${WEFT_BUILD:-build}
processor=$(taskset -pc $$ | sed 's/.*: *\([0-9]*\).*/\1/')
exec taskset -c "$processor" "$build/bin/oshrun" -n 3 "$build/tests/api/polling"
