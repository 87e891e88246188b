#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Weft as PyTorch's symmetric-memory backend, on CPU tensors: the tests of torch_backend_*.py on 1 to 4 PEs, and the
ways in which processes install it. For GPUs: gpu_backend.py.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402
import tap  # noqa: E402

OSHRUN = interpreter.BUILD / "bin/oshrun"
PYTHON = interpreter.find("pytest", "torch.distributed._symmetric_memory")
SECONDS = 280


def run(problems, command, status=0, said=(), **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=SECONDS,
                          env=interpreter.environment(OMP_NUM_THREADS="1", **environment))
    everything = done.stdout + done.stderr
    if done.returncode != status:
        problems.append(f"status {done.returncode}, expected {status}")
    problems += [f"no {pattern!r}" for pattern in said if not re.search(pattern, everything)]
    if problems:
        problems += everything.splitlines()[-60:]
    return everything


def tests_on(pes, name):
    def case(problems):
        said = run(problems, [OSHRUN, "-n", pes, PYTHON, HERE / "run.py", HERE / name], TRITON_INTERPRET="1")
        interpreter.tell(f"{name} on {pes} PEs", said.splitlines())
    return case


# --- Starting -----------------------------------------------------------------------------------------

BEGIN = """
    import os, sys, time
    import torch, torch.distributed as dist, torch.distributed._symmetric_memory as symm_mem
    from torch._C._distributed_c10d import _SymmetricMemory
    import weft, weft.torch, job

    def empty(numel):
        return _SymmetricMemory.empty_strided_p2p((numel,), (1,), torch.float32, torch.device("cpu"))

    def meet(group):
        tensor = empty(10).fill_(dist.get_rank())
        h = symm_mem.rendezvous(tensor, group)
        h.barrier()
        peers = [h.get_buffer(r, (1,), torch.float32).item() for r in range(h.world_size)]
        h.barrier()
        return peers
"""


def program(text):
    return textwrap.dedent(BEGIN) + textwrap.dedent(text)


def oshrun(pes, text):
    return [OSHRUN, "-n", pes, PYTHON, "-c", program(text)]


def with_file(problems, launch, text, **more):
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(program(text))
        file.flush()
        run(problems, [*launch, file.name], **more)


def torchrun(problems):
    """install() before and after init_process_group()."""
    launch = [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    both = ["weft.torch.install()", "job.start('gloo')"]
    for order in (both, both[::-1]):
        with_file(problems, launch, f"""
            {'; '.join(order)}
            print("peers", meet("0"), "PE", weft.my_pe(), flush=True)
            job.end()
        """, said=[r"peers \[0.0, 1.0\] PE 0", "PE 1"])


def two_threads(problems):
    """weft.init() while install()'s thread does the same; on each rank a different one of the two is slower."""
    launch = [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    with_file(problems, launch, """
        import threading, time
        job.start('gloo')
        store = dist.distributed_c10d._get_default_store()

        class Store:
            set = store.set

            def get(self, key):
                thread = threading.current_thread() is not threading.main_thread()
                time.sleep(0.5 if thread == (dist.get_rank() == 0) else 0)
                return store.get(key)

        dist.distributed_c10d._get_default_store = Store
        weft.torch.install()
        weft.init()
        print("peers", meet("0"), "PE", weft.my_pe(), flush=True)
        job.end()
    """, said=[r"peers \[0.0, 1.0\] PE 0", "PE 1"])


SPAWN = """
    import tempfile
    import torch.multiprocessing as mp

    def work(rank, path):
        {first}
        dist.init_process_group("gloo", init_method=path, rank=rank, world_size=3)
        {second}
        print("peers", meet("0"), "PE", weft.my_pe(), flush=True)
        dist.destroy_process_group()

    if __name__ == "__main__":
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(work, ("file://" + folder + "/store",), 3)
        print("all back")
"""


def spawned(problems):
    """Without any launcher: torch.distributed's information must be enough."""
    for first, second in (("pass", "weft.torch.install()"), ("weft.torch.install()", "pass")):
        with_file(problems, [PYTHON], SPAWN.format(first=first, second=second), said=[r"peers \[0.0, 1.0, 2.0\] PE 2", "all back"])


def alone(problems):
    run(problems, [PYTHON, "-c", program("""
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        weft.torch.install()
        print("peers", meet("0"))
    """)], said=[r"peers \[0.0\]"])


def some_of_the_ranks(problems):
    """The first rendezvous ever, while other ranks are in a collective call and have had none."""
    run(problems, oshrun(3, """
        weft.torch.install()
        job.start("gloo", 60)
        pair = dist.new_group([0, 1])
        if dist.get_rank() < 2:
            print("peers", meet(pair.group_name), flush=True)
        dist.barrier()
        print("peers", meet("0"), flush=True)
        job.end()
    """), said=[r"peers \[0.0, 1.0\]", r"peers \[0.0, 1.0, 2.0\]"])


def other_numbers(problems):
    """A rank that is not the PE of its number."""
    run(problems, oshrun(2, """
        weft.torch.install()
        me = int(os.environ["WEFT_PE"])
        path = f"file:///tmp/weft-test-{os.getuid()}-{os.getppid()}-other"
        dist.init_process_group("gloo", init_method=path, rank=1 - me, world_size=2)
        try:
            meet("0")
        except RuntimeError as error:
            print(error, flush=True)
    """), said=["PE 0 of 2, but rank 1 of 2", "PE 1 of 2, but rank 0 of 2"])


# --- Ends ---------------------------------------------------------------------------------------------

def alive_at_the_end(problems):
    run(problems, oshrun(2, """
        weft.torch.install()
        job.start("gloo", 60)
        tensors = [empty(100) for _ in range(10)]
        handles = [symm_mem.rendezvous(tensor, "0") for tensor in tensors]
        handles[0].barrier()
        cycle = [tensors, handles]
        cycle.append(cycle)
        print("end", flush=True)
    """), said=["end"])


def timeouts(problems):
    """Peers leave while a rank waits for them with a limit."""
    run(problems, [PYTHON, HERE / "gpu_timeouts.py", "--ranks", "2", "--cpu", "--registry"], said=["# 4 of 4 cases"])


def thread_at_the_end(problems):
    """A call returns after Python has ended, and must not take the GIL."""
    said = run(problems, oshrun(2, """
        import threading
        weft.torch.install()
        job.start("gloo", 60)
        h = symm_mem.rendezvous(empty(10), "0")
        peer = 1 - dist.get_rank()
        threading.Thread(target=lambda: h.wait_signal(peer, timeout_ms=150), daemon=True).start()
        print("end", flush=True)
    """), said=["end"])
    problems += ["a crash"] * ("terminate called" in said)


def groups_at_the_end(problems):
    """After destroy_process_group() nothing holds the groups, because gloo's threads, which a group owns, must end
    before Python does."""
    run(problems, oshrun(2, """
        import weakref
        job.start("gloo", 60)
        groups = [weakref.ref(dist.group.WORLD), weakref.ref(dist.new_group([0, 1]))]
        tensor = weft.torch.empty(8, device="cpu")
        for group in groups:
            handle = weft.torch.rendezvous(tensor, group())
            weft.torch.all_gather(tensor, 0, group())
            weft.torch.get_symm_mem_workspace(group().group_name, 100, device="cpu")
        del group
        job.end()
        print("left", [group() for group in groups], flush=True)
    """), said=[r"left \[None, None\]"])


# --- The registry -------------------------------------------------------------------------------------

def names(problems):
    """Weft is registered as NVSHMEM only on request."""
    text = """
        weft.torch.install()
        _SymmetricMemory.set_backend("NVSHMEM")
        print("now", symm_mem.get_backend("cuda"))
    """
    for_gpus = [PYTHON, "-c", "import torch; raise SystemExit(torch.version.cuda is None)"]
    if subprocess.run(for_gpus).returncode == 0:
        run(problems, [PYTHON, "-c", program(text)], said=["now NVSHMEM"])
        run(problems, [PYTHON, "-c", program(text)], said=["now WEFT"], WEFT_TORCH_ALIAS="NVSHMEM")


def used_before(problems):
    run(problems, [PYTHON, "-c", program("""
        from torch._C._autograd import DeviceType
        if torch.version.cuda:
            try:
                _SymmetricMemory.has_multicast_support(DeviceType.CUDA, 0)
            except RuntimeError:
                print("there is no GPU here; it counts as a use all the same")
            try:
                weft.torch.install()
            except RuntimeError as error:
                print(error)
            weft.torch.install(force=True)
            print("now", symm_mem.get_backend("cuda"))
        else:
            print("pass force=True", "now WEFT")
    """)], said=["pass force=True", "now WEFT"])


def no_compiler(problems):
    with tempfile.TemporaryDirectory() as cache:
        run(problems, [PYTHON, "-c", program("""
            os.environ["PATH"] = "/nowhere"
            try:
                weft.torch.install()
            except RuntimeError as error:
                print("lines", len(str(error).splitlines()), error)
        """)], said=["lines 1 weft.torch.install: there is no C.. compiler", "install g"], XDG_CACHE_HOME=cache)


def no_room(problems):
    for cache in ("/proc/nope", "/dev/null"):
        run(problems, [PYTHON, "-c", program("""
            try:
                weft.torch.install()
            except RuntimeError as error:
                print("lines", len(str(error).splitlines()), error)
        """)], said=[f"lines 1 weft.torch.install: .*{cache}/weft/torch-.*: set XDG_CACHE_HOME"], XDG_CACHE_HOME=cache)


def by_itself(problems):
    """The function called by `import torch` acts only on request, and never compiles."""
    text = f"""
        sys.path.append({str(interpreter.ROOT / "python")!r})
        import weft_autoload
        weft_autoload.load()
        print("installed", weft.torch.installed())
    """
    run(problems, [PYTHON, "-c", program("weft.torch.install()")])
    run(problems, [PYTHON, "-c", program(text)], said=["installed False"])
    run(problems, [PYTHON, "-c", program(text)], said=["installed True"], WEFT_TORCH_BACKEND="1")
    with tempfile.TemporaryDirectory() as cache:
        run(problems, [PYTHON, "-c", program(text)], said=["installed False", "no backend for this PyTorch yet"],
            WEFT_TORCH_BACKEND="1", XDG_CACHE_HOME=cache)


# --- Compiled graphs ----------------------------------------------------------------------------------

def needs_the_pass():
    found = subprocess.run([PYTHON, "-c", "import torch._inductor.config as c, torch._inductor.fx_passes.micro_pipeline_tp\n"
                            "c._micro_pipeline_tp"], capture_output=True)
    if found.returncode:
        raise tap.Skip("this PyTorch's compiler has no asynchronous tensor parallelism")


def async_tensor_parallelism(problems):
    needs_the_pass()
    run(problems, [OSHRUN, "-n", 2, PYTHON, HERE / "torch_compiled.py"],
        said=["rank 0 of 2: fused", "rank 1 of 2: fused"])


def async_tensor_parallelism_by_torchrun(problems):
    """The example."""
    needs_the_pass()
    with tempfile.TemporaryDirectory() as cache:
        run(problems, [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                       interpreter.ROOT / "examples/python/async_tensor_parallel.py"],
            said=["step  60  loss 0.00", "all_gather_matmul ran 120 times", "matmul_reduce_scatter ran 60 times"],
            TORCHINDUCTOR_CACHE_DIR=cache)


def without(problems):
    raise tap.Skip("no Python from 3.10 on has pytest and PyTorch here")


CASES = [(f"{name} on {pes} PEs", tests_on(pes, name))
         for name in ("torch_backend_cpu.py", "torch_backend_exchange.py") for pes in interpreter.RANKS]
CASES += [(scene.__name__.replace("_", " "), scene) for scene in (
    torchrun, two_threads, spawned, alone, some_of_the_ranks, other_numbers, alive_at_the_end, timeouts, thread_at_the_end,
    groups_at_the_end, names, used_before, no_compiler, no_room, by_itself, async_tensor_parallelism,
    async_tensor_parallelism_by_torchrun)]
ONLY = sys.argv[1] if len(sys.argv) > 1 else ""  # cases with this in their name
CASES = [case for case in CASES if ONLY in case[0]]
tap.run(CASES if PYTHON else [("PyTorch's backend", without)])
