# SPDX-License-Identifier: BSD-3-Clause
"""The collectives of weft.torch.hyperparallel in lanes whose work is done later, in threads, at its
own pace: what CUDA streams do with it, on CPU tensors. Work is late by drawn times, so that whatever
is not ordered by a mark comes at the wrong time. And recorded once and played again, as graphs are.
"""
import functools
import queue
import random
import threading
import time

import pytest
import torch
import weft
from torch_handler import SEED, Guarded, data, dawdle, same, symm
from weft.torch import _call, _owner, _world


class Lane:
    """A thread that does what it is given."""

    stream, at_once = None, False

    def __init__(self, name="main"):
        self.work, self.failed = queue.Queue(), []
        self.draw = random.Random(f"{SEED} {name} {weft.my_pe()}")
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        for work in iter(self.work.get, None):
            time.sleep(self.draw.choice([0, 0, 0, 2e-3]) * self.draw.random())
            try:
                work()
            except Exception as error:  # the test shows it
                self.failed.append(error)

    def __call__(self, work, *args, **kwargs):
        self.work.put(functools.partial(work, *args, **kwargs))

    def mark(self):
        event = threading.Event()
        self(event.set)
        return event

    def after(self, mark):
        self(mark.wait)

    def follows(self, other):
        if other is not self:
            self.after(other.mark())

    def is_captured(self):
        return False

    def drain(self):
        self.mark().wait(60)
        assert not self.failed, self.failed


class Recorder:
    """What it was given, to be done again and again, as a graph is launched."""

    stream, at_once = None, False

    def __init__(self):
        self.orders = []

    def __call__(self, work, *args, **kwargs):
        self.orders.append(functools.partial(work, *args, **kwargs))

    def play(self, lane):
        for work in self.orders:
            lane(work)

    def follows(self, other):
        assert other is self

    def is_captured(self):
        return True


# Communication of the hosts uses its own words, separate from those of the lanes' later work, as on GPUs.
_hosts = _world.World()


@pytest.fixture
def current(monkeypatch):
    """current[0] is the lane that calls find."""
    lanes = [Lane()]
    for module in (_call, _owner):
        monkeypatch.setattr(module, "lane_of", lambda device: lanes[0])
    for name in ("agree", "exchange"):
        def by_hosts(world, *arguments, original=getattr(_world.World, name)):
            return original(_hosts, *arguments)
        monkeypatch.setattr(_world.World, name, by_hosts)
    _world.world()._last = None
    yield lanes
    _world.world()._last = None
    for lane in lanes:
        lane.drain()
        lane.work.put(None)


# --- Calls and what comes of them ----------------------------------------------------------------

class Scene:
    """Repeats a call on the same tensors. Its inputs are written in the lane before the call, and overwritten in the
    lane after it."""

    def __init__(self, n):
        self.n = n

    def round(self, turn, me, lane):
        """Enqueues everything; the results are kept in the lane."""
        kept = []
        for tensor, values in zip(self.inputs, self.values(turn, me)):
            lane(tensor.copy_, values)
        self.poison(lane)
        result = self.call(turn)
        lane(lambda: kept.extend(one.clone() for one in self.results(result)))
        for tensor in self.inputs:
            lane(tensor.fill_, -9)
        return kept

    def poison(self, lane):
        pass


class AllGather(Scene):
    def __init__(self, n, me):
        super().__init__(n)
        self.output, self.inputs = Guarded((n, 30), torch.int64), [torch.empty(30, dtype=torch.int64)]

    def values(self, turn, rank):
        return [data((turn, rank), (30,), torch.int64)]

    def call(self, turn):
        symm.shmem_allgather(self.output.inside, self.inputs[0])

    def results(self, _):
        return [self.output.inside]

    def expected(self, turn, me):
        return [torch.stack([self.values(turn, rank)[0] for rank in range(self.n)])]


class AllToAll(Scene):
    """Counts change from call to call: 5 more with each rank round the ring."""

    def __init__(self, n, me):
        super().__init__(n)
        self.me, self.room = me, symm.empty(n * 40, torch.int64)
        self.inputs = [torch.empty(5 * ((me + d) % 4), dtype=torch.int64) for d in range(n)]

    def values(self, turn, rank):
        return [data((turn, rank, d), (5 * ((rank + d) % 4),), torch.int64) for d in range(self.n)]

    def call(self, turn):
        counts = [5 * ((s + self.me) % 4) for s in range(self.n)]
        symm.shmem_alltoall(self.inputs, self.room[:sum(counts)], counts)
        return sum(counts)

    def results(self, count):
        return [self.room[:count]]

    def expected(self, turn, me):
        return [torch.cat([self.values(turn, rank)[me] for rank in range(self.n)])]


class GatherMatmul(Scene):
    def __init__(self, n, me, signals=3, in_place=False):
        super().__init__(n)
        m = 7
        self.gathered, self.c = Guarded((m * n, 9), torch.int64), torch.empty(m * n, 4, dtype=torch.int64)
        self.signal = symm.empty(n * signals, torch.int32)
        own = self.gathered.inside[me * m:(me + 1) * m]
        self.inputs = [own if in_place else torch.empty(m, 9, dtype=torch.int64), torch.empty(9, 4, dtype=torch.int64)]

    def values(self, turn, rank):
        return [data((turn, rank, "a"), (7, 9), torch.int64), data((turn, rank, "b"), (9, 4), torch.int64)]

    def poison(self, lane):
        lane(self.c.fill_, 77)
        lane(self.signal.fill_, 1)  # as another call may have left it

    def call(self, turn):
        return symm.fused_all_gather_matmul(*self.inputs, self.c, self.gathered.inside, self.signal)

    def results(self, result):
        return result

    def expected(self, turn, me):
        whole = torch.cat([self.values(turn, rank)[0] for rank in range(self.n)])
        return [whole, whole @ self.values(turn, me)[1]]


class MatmulScatter(Scene):
    def __init__(self, n, me):
        super().__init__(n)
        self.room, self.signal = Guarded((3 * n, 4), torch.int64), symm.empty(n, torch.int32)
        self.inputs = [torch.empty(3 * n, 9, dtype=torch.int64), torch.empty(9, 4, dtype=torch.int64)]

    def values(self, turn, rank):
        return [data((turn, rank, "x1"), (3 * self.n, 9), torch.int64), data((turn, rank, "x2"), (9, 4), torch.int64)]

    def poison(self, lane):
        lane(self.signal.fill_, 1)

    def call(self, turn):
        return symm.fused_matmul_reduce_scatter(*self.inputs, self.room.inside, self.signal)

    def results(self, result):
        return [result]

    def expected(self, turn, me):
        return [sum(x1[3 * me:3 * me + 3] @ x2 for x1, x2 in (self.values(turn, rank) for rank in range(self.n)))]


SCENES = {"all-gather": AllGather, "all-to-all": AllToAll, "all-gather, matmul": GatherMatmul,
          "all-gather, matmul, one block": functools.partial(GatherMatmul, signals=1),
          "all-gather, matmul, in place": functools.partial(GatherMatmul, in_place=True),
          "matmul, reduce-scatter": MatmulScatter}


def check(scene, kept, turn, me):
    expected = scene.expected(turn, me)
    assert len(kept) == len(expected) and all(map(same, kept, expected)), (turn, kept, expected)


@pytest.mark.parametrize("name", SCENES)
def test_back_to_back(name, current, me, n):
    """Everything is enqueued before anything is looked at."""
    scene = SCENES[name](n, me)
    symm.barrier()
    rounds = []
    for turn in range(12):
        dawdle(turn)
        rounds.append(scene.round(turn, me, current[0]))
    current[0].drain()
    for turn, kept in enumerate(rounds):
        check(scene, kept, turn, me)


def test_calls_of_all_kinds_in_a_row(current, me, n):
    scenes = {name: make(n, me) for name, make in SCENES.items()}
    order = [name for name in SCENES for _ in range(4)]
    random.Random(SEED).shuffle(order)
    rounds = [(name, turn, scenes[name].round(turn, me, current[0])) for turn, name in enumerate(order)]
    current[0].drain()
    for name, turn, kept in rounds:
        check(scenes[name], kept, turn, me)


@pytest.mark.parametrize("name", SCENES)
def test_calls_in_several_lanes(name, current, me, n):
    """Calls follow each other, whichever lane is the current one; each lane has tensors of its own."""
    current += [Lane("second"), Lane("third")]
    scenes = [SCENES[name](n, me) for _ in current]
    symm.barrier()
    lanes, rounds = list(current), []
    for turn in range(9):
        current[0] = lanes[turn % 3]
        rounds.append(scenes[turn % 3].round(turn, me, current[0]))
    current[0] = lanes[0]
    for lane in lanes:
        lane.drain()
    for turn, kept in enumerate(rounds):
        check(scenes[turn % 3], kept, turn, me)


@pytest.mark.parametrize("name", SCENES)
def test_replays(name, current, me, n):
    """Recorded once; then new data, and again, with calls outside of the graph in between."""
    scene, graph = SCENES[name](n, me), Recorder()
    lane, kept = current[0], []
    symm.barrier()
    lane.drain()
    current[0] = graph
    _world.world()._last = None
    result = scene.call(0)
    current[0](lambda: kept.extend(one.clone() for one in scene.results(result)))
    current[0], _world.world()._last = lane, None
    for turn in range(8):
        if turn % 3 == 2:
            got = scene.round(turn, me, lane)
        else:
            got = kept
            for tensor, values in zip(scene.inputs, scene.values(turn, me)):
                lane(tensor.copy_, values)
            scene.poison(lane)
            graph.play(lane)
        lane.drain()
        check(scene, got, turn, me)
        kept.clear()
