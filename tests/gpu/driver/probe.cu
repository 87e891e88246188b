/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels for the test of the pretended driver itself. */

extern "C" __global__ void probe_add(unsigned *words, unsigned count, unsigned value) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        words[i] += value;
}

extern "C" __global__ void probe_wait(const unsigned *word, unsigned value) {
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
        __nanosleep(1000);
}

extern "C" __global__ void probe_trap() {
    __trap();
}
