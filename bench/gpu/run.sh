#!/bin/sh
# Weft's GPU calls beside NVSHMEM, NCCL and PyTorch's symmetric memory, in turn, for several rounds.
#
#   bench/gpu/run.sh BUILD RESULTS
#
# Leaves JSON lines below RESULTS and prints a table with ratios. What is not installed is left out,
# and the reason printed. Environment: ROUNDS (3); PES ("2 4", as far as there are GPUs; Weft alone is
# measured with more PEs than GPUs); TABLES ("calls device small large ordinary": calls of the host and
# inside kernels, collectives of up to 1 MiB, of more, and on memory that is not symmetric), each of which
# compares all libraries that have it; "ways", which compares Weft's algorithms (WAYS); "products", matrix
# products and their communication (PRODUCTS: files of rows); LIBRARIES
# ("weft nvshmem nccl torch_symm_mem"); PATIENCE, seconds for one program (120; five times as long for products); PYTHON (python3);
# CUDA_HOME; BENCH_ARCH, what nvcc compiles for (native); BENCH_ROWS, a part of the names of those rows of
# collectives that are wanted. NVLink multicast stays off everywhere.
set -eu
build=$1 results=$2
: "${ROUNDS:=3}" "${TABLES:=calls device small large ordinary}" "${PATIENCE:=120}" "${PYTHON:=python3}"
: "${LIBRARIES:=weft nvshmem nccl torch_symm_mem}" "${WAYS:=ll marked push meet}"
: "${PRODUCTS:=bench/gpu/shapes.txt bench/gpu/products.txt}"
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1
export NCCL_SOCKET_IFNAME="${NCCL_SOCKET_IFNAME:-lo}"
export NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME="${NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME:-lo}"
cuda=${CUDA_HOME:-$(dirname "$(dirname "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")}
bin=$build/bench/gpu
mkdir -p "$results" "$bin"
rm -f "$results"/*.jsonl
available= have_kernels=

leave_out() { # library, reason
    echo "bench: $1 is left out: $2" >&2
}

# Prints the folder of a Python package below nvidia/, such as nccl; nothing if it is not installed.
package() {
    "$PYTHON" -c '
import glob, sys
found = [f for p in sys.path for f in glob.glob(f"{p}/nvidia/{sys.argv[1]}/include")]
print(found[0].removesuffix("/include") if found else "")' "$1" 2>/dev/null || true
}

built() { # library, compiler's arguments; it is available then
    library=$1
    shift
    if "$@" -o "$bin/$library" -O2 -D_GNU_SOURCE -L"$cuda/lib64" -lcudart -lm >"$results/$library.log" 2>&1; then
        available="$available $library"
    else
        leave_out "$library" "$(grep -m 1 -E 'undefined|error:|No such' "$results/$library.log" || echo 'it does not build')"
    fi
}

# Builds programs with kernels of their own, for calls inside kernels: TABLES has "device".
kernels_built() { # program, nvcc's arguments
    case " $TABLES " in *" device "*) ;; *) return ;; esac
    program=$1
    shift
    if env -u LIBRARIES "$cuda/bin/nvcc" -std=c++17 -O3 -arch="${BENCH_ARCH:-native}" -o "$bin/$program" "bench/gpu/$program.cu" "$@" \
        >"$results/$program.log" 2>&1; then
        have_kernels="$have_kernels $program"
    else
        leave_out "$program" "$(grep -m 1 -E 'undefined|error|No such|not found' "$results/$program.log" || echo 'it does not build')"
    fi
}

build_weft() {
    lib=$(cd "$build/lib" && pwd)
    kernels_built weft_device -Iinclude -L"$lib" -lweft -Xlinker -rpath,"$lib"
    built weft gcc -std=c11 -Iinclude -isystem "$cuda/include" bench/gpu/weft.c -L"$lib" -lweft -Wl,-rpath,"$lib" \
        -Wl,-rpath,"$cuda/lib64"
}

# Prints the compiler's arguments for NCCL.
nccl_arguments() {
    folder=$(package nccl)
    if [ -n "$folder" ]; then
        echo "-isystem $folder/include $folder/lib/libnccl.so.2 -Wl,-rpath,$folder/lib"
    else
        echo -lnccl
    fi
}

build_nccl() {
    built nccl gcc -std=c11 -isystem "$cuda/include" bench/gpu/nccl.c $(nccl_arguments) -Wl,-rpath,"$cuda/lib64"
}

# NCCL is part of the same program, so that all ways take turns.
build_products() {
    lib=$(cd "$build/lib" && pwd)
    built products gcc -std=c11 -Iinclude -isystem "$cuda/include" bench/gpu/products.c -L"$lib" -lweft \
        -Wl,-rpath,"$lib" $(nccl_arguments) -lcublasLt -Wl,-rpath,"$cuda/lib64"
}

build_nvshmem() {
    folder=${NVSHMEM_HOME:-$(package nvshmem)}
    if [ -z "$folder" ]; then
        leave_out nvshmem "neither NVSHMEM_HOME nor the Python package nvidia-nvshmem-cu13 is there"
        return
    fi
    export LD_LIBRARY_PATH="$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" # it opens its plug-ins by name
    host=$(find "$folder/lib" -name 'libnvshmem_host.so*' | head -n 1)
    kernels_built nvshmem_device -rdc=true -isystem "$folder/include" -L"$folder/lib" -lnvshmem_device \
        -Xlinker "$host" -L"$cuda/lib64/stubs" -lcuda -Xlinker -rpath,"$folder/lib"
    built nvshmem g++ -std=c++17 -isystem "$folder/include" -isystem "$cuda/include" bench/gpu/nvshmem.cc \
        "$host" -L"$cuda/lib64/stubs" -lcuda \
        -Wl,-rpath,"$folder/lib" -Wl,-rpath,"$cuda/lib64"
}

build_torch_symm_mem() {
    if why=$("$PYTHON" -c 'import torch.distributed._symmetric_memory' 2>&1); then
        available="$available torch_symm_mem"
    else
        leave_out torch_symm_mem "$(echo "$why" | tail -n 1)"
    fi
}

run() { # library, PEs, round; of $BENCH_TABLE
    name=$(echo "$1" | tr / _)-$BENCH_TABLE-${2}pe-$3
    BENCH_MEET=$(mktemp -d)
    export BENCH_MEET
    limit=$PATIENCE
    case $1 in
    torch_symm_mem) set -- "$2" "$PYTHON" bench/gpu/torch_symm_mem.py ;;
    weft,*) set -- "$2" env "${1#weft,}" "$bin/weft" ;;
    products,*) set -- "$2" "$bin/products" "${1#products,}" && limit=$((5 * PATIENCE)) ;;
    torch_products,*) set -- "$2" "$PYTHON" bench/gpu/torch_products.py "${1#torch_products,}" && limit=$((5 * PATIENCE)) ;;
    *) set -- "$2" "$bin/$1" ;;
    esac
    pes=$1
    shift
    if ! timeout "$limit" "$build/bin/oshrun" -n "$pes" "$@" >"$results/$name.jsonl" 2>"$results/$name.log"; then
        echo "bench: $name failed: $(grep -v '^ *$' "$results/$name.log" | grep -v '^oshrun' | head -n 1 | cut -c -200)" >&2
    fi
    rm -rf "$BENCH_MEET"
}

for library in $LIBRARIES; do
    "build_$library"
done
libraries=$available
case " $TABLES " in *" products "*) build_products ;; esac
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
if [ -z "${PES:-}" ]; then
    for pes in 2 4; do
        [ "$pes" -le "$gpus" ] && PES="${PES:-} $pes"
    done
fi
if [ -z "${PES:-}" ]; then
    echo "bench: there are $gpus GPUs here, and two are needed; what could be built was:$available$have_kernels" >&2
    exit 0
fi
# Prints the installed libraries that can run on this many PEs, and Weft with other settings.
compared_at() {
    case $BENCH_TABLE,$available in
    device,*) [ "$1" -gt "$gpus" ] && echo weft_device || echo "$have_kernels" ;;
    products,*products*)
        for file in $PRODUCTS; do
            echo "products,$file"
            case "$libraries" in *torch_symm_mem*) echo "torch_products,$file" ;; esac
        done
        ;;
    products,*) ;;
    ways,*weft*)
        echo weft
        for way in $WAYS; do
            echo "weft,SHMEMX_ALGORITHM=$way"
        done
        ;;
    *,*weft*)
        if [ "$1" -gt "$gpus" ]; then
            echo weft
        else
            echo "$libraries"
            [ "$BENCH_TABLE" != large ] || echo weft,SHMEMX_SMS=16
        fi
        ;;
    *) echo "$libraries" ;;
    esac
}

for BENCH_TABLE in $TABLES; do
    export BENCH_TABLE
    for round in $(seq "$ROUNDS"); do
        for pes in $PES; do
            for library in $(compared_at "$pes"); do
                echo "bench: $BENCH_TABLE, round $round of $ROUNDS, $pes PEs, $library" >&2
                run "$library" "$pes" "$round"
            done
        done
    done
done
"$PYTHON" bench/gpu/table.py "$results"/*.jsonl | tee "$results/table.md"
