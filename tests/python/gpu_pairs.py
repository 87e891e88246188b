#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every function, operator and member of a handle of PyTorch's symmetric memory beside weft.torch's of
the same name: values, shapes, strides, dtypes and errors, on the same inputs in one process.

    torchrun --standalone --nproc-per-node 2 tests/python/gpu_pairs.py            one GPU a rank
    torchrun --standalone --nproc-per-node 2 tests/python/gpu_pairs.py --cpu      or by oshrun -n 2

On GPUs PyTorch's side runs on its own backend CUDA; on CPU tensors it is PyTorch's fallbacks and
functional collectives over gloo. Where it has nothing to run, Weft's is held against what is stated. A
line for each function, in TAP. Multicast is never used. A function that does not come back ends the run.
"""
import argparse
import faulthandler
import os
import pathlib
import sys
import threading
import traceback

os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed._symmetric_memory as torch_symm_mem  # noqa: E402
import torch.distributed.distributed_c10d as c10d  # noqa: E402
from torch._C._distributed_c10d import _SymmetricMemory  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import job  # noqa: E402
import gpu_pairs_sides as sides  # noqa: E402
from gpu_pairs_frame import PAIRS, Check, Here, Left, Side  # noqa: E402
import gpu_pairs_exchange  # noqa: E402, F401
import gpu_pairs_handle  # noqa: E402, F401
import gpu_pairs_matrices  # noqa: E402, F401
import gpu_pairs_memory  # noqa: E402, F401
import gpu_pairs_peers  # noqa: E402, F401
import gpu_pairs_products  # noqa: E402, F401
import gpu_pairs_reductions  # noqa: E402, F401

PATIENCE = int(os.environ.get("WEFT_TEST_PATIENCE", 60))  # seconds for a function
PRIVATE = ("_get_backend_stream", "_test_mode")  # private names of the module that programs use nevertheless


def in_pytorch():
    """Returns the names that need a pair: the module's functions, the operators, the members of a handle."""
    module = [name for name, value in vars(torch_symm_mem).items() if name in PRIVATE or (
        not name.startswith("_") and getattr(value, "__module__", "") == torch_symm_mem.__name__)]
    operators = [str(schema).partition("(")[0].partition("::")[2]
                 for schema in torch._C._jit_get_all_schemas() if str(schema).startswith("symm_mem::")]
    members = [f"handle_{name}" for name in dir(_SymmetricMemory) if not name.startswith("_")]
    return sorted({*module, *operators, *members})


# --- One function -------------------------------------------------------------------------------------

class Watch:
    """Names the function that does not return, and ends the run: work that it has left on a GPU cannot be cancelled."""

    def __init__(self, number, name, later):
        self.text = f"not ok {number} - {name}: does not come back within {PATIENCE} s"
        self.later = later
        self.timer = threading.Timer(PATIENCE if Here.rank else PATIENCE + 3, self.end)
        self.timer.daemon = True

    def __enter__(self):
        self.timer.start()
        faulthandler.dump_traceback_later(PATIENCE + 20, exit=True)

    def __exit__(self, *_):
        self.timer.cancel()
        faulthandler.cancel_dump_traceback_later()

    def end(self):
        faulthandler.dump_traceback()
        if Here.rank == 0:
            print(self.text, *[f"not ok - {name}: not run" for name in self.later], sep="\n", flush=True)
            os._exit(1)


def outcome(function, check):
    """Returns "" if it passed on this rank, "SKIP ..." or the error."""
    try:
        function(check)
    except Left as reason:
        return f"SKIP {reason}"
    except Exception:
        check.problems.append(f"case {check.cases}: " + traceback.format_exc())
    return "\n".join(check.problems[:5])


def outcomes(name, mine):
    """Exchanges the ranks' results through the store, because a failed function may have left collective calls undone.
    """
    store = c10d._get_default_store()
    store.set(f"pairs/{name}/{Here.rank}", mine)
    return [store.get(f"pairs/{name}/{rank}").decode() for rank in range(Here.size)]


def run(number, name, later):
    """Returns whether it passed on all ranks; None if it was not compared."""
    check = Check(name)
    with Watch(number, name, later):
        told = outcomes(name, outcome(PAIRS[name], check))
    wrong = {text: [rank for rank, other in enumerate(told) if other == text] for text in told
             if text and not text.startswith("SKIP")}
    if Here.rank == 0:
        if wrong:
            print(f"not ok {number} - {name}")
        elif told[0]:
            print(f"ok {number} - {name} # {told[0]}")
        else:
            print(f"ok {number} - {check.line()}")
        for text, ranks in wrong.items():
            print(f"# ranks {ranks}: " + "\n#   ".join(text.splitlines()))
        for note in check.notes:
            print(f"#   by decision: {note}")
        sys.stdout.flush()
    return None if told[0].startswith("SKIP") and not wrong else not wrong


# --- The program --------------------------------------------------------------------------------------

def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="store_true", help="on CPU tensors")
    parser.add_argument("--registry", action="store_true", help="on CPU tensors through PyTorch's registry")
    parser.add_argument("--only", default="", help="functions with this in their name")
    parser.add_argument("--without", nargs="*", default=[], help="functions that are left out")
    return parser.parse_args()


def begin(args):
    Here.rank, Here.size = job.place()
    Here.gpu = not (args.cpu or args.registry)
    Here.registry = args.registry
    Here.device = torch.device("cuda", Here.rank % torch.cuda.device_count()) if Here.gpu else torch.device("cpu")
    if Here.gpu:
        torch.cuda.set_device(Here.device)
        torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_num_threads(1 if not Here.gpu else torch.get_num_threads())
    world = job.start(job.kind_for(Here.device), seconds_max=None)
    dist.barrier()
    theirs, ours = sides.both(Here.gpu, args.registry)
    with theirs:
        if Here.gpu:
            theirs.empty((1,), torch.float32, Here.device)  # the backend counts as used from now on
    ranks = [0, Here.size - 1] if Here.size > 2 else list(range(Here.size))
    group = dist.new_group(ranks)
    with ours:
        Here.theirs, Here.ours = Side(theirs, world), Side(ours, world)
    Here.part = Side(ours, group) if Here.rank in ranks else None


def main():
    args = arguments()
    begin(args)
    missing = [name for name in in_pytorch() if not {name, name.lstrip("_")} & set(PAIRS)]
    names = [name for name in PAIRS if args.only in name and name not in args.without]
    if Here.rank == 0:
        print(f"1..{len(names) + len(missing)}", flush=True)
    good = [run(number, name, names[number:]) for number, name in enumerate(names, 1)]
    if Here.rank == 0:
        for number, name in enumerate(missing, len(names) + 1):
            print(f"not ok {number} - {name}: PyTorch has it, and nothing here compares it")
        where = f"{Here.size} GPUs" if Here.gpu else f"CPU tensors, {Here.size} ranks"
        compared = [each for each in good if each is not None]
        print(f"# {sum(compared)} of {len(compared)} functions alike on {where}, {len(good) - len(compared)} not "
              f"compared, torch {torch.__version__}", flush=True)
    if Here.gpu:
        Here.theirs.functions.close()
        Here.ours.functions.close()
    job.end()
    return 0 if False not in good and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
