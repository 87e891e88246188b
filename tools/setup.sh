#!/bin/sh
# Installs the packages that Weft's demo and tests need and this machine lacks, from Debian or
# Ubuntu. Prints what it installs, asks nothing, and does nothing if no package is missing.
#
#   tools/setup.sh demo     compiler, matmul libraries, tools to fetch the model
#   tools/setup.sh hosts    also UCX, and tools that make hosts on this machine
#   tools/setup.sh check    also the packages that the tests need
set -u
purpose=${1:-demo}
missing=

# need TEST-COMMAND PACKAGE...: if the test fails, requests the first package that this release has.
need() {
    test_command=$1
    shift
    sh -c "$test_command" >/dev/null 2>&1 || missing="$missing $(echo "$@" | tr ' ' '|')"
}

library() { echo "ldconfig -p | grep -qE '$1'"; }

need 'command -v gcc && echo "int main(void){return 0;}" | gcc -x c - -o /dev/null' gcc
need 'echo "#include <stdio.h>" | gcc -E -x c -' libc6-dev
need 'command -v make' make
need "$(library 'libdnnl\.so\.[23] ')" libdnnl2 libdnnl3
need "$(library 'libssl\.so\.3 ')" libssl3t64 libssl3
need "$(library 'libopenblas\.so\.0 ')" libopenblas0-pthread libopenblas0
need 'command -v python3' python3
need 'python3 -m pip --version' python3-pip
need 'test -e /etc/ssl/certs/ca-certificates.crt' ca-certificates
if [ "$purpose" != demo ]; then
    need 'echo "#include <ucp/api/ucp.h>" | gcc -E -x c -' libucx-dev
    need 'command -v ip || test -x /sbin/ip' iproute2
    need 'command -v nft || test -x /usr/sbin/nft' nftables
fi
if [ "$purpose" = check ]; then
    need 'test -e /usr/include/openssl/ssl.h' libssl-dev
    need 'command -v cmake' cmake
    need 'command -v gdb' gdb
    need 'command -v pkg-config' pkg-config pkgconf
    need 'command -v g++' g++
    need 'command -v gfortran' gfortran
    need 'command -v clang' clang
    need 'command -v clang-format' clang-format
    need 'command -v ld.lld || ls /usr/bin/ld.lld-*' lld
    need 'echo "int main(void){return 0;}" | clang -fsanitize=address -x c - -o /dev/null' \
        libclang-rt-14-dev libclang-rt-18-dev libclang-rt-19-dev
    need 'test -e /usr/share/i18n/locales/de_DE' locales
    need 'command -v mandoc' mandoc
    need 'command -v groff' groff-base
    need 'command -v strace' strace
    need 'command -v valgrind' valgrind
    need 'command -v mpirun.openmpi' openmpi-bin
    need 'command -v mpiexec.hydra' mpich
    need 'command -v slurmctld || test -x /usr/sbin/slurmctld' slurmctld
    need 'command -v slurmd || test -x /usr/sbin/slurmd' slurmd
    need 'command -v srun' slurm-client
    need 'ls /usr/lib/*/pmix2/lib/libpmix.so' libpmix-dev # opened by Slurm's plugin
    need 'command -v munged || test -x /usr/sbin/munged' munge
    # A single interpreter must have all packages of a purpose; apt installs them for the system's.
    one_python() { echo "python3 -c '$1' || /usr/bin/python3 -c '$1'"; }
    tests='import numpy, pytest, hypothesis'
    packaging='import ensurepip, os, setuptools, sysconfig, wheel
assert os.path.exists(sysconfig.get_path("include") + "/Python.h")'
    for package in numpy pytest hypothesis; do need "$(one_python "$tests")" python3-$package; done
    for package in venv setuptools wheel dev; do
        need "$(one_python "$packaging")" python3-$package
    done
fi
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "setup: this machine lacks:$missing (names of Debian packages) and has no apt-get;" \
        "please install equivalent packages" >&2
    exit 1
fi
root=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
        echo "setup: please install as root: apt-get install$(echo "$missing" | tr '|' ' ')" >&2
        exit 1
    }
    root='sudo -n'
fi

echo "setup: reading the package lists"
$root apt-get update -qq || echo "setup: package lists could not be refreshed; trying the old ones"
packages=
for choice in $missing; do
    for package in $(echo "$choice" | tr '|' ' '); do
        if apt-cache show "$package" >/dev/null 2>&1; then
            packages="$packages $package"
            break
        fi
    done
done
echo "setup: installing$packages"
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $packages \
    >/dev/null || {
    echo "setup: apt-get install$packages failed; run it by hand to see why" >&2
    exit 1
}
