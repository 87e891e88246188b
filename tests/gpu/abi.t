#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# src/base/cuda.h and src/fused/cublaslt.h declare functions, numbers and layouts of the driver and of
# cuBLASLt without CUDA's headers. Where the toolkit is installed, a compiler compares them (abi.cu).
cd "$(dirname "$0")/../.." || exit 1
nvcc=$(command -v nvcc)
for include in "${CUDA_HOME:+$CUDA_HOME/include}" "${nvcc:+$(dirname "$nvcc")/../include}" \
    /usr/local/cuda/include; do
    [ -n "$include" ] && [ -e "$include/cuda.h" ] && [ -e "$include/cublasLt.h" ] && break
    include=
done
if [ -z "$include" ]; then
    echo '1..0 # SKIP there is no cuda.h with cublasLt.h: the CUDA toolkit is not installed'
    exit 0
fi
if problems=$(g++ -x c++ -std=c++17 -Iinclude -Isrc -I"$include" -fsyntax-only tests/gpu/abi.cu 2>&1); then
    echo 'ok 1 - functions, numbers and layouts are those of the toolkit'
else
    echo "$problems" | grep error | sed 's/^/# /' >&2
    echo 'not ok 1 - functions, numbers and layouts are those of the toolkit'
fi
echo 1..1
