# SPDX-License-Identifier: BSD-3-Clause
"""A CUDA C kernel that a Python program compiles at run time, by nvrtc: it includes <weft/device.cuh> and takes the
team by value. Every member puts a row to its right neighbour, followed by a signal.

    pip install cuda-bindings
    oshrun -n 2 python examples/python/device_nvrtc.py
"""
import ctypes

import weft
from cuda.bindings import driver, nvrtc

SOURCE = b"""
#include <weft/device.cuh>

extern "C" __global__ void shift(const __grid_constant__ weft_device_team t, float *inbox, const float *row,
                                 unsigned long long bytes, uint64_t *arrived, uint64_t round) {
    weft_put_signal_b(&t, inbox, row, bytes, arrived, round, WEFT_SIGNAL_SET, (t.me + 1) % t.n);
    weft_wait_ge_b(&t, arrived, round);
}
"""


def checked(result):
    """Returns the results of a call of cuda.bindings, after checking its status."""
    if int(result[0]):
        raise RuntimeError(f"CUDA: {result[0]!r}")
    return result[1] if len(result) == 2 else result[1:]


def compile_for(arch):
    """Returns the machine code of SOURCE for compute capability arch (90 is Hopper)."""
    program = checked(nvrtc.nvrtcCreateProgram(SOURCE, b"shift.cu", 0, [], []))
    options = [f"--gpu-architecture=sm_{arch}".encode(), f"-I{weft.get_include()}".encode()]
    status, = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(status):
        log = b" " * checked(nvrtc.nvrtcGetProgramLogSize(program))
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.decode())
    code = b" " * checked(nvrtc.nvrtcGetCUBINSize(program))
    checked(nvrtc.nvrtcGetCUBIN(program, code))
    return code


def launch(function, blocks, threads, *arguments):
    """Launches a kernel on the default stream, with ctypes arguments."""
    places = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
    checked(driver.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, 0, ctypes.addressof(places), 0))


def arch_of_this_gpu():
    major, minor = (checked(driver.cuDeviceGetAttribute(part, weft.device())) for part in (
        driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR))
    return 10 * major + minor


def main():
    weft.init()
    me, n = weft.my_pe(), weft.n_pes()
    row, inbox = weft.empty(1000, space="device"), weft.zeros(1000, space="device")
    arrived = weft.zeros(1, "uint64", space="device")
    team = weft.device_team()
    checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(weft.device()))))
    shift = checked(driver.cuModuleGetFunction(checked(driver.cuModuleLoadData(compile_for(arch_of_this_gpu()))), b"shift"))
    for round in range(1, 4):
        row.fill(me + 100 * round)
        launch(shift, 1, 256, (ctypes.c_char * 128).from_buffer_copy(team.bytes), ctypes.c_void_p(inbox.ptr),
               ctypes.c_void_p(row.ptr), ctypes.c_uint64(row.nbytes), ctypes.c_void_p(arrived.ptr), ctypes.c_uint64(round))
        checked(driver.cuCtxSynchronize())
        assert set(inbox.tolist()) == {(me - 1) % n + 100 * round}
        weft.barrier()  # before the next round's row arrives
    if me == 0:
        print(f"3 rounds of rows to the right over {n} PEs")
    team.free()


if __name__ == "__main__":
    main()
