# SPDX-License-Identifier: BSD-3-Clause
"""Scenes of gpu_backend.py: memory pools and graphs."""
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

from gpu_frame import Here, empty, gathered, gpu_scene, near, poisoned, raises, random, wait_for_gpu


@gpu_scene
def pool():
    """Allocates only symmetric tensors from the pool, because ranks must get the same memory for the same tensor."""
    for _ in range(4):
        with torch.cuda.use_mem_pool(symm_mem.get_mem_pool(Here.device)):
            tensor = torch.randn(100000, device=Here.device)
        everyone = gathered(tensor)
        result = torch.ops.symm_mem.one_shot_all_reduce(tensor, "sum", Here.group)
        near("pool", result, everyone.sum(0), 1e-5)
        wait_for_gpu()
        dist.barrier()
        del tensor


@gpu_scene
def pool_of_small_parts():
    """A pool that splits: tensors begin inside an allocation."""
    pool = torch.cuda.MemPool(symm_mem.get_mempool_allocator(Here.device))
    with torch.cuda.use_mem_pool(pool):
        tensors = [torch.full((1000,), 10. * Here.rank + i, device=Here.device) for i in range(5)]
    handles = [symm_mem.rendezvous(tensor, Here.group) for tensor in tensors]
    wait_for_gpu()
    dist.barrier()
    peer = (Here.rank + 1) % Here.size
    for i, (tensor, h) in enumerate(zip(tensors, handles)):
        assert h.offset == tensor.data_ptr() - h.buffer_ptrs[Here.rank]
        assert (h.get_remote_tensor(peer, (1000,), torch.float32) == 10. * peer + i).all()
    assert any(h.offset for h in handles), "no tensor begins inside"
    wait_for_gpu()
    dist.barrier()
    del tensors, handles
    del pool


# --- Graphs -------------------------------------------------------------------------------------------

def captured(function):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        function()
    torch.cuda.current_stream().wait_stream(stream)
    wait_for_gpu()
    dist.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph


@gpu_scene
def graphs():
    tensor = empty(10000)
    h = symm_mem.rendezvous(tensor, Here.group)
    out = poisoned(10000)
    right, left = (Here.rank + 1) % Here.size, (Here.rank - 1) % Here.size

    def step():
        h.barrier(2)
        torch.ops.symm_mem.one_shot_all_reduce_out(tensor, "sum", Here.group, out)
        h.put_signal(right, 3)
        h.wait_signal(left, 3)
    graph = captured(step)
    for _ in range(30):
        values = random(10000)
        wanted = gathered(values).sum(0)
        tensor.copy_(values)
        out.fill_(float("nan"))
        graph.replay()
        near("graphs", out, wanted, 1e-5)


@gpu_scene
def graph_of_a_fused_product():
    shard, b = random(256, 512, dtype=torch.bfloat16), random(512, 128, dtype=torch.bfloat16)
    outs = []

    def step():
        outs[:] = torch.ops.symm_mem.fused_all_gather_matmul(shard, [b], 0, Here.group)[1]
    symm_mem.get_symm_mem_workspace(Here.group, 1 << 22)
    graph = captured(step)
    for _ in range(10):
        shard.copy_(random(256, 512, dtype=torch.bfloat16))
        full = gathered(shard).flatten(0, 1)
        outs[0].fill_(float("nan"))
        graph.replay()
        near("graph of fused_all_gather_matmul", outs[0], full @ b.double(), 5e-2)


@gpu_scene
def workspace_grows_in_no_graph():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        raises(RuntimeError, "graph capture", lambda: symm_mem.get_symm_mem_workspace(Here.group, 4 << 30))


@gpu_scene
def weft_graphs_forbid_little():
    """Frees do not end a capture; a rendezvous of new memory is refused, and does not either."""
    kept = empty(100)
    h = symm_mem.rendezvous(kept, Here.group)
    doomed = [empty(1000) for _ in range(3)]
    unknown = empty(1000)
    count = torch.zeros(1, device=Here.device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        count.add_(1)
        doomed.clear()
        raises(RuntimeError, "being captured", lambda: symm_mem.rendezvous(unknown, Here.group))
        h.barrier()
    for _ in range(5):
        graph.replay()
    assert count.item() == 5
    import weft.torch
    before = weft.torch.counters()["releases"]
    again = empty(10)
    assert weft.torch.counters()["releases"] >= before + 3, "what was freed in the capture is gone by now"
    del again
