#!/bin/sh
# Static data under many ways to build an executable: PIE and not, gcc, clang, lld, sanitizers, the
# archive instead of the shared library, code models with several writable segments; and a 1 GiB
# zero array that must cost nothing at start-up.
build=${WEFT_BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
failed=0

# try NAME FLAGS...: builds tests/job/statics.c with $compiler and runs it with 3 PEs.
try() {
    name=$1
    shift
    number=$((number + 1))
    if OSHCC=$compiler "$build/bin/oshcc" -std=gnu11 -D_GNU_SOURCE -O1 -g -Itests "$@" tests/job/statics.c \
        -o "$work/program" >"$work/log" 2>&1 &&
        timeout 60 "$build/bin/oshrun" -n 3 "$work/program" >"$work/log" 2>&1; then
        echo "ok $number - $name"
    else
        sed 's/^/# /' "$work/log" >&2
        echo "not ok $number - $name"
        failed=1
    fi
}

compiler=gcc
try 'gcc, position-independent' -fPIE -pie
try 'gcc, fixed addresses' -fno-pie -no-pie
try 'gcc, lazy binding' -Wl,-z,lazy
try 'gcc, bound at start' -Wl,-z,now
try 'gcc, Weft inside' -static-weft -Wl,-z,lazy
try 'gcc, Weft inside, fixed addresses' -static-weft -fno-pie -no-pie
try 'gcc, address sanitizer' -fsanitize=address,undefined
if [ "$(uname -m)" = x86_64 ]; then
    try 'gcc, two writable segments' -mcmodel=medium
    try 'gcc, two writable segments at fixed addresses' -mcmodel=medium -fno-pie -no-pie
    try 'gcc, two writable segments, gold' -mcmodel=medium -fuse-ld=gold
    try 'gcc, two writable segments, Weft inside' -mcmodel=medium -static-weft -Wl,-z,lazy
    try 'gcc, large model, 3 GiB of zeros' -mcmodel=large -DHUGE_BYTES='(3L<<30)'
fi
try 'gcc, 1 GiB of zeros' -DHUGE_BYTES='(1L<<30)'
compiler=clang
try 'clang, position-independent' -fPIE -pie
try 'clang, fixed addresses' -fno-pie -no-pie
try 'clang, lld' -fuse-ld=lld -fPIE -pie
try 'clang, lld, fixed addresses' -fuse-ld=lld -fno-pie -no-pie
try 'clang, address sanitizer' -fsanitize=address
echo "1..$number"
exit $failed
