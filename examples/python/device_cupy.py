# SPDX-License-Identifier: BSD-3-Clause
"""A CUDA C kernel in a CuPy program: it includes <weft/device.cuh> and takes the team by value. Every member adds the
vectors of all members, one element per thread.

    pip install cupy-cuda13x
    oshrun -n 2 python examples/python/device_cupy.py
"""
import weft

SOURCE = r"""
#include <weft/device.cuh>

extern "C" __global__ void all_reduce(const __grid_constant__ weft_device_team t, float *dest, const float *source,
                                      int nelems) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    weft_barrier_b(&t, blockIdx.x);
    if (i < nelems) {
        float sum = 0;
        for (int m = 0; m < t.n; m++)
            sum += ((const float *)weft_at(&t, source, m))[i];
        dest[i] = sum;
    }
    weft_sync_b(&t, blockIdx.x);
}
"""


def options():
    return (f"-I{weft.get_include()}", "-std=c++17")


def main():
    import cupy
    import numpy
    weft.init()
    me, n, nelems, threads = weft.my_pe(), weft.n_pes(), 10_000, 512
    cupy.cuda.Device(weft.device()).use()
    source = cupy.asarray(weft.empty(nelems, space="device"))
    dest = cupy.empty(nelems, cupy.float32)
    blocks = -(-nelems // threads)
    team = weft.device_team(channels=blocks)
    by_value = numpy.frombuffer(team.bytes, "V128")[0]
    all_reduce = cupy.RawModule(code=SOURCE, options=options()).get_function("all_reduce")
    for call in range(1, 4):
        source[:] = cupy.arange(nelems) % 7 + me + call
        all_reduce((blocks,), (threads,), (by_value, dest, source, numpy.int32(nelems)))
        expected = sum(numpy.arange(nelems) % 7 + pe + call for pe in range(n))
        numpy.testing.assert_array_equal(dest.get(), expected)
    if me == 0:
        print(f"3 all-reduces over {n} PEs")
    team.free()


if __name__ == "__main__":
    main()
