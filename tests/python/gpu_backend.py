#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's symmetric memory on real GPUs, with Weft as its backend or with PyTorch's own:

    torchrun --standalone --nproc-per-node 4 tests/python/gpu_backend.py --backend WEFT --seed 7 --out weft.json
    torchrun --standalone --nproc-per-node 4 tests/python/gpu_backend.py --backend CUDA --seed 7 --out cuda.json
    python tests/python/gpu_backend.py --compare weft.json cuda.json

Every scene runs on all ranks, with data that is new each time unless there is a --seed, outputs poisoned
before, and results compared with float64. --compare says for each result whether Weft's is as near to the truth. oshrun
-n 4 in place of torchrun does as well. Without a GPU some scenes run on CPU tensors, for a trial.
"""
import argparse
import datetime
import faulthandler
import json
import os
import pathlib
import sys
import traceback
import zlib

os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.distributed_c10d as c10d  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import job  # noqa: E402
from gpu_frame import ERRORS, SCENES, Here, setup, wait_for_gpu  # noqa: E402
import gpu_handles  # noqa: E402, F401
import gpu_groups  # noqa: E402, F401
import gpu_operators  # noqa: E402, F401
import gpu_pools  # noqa: E402, F401
import gpu_weft  # noqa: E402, F401

PATIENCE = 90  # seconds for a scene


def outcome(function):
    """Runs a scene. Returns None if it passed, or the reason."""
    try:
        function()
        wait_for_gpu()
    except NotImplementedError as error:
        return None if not Here.gpu and "from the 'CPU' backend" in str(error) else traceback.format_exc()
    except Exception:
        return traceback.format_exc()
    return None


def outcomes(function, mine):
    """Exchanges the ranks' results through the store, because a failed scene may have left collective calls undone. A
    rank that does not answer ends the run."""
    store, names = c10d._get_default_store(), [f"{function.__name__}/{rank}" for rank in range(Here.size)]
    store.set(names[Here.rank], mine or "")
    try:
        store.wait(names, datetime.timedelta(seconds=PATIENCE))
    except RuntimeError:
        late = [rank for rank, name in enumerate(names) if not store.check([name])]
        print(f"# rank {Here.rank}: ranks {late} do not come back from {function.__name__}; here: {mine}", flush=True)
        os._exit(1)
    return [store.get(name).decode() for name in names]


def run(function):
    """True if it went well on all ranks."""
    if Here.seed is not None:
        torch.manual_seed(zlib.crc32(f"{Here.seed} {Here.rank} {function.__name__}".encode()))
    left_out = not Here.gpu and hasattr(function, "needs_gpu")
    faulthandler.dump_traceback_later(PATIENCE - 10)
    told = outcomes(function, None if left_out else outcome(function))
    if Here.rank == 0:
        print(f"{'not ok' if any(told) else 'ok'} - {function.__name__}{' # SKIP no GPU' if left_out else ''}")
        for text in {text for text in told if text}:
            ranks = [rank for rank, other in enumerate(told) if other == text]
            print(f"# ranks {ranks}: " + "\n#   ".join(text.splitlines()[-15:]))
        sys.stdout.flush()
    return not any(told)


def worst_errors():
    parts = [None] * Here.size
    dist.all_gather_object(parts, ERRORS)
    return {name: max(part.get(name, 0.0) for part in parts) for name in sorted(set().union(*parts))}


def compare(one, other):
    """Compares the errors of two runs with float64, result by result."""
    one, other = (json.loads(pathlib.Path(path).read_text()) for path in (one, other))
    worse = 0
    for name in sorted(set(one) & set(other)):
        ok = name.startswith("us ") or one[name] <= other[name] * 1.5 + 1e-6
        worse += not ok
        print(f"{'ok' if ok else 'not ok'} - {name}: {one[name]:.3g} against {other[name]:.3g}")
    print(f"# {len(set(one) - set(other))} results of the first alone, {len(set(other) - set(one))} of the second")
    return 1 if worse else 0


def arguments():
    parser = argparse.ArgumentParser(description="PyTorch's symmetric memory on real GPUs")
    parser.add_argument("--backend", choices=["WEFT", "CUDA"], default="WEFT")
    parser.add_argument("--only", default="", help="scenes with this in their name")
    parser.add_argument("--without", nargs="*", default=[], help="scenes that are left out")
    parser.add_argument("--seed", type=int, help="the same data for both backends")
    parser.add_argument("--out", help="file for the errors found")
    parser.add_argument("--compare", nargs=2)
    return parser.parse_args()


def main():
    args = arguments()
    if args.compare:
        return compare(*args.compare)
    setup(args.backend)
    Here.seed = args.seed
    scenes = [s for s in SCENES if args.only in s.__name__ and s.__name__ not in args.without and
              (args.backend == "WEFT" or not s.__name__.startswith("weft_"))]
    good = [run(function) for function in scenes]
    faulthandler.cancel_dump_traceback_later()
    errors = worst_errors()
    if Here.rank == 0:
        print(f"# {sum(good)} of {len(good)} scenes on {Here.size} GPUs, {args.backend}, torch {torch.__version__}")
        if args.backend == "WEFT":
            import weft.torch
            print(f"# {weft.torch.counters()}", flush=True)
        if args.out:
            pathlib.Path(args.out).write_text(json.dumps(errors, indent=1))
    job.end()
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
