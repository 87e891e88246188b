# SPDX-License-Identifier: BSD-3-Clause
"""The last PE dies while the others wait in a Triton kernel for its signal (triton.t)."""
import os
import signal
import time

import torch
import weft
import weft.triton as wt


@wt.jit(do_not_specialize=["value"])
def wait(team, sig, value):
    wt.wait_ge(team, sig, value)


weft.init()
torch.cuda.set_device(weft.device())
sig = torch.from_dlpack(weft.zeros(1, "uint64", space="device"))
team = weft.device_team()
wait[(1,)](team.address, sig, 0)
torch.cuda.synchronize()
weft.barrier()
if weft.my_pe() == weft.n_pes() - 1:
    time.sleep(1)
    print(f"dies at {time.time()}", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
wait[(1,)](team.address, sig, 1)
torch.cuda.synchronize()
