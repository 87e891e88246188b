# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of gpu_pairs.py: allocation, rendezvous, settings, layouts."""
import warnings

import torch
import torch.distributed as dist

from gpu_pairs_frame import Here, Left, pair, random, scenes

KINDS = (torch.float32, torch.bfloat16, torch.int64, torch.uint32, torch.float8_e4m3fn, torch.complex64, torch.bool)
BY_US = "a kind of device with Weft's memory"


# --- Memory -------------------------------------------------------------------------------------------

@pair
def empty(check):
    for dtype in KINDS:
        for sizes in ((3, 5), (0, 4), (7,), (), (2, 1, 3)):
            def call(m):
                one, other = m.empty(*sizes, dtype=dtype, device=Here.device), m.empty(
                    list(sizes), dtype=dtype, device=Here.device)
                return [one.copy_(torch.ones(sizes).to(dtype)), other.copy_(torch.zeros(sizes).to(dtype))]
            check.same(call, lambda m: [torch.ones(sizes).to(dtype).to(Here.device),
                                        torch.zeros(sizes).to(dtype).to(Here.device)])
    check.same(lambda m: m.empty(range(1, 4), device=Here.device).zero_(),
               lambda m: torch.zeros(1, 2, 3, device=Here.device))
    check.same(lambda m: m.empty(2, device=str(Here.device)).dtype, lambda m: torch.get_default_dtype())
    check.wrong(RuntimeError, lambda m: m.empty(-1, device=Here.device))
    check.wrong(RuntimeError, lambda m: m.empty(2, -3, device=Here.device))
    check.wrong(TypeError, lambda m: m.empty("ab", device=Here.device))
    check.wrong(TypeError, lambda m: m.empty((2,), 3, device=Here.device))
    check.wrong(TypeError, lambda m: m.empty(1.5, device=Here.device))
    check.wrong(TypeError, lambda m: m.empty(3, dtype=3, device=Here.device))
    check.wrong(RuntimeError, lambda m: m.empty(3, device="nope"))
    check.wrong(RuntimeError, lambda m: m.empty(3, device="meta"))


@pair
def rendezvous(check):
    def call(m):
        tensor, handle = m.handle(random(10, 3))
        again = m.rendezvous(tensor, m.process_group)
        part = m.rendezvous(tensor[2:], m.group)
        return [handle.rank, handle.world_size, again.buffer_ptrs == handle.buffer_ptrs,
                part.buffer_ptrs == handle.buffer_ptrs, m.rendezvous(torch.ones(4, device=Here.device), m.group),
                m.rendezvous(torch.ones(0, device=Here.device), m.group)]
    check.same(call, lambda m: [m.rank, m.size, True, True, None, None])
    for group in (3, None, 1.5, [0]):
        check.wrong(TypeError, lambda m: m.rendezvous(m.symmetric(random(4)), group))
    check.wrong(RuntimeError, lambda m: m.rendezvous(m.symmetric(random(4)), "no such group"))


@pair
def is_symm_mem_tensor(check):
    """A function that PyTorch has only after 2.11."""
    tensor = Here.ours.symmetric(random(8, 4))
    for got, wanted in ((tensor, True), (tensor[3:], True), (tensor.t(), True), (tensor.clone(), False)):
        check.is_true(Here.ours.is_symm_mem_tensor(got) is wanted, f"not {wanted} of {tuple(got.shape)}")


@pair
def get_symm_mem_workspace(check):
    if Here.registry:
        raise Left("PyTorch's is of CUDA's current device")
    more = {} if Here.gpu else {"device": "cpu"}

    def call(m):
        with_device = more if m is not Here.theirs else {}
        small = m.get_symm_mem_workspace(m.group, 1 << 12, **with_device)
        large = m.get_symm_mem_workspace(m.group, small.buffer_size + 64, **with_device)
        again = m.get_symm_mem_workspace(m.group, 8, **with_device)
        view = large.get_buffer(m.rank, (16,), torch.float32)
        return [small.buffer_size >= 1 << 12, large.buffer_size >= small.buffer_size + 64,
                again.buffer_ptrs == large.buffer_ptrs, again.world_size, view.fill_(3)]
    check.same(call, lambda m: [True, True, True, m.size, torch.full((16,), 3., device=Here.device)])
    check.wrong(RuntimeError, lambda m: m.get_symm_mem_workspace("no such group", 8, **(
        more if m is Here.ours else {})))


@pair
def get_mem_pool(check):
    if Here.gpu:
        def call(m):
            pool = m.get_mem_pool(Here.device)
            with torch.cuda.use_mem_pool(pool):
                tensor = torch.full((1000,), 2., device=Here.device)
            return [m.get_mem_pool(Here.device) is pool, m.one_shot_all_reduce(tensor, "sum", m.group)]
        # The pool is PyTorch's, for any backend, and keeps the memory it has allocated.
        check.same(call, lambda m: [True, torch.full((1000,), 2. * m.size, device=Here.device)], groups=False,
                   theirs=False)
    check.wrong(RuntimeError, lambda m: m.get_mem_pool("cpu"))
    check.wrong(RuntimeError, lambda m: m.get_mem_pool("nope"))


@pair
def get_mempool_allocator(check):
    if Here.gpu:
        check.same(lambda m: type(m.get_mempool_allocator(Here.device)).__name__)
    check.wrong(RuntimeError, lambda m: m.get_mempool_allocator("cpu"))
    check.wrong(RuntimeError, lambda m: m.get_mempool_allocator("nope"))


# --- Settings -----------------------------------------------------------------------------------------

@scenes("set_signal_pad_size", "get_signal_pad_size")
def pad_size(check, name):
    before = Here.ours.get_signal_pad_size()

    def call(m):
        m.set_signal_pad_size(1 << 16)
        told = m.get_signal_pad_size()
        m.set_signal_pad_size(before)
        return [told, m.get_signal_pad_size()]
    check.same(call, lambda m: [1 << 16, before])
    if name.startswith("set"):
        for size in (-1, "a", 1.5):
            check.wrong(TypeError, lambda m: m.set_signal_pad_size(size))


@pair
def handle_signal_pad_size(check):
    """Static as in PyTorch: an attribute of the class."""
    before = Here.ours.get_signal_pad_size()

    def call(m):
        cls = m.functions.handle
        cls.signal_pad_size = 1 << 15
        tensor, handle = m.handle(random(4))
        pad = handle.get_signal_pad(0).numel()
        cls.signal_pad_size = before
        return [pad, m.get_signal_pad_size()]
    check.same(call, lambda m: [1 << 13, before], theirs=Here.gpu or Here.registry)


@scenes("set_backend", "handle_set_backend")
def backends(check, name):
    check.wrong(RuntimeError, lambda m: getattr(m, name)("nonsense"))
    check.wrong(TypeError, lambda m: getattr(m, name)(3))
    with Here.ours.functions:
        check.is_true(getattr(Here.ours, name)("WEFT") is None, "WEFT is refused")


@scenes("get_backend", "handle_get_backend")
def backend_of(check, name):
    with Here.ours.functions:
        check.is_true(getattr(Here.ours, name)(torch.device(Here.device)) == "WEFT", "it is not WEFT")
        check.is_true(getattr(Here.ours, name)(torch.device("meta")) is None, "the meta device has a backend")
    with Here.theirs.functions:
        check.notes.append(f"{BY_US} is WEFT's; PyTorch's own: "
                           f"{getattr(torch.distributed._symmetric_memory, 'get_backend')(Here.device)}")
    if name == "get_backend":
        check.wrong(RuntimeError, lambda m: m.get_backend("nope"))


@pair
def is_nvshmem_available(check):
    check.same(lambda m: m.is_nvshmem_available())


@pair
def is_symm_mem_enabled_for_group(check):
    check.same(lambda m: m.is_symm_mem_enabled_for_group("nobody"), lambda m: False)
    check.same(lambda m: m.is_symm_mem_enabled_for_group(m.group), lambda m: True, theirs=False)


@pair
def enable_symm_mem_for_group(check):
    def call(m):
        name = dist.new_group(list(range(Here.size))).group_name
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            m.enable_symm_mem_for_group(name)
        return [any(each.category is FutureWarning for each in caught), m.is_symm_mem_enabled_for_group(name)]
    check.same(call, lambda m: [True, True], groups=False, theirs=Here.gpu)
    check.wrong(RuntimeError, lambda m: m.enable_symm_mem_for_group("no such group"))


@pair
def _test_mode(check):
    def call(m):
        with m._test_mode():
            all_of_them = m.is_symm_mem_enabled_for_group("somebody")
        with m._test_mode({"somebody"}):
            return [all_of_them, m.is_symm_mem_enabled_for_group("somebody"), m.is_symm_mem_enabled_for_group("other")]
    check.same(call, lambda m: [True, True, False])


@pair
def _get_backend_stream(check):
    def call(m):
        first = m._get_backend_stream()
        with first:
            pass
        return [m._get_backend_stream() is first, m._get_backend_stream(-1) is first]
    check.same(call, lambda m: [True, False], theirs=Here.gpu)


@pair
def Work(check):
    check.is_true(Here.ours.Work is torch.distributed._symmetric_memory.Work, "it is another class than PyTorch's")
    if Here.gpu:
        check.same(lambda m: m.Work().wait(), groups=False)


# --- Layouts ------------------------------------------------------------------------------------------

@scenes("restride_A_for_fused_matmul_reduce_scatter", "restride_A_shard_for_fused_all_gather_matmul")
def restride(check, name):
    for shape in ((4, 6), (3, 4, 5), (2, 3, 4, 5)):
        for x in (random(*shape), random(*shape).transpose(0, 1)):
            for dim in range(-1, len(shape)):
                check.same(lambda m: getattr(m, name)(x, dim), lambda m: x)
    check.wrong(IndexError, lambda m: getattr(m, name)(x, len(shape)))


@pair
def make_contiguous_for_perm(check):
    for perm in ([0, 1, 2], [2, 0, 1], [1, 0, 2], [2, 1, 0]):
        x = random(3, 4, 5)
        check.same(lambda m: m.make_contiguous_for_perm(x, perm), lambda m: x)
        check.same(lambda m: m.make_contiguous_for_perm(x, perm).permute(perm).is_contiguous(), lambda m: True)
    check.wrong(RuntimeError, lambda m: m.make_contiguous_for_perm(x, [0, 1]))
