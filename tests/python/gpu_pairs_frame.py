# SPDX-License-Identifier: BSD-3-Clause
"""What the pairs of gpu_pairs.py share: the two sides that a call is made on, data that is new each
time, and the comparison of what came back.

    @pair
    def reduce(check):                          # compares the function of this name
        x = random(64)
        check.same(lambda m: m.reduce(m.symmetric(x), m.group), lambda m: m.gathered(x).sum(0))
        check.wrong(RuntimeError, lambda m: m.reduce(x[::2], m.group))

The first function is called with PyTorch's side, then with Weft's, both in the world, and with Weft's in
a group of some ranks. The second makes what is expected: a tensor of float64, which results have to
come near to, or what they have to be, bit by bit. Both are collective: all ranks call.
"""
import torch
import torch.distributed as dist

WIDTH = {torch.float32: 2.0 ** -23, torch.bfloat16: 2.0 ** -7, torch.float16: 2.0 ** -10}
NARROW = (torch.float8_e4m3fn, torch.float8_e5m2)
TERMS = 64  # a result may be off by this many units in the last place of the largest
PAIRS = {}


class Here:
    """This rank, the groups and both sides; filled in by gpu_pairs.py."""
    theirs = ours = part = None


def pair(function):
    """The scene that compares the functions of this name."""
    PAIRS[function.__name__] = function
    return function


def scenes(*names):
    """One scene for several functions that are alike: called with the name as well."""
    def add(function):
        for name in names:
            PAIRS[name] = lambda check, name=name: function(check, name)
        return function
    return add


class Left(Exception):
    """A function that cannot be compared here, with the reason."""


class Wrong(Exception):
    """Returns the values of all members: (members, *shape)."""


# --- Data --------------------------------------------------------------------------------------------

def random(*shape, dtype=torch.float32):
    if dtype.is_floating_point:
        return torch.randn(shape, device=Here.device).to(dtype)
    return torch.randint(0, 100, shape, device=Here.device).to(dtype)


def poisoned(*shape, dtype=torch.float32):
    return torch.full(shape, float("nan") if dtype.is_floating_point else 77, device=Here.device).to(dtype)


def whole(tensor, group, size):
    """Returns the values of all members, as they are: (members, *shape)."""
    flat = tensor.detach().clone(memory_format=torch.contiguous_format).view(-1).view(torch.uint8)
    parts = [torch.empty_like(flat) for _ in range(size)]
    if flat.numel():
        dist.all_gather(parts, flat, group=group)
    return torch.stack([part.view(tensor.dtype).view(tensor.shape) for part in parts])


def meet():
    if Here.gpu:
        torch.cuda.synchronize()
    dist.barrier()


class Members:
    """A group as one of its members sees it."""

    def __init__(self, group):
        self.process_group, self.group = group, group.group_name
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.right, self.left = (self.rank + 1) % self.size, (self.rank - 1) % self.size

    def bits(self, tensor):
        """Returns the values of all members, stacked."""
        return whole(tensor, self.process_group, self.size)

    def gathered(self, tensor):
        """Returns the values of all members, stacked, in float64."""
        return self.bits(tensor).double()

    def joined(self, tensor, dim):
        return torch.cat(list(self.bits(tensor)), dim)

    def part(self, tensor, dim=0):
        return tensor.chunk(self.size, dim)[self.rank]


class Side(Members):
    """Returns the members with the functions of one side."""

    def __init__(self, functions, group):
        super().__init__(group)
        self.functions = functions

    def has(self, name):
        return self.functions.find(name) is not None

    def __getattr__(self, name):
        found = self.functions.find(name)
        if found is None:
            raise Wrong(f"{self.functions.name} has no {name}")
        return found

    def symmetric(self, values):
        """A symmetric copy."""
        with self.functions:
            return self.functions.empty(values.shape, values.dtype, Here.device).copy_(values)

    def handle(self, values):
        """A symmetric copy and its handle."""
        tensor = self.symmetric(values)
        return tensor, self.rendezvous(tensor, self.group)


# --- Comparing ---------------------------------------------------------------------------------------

def flat(results):
    """Returns whether all are tensors."""
    if isinstance(results, dict):
        return [item for name in sorted(results) for item in flat(results[name])]
    if isinstance(results, (list, tuple)) and not isinstance(results, torch.Size):
        return [item for each in results for item in flat(each)]
    return [results]


def steps(tensor):
    """The strides that mean something."""
    return [step for size, step in zip(tensor.shape, tensor.stride()) if size > 1 and tensor.numel()]


def error_of(got, expected):
    """Root mean square, and the largest, in units of the largest expected value."""
    if expected.numel() == 0:
        return 0.0, 0.0
    scale, off = max(expected.abs().max().item(), 1e-30), got.double() - expected
    largest = off.abs().max().item()
    return off.square().mean().sqrt().item() / scale, (largest if largest == largest else float("inf")) / scale


def equal(got, expected):
    if isinstance(got, torch.Tensor) and isinstance(expected, torch.Tensor):
        if got.shape != expected.shape or got.dtype != expected.dtype:
            return False
        return got.numel() == 0 or torch.equal(got.contiguous().view(-1).view(torch.uint8),
                                               expected.to(got.device).contiguous().view(-1).view(torch.uint8))
    return type(got) is type(expected) and got == expected


def shown(value):
    return f"{list(value.shape)} {value.dtype} {value.flatten()[:6].tolist()}" if isinstance(value, torch.Tensor) \
        else repr(value)


class Check:
    """One function: how many cases were compared, and in what."""

    def __init__(self, name):
        self.name, self.cases, self.kinds, self.notes, self.alone = name, 0, [], [], True
        self.problems = []  # kept, not raised, so that the other ranks can continue

    def _did(self, *kinds):
        self.kinds += [kind for kind in kinds if kind not in self.kinds]

    def same(self, call, reference=None, theirs=True, strides=True, groups=True):
        """theirs=False: PyTorch's own has no such case. groups=False: in the world alone."""
        self.cases += 1
        world = reference(Here.ours) if reference else None
        meet()
        made = flat(self._made(Here.theirs, call)) if theirs and Here.theirs.has(self.name) else None
        got = flat(self._made(Here.ours, call))
        self._compare(got, made, None if reference is None else flat(world), strides)
        if groups and reference and Here.part is not None:
            expected = flat(reference(Here.part))
            self._compare(flat(self._made(Here.part, call)), None, expected, strides)
        meet()

    def _made(self, side, call):
        """Copies of what came back: the next call may write there."""
        with side.functions:
            results = [each.clone() if isinstance(each, torch.Tensor) else each for each in flat(call(side))]
            meet_in(side)
        return results

    def _problem(self, text):
        self.problems.append(f"case {self.cases}: {text}")

    def _compare(self, *results):
        try:
            self._compare_all(*results)
        except Wrong as error:
            self._problem(error)

    def _compare_all(self, got, theirs, expected, strides):
        if theirs is not None:
            self.alone = False
            if len(got) != len(theirs):
                raise Wrong(f"{len(got)} results, PyTorch's own has {len(theirs)}")
        if expected is not None and len(got) != len(expected):
            raise Wrong(f"{len(got)} results, expected {len(expected)}")
        for at, mine in enumerate(got):
            other, wanted = theirs and theirs[at], expected and expected[at]
            if theirs is not None:
                self._layout(mine, other, strides and not (Here.ours.size == 1 and not Here.gpu))
            self._values(mine, other, wanted, theirs is not None, expected is not None)

    def _layout(self, mine, other, strides):
        if not isinstance(mine, torch.Tensor) or not isinstance(other, torch.Tensor):
            return
        if (mine.shape, mine.dtype, mine.device) != (other.shape, other.dtype, other.device):
            raise Wrong(f"got {tuple(mine.shape)} {mine.dtype} {mine.device}, PyTorch's own is "
                        f"{tuple(other.shape)} {other.dtype} {other.device}")
        self._did("shape", "dtype")
        if strides:
            self._did("strides")
            if steps(mine) != steps(other):
                raise Wrong(f"got strides {mine.stride()} of {tuple(mine.shape)}, PyTorch's own are {other.stride()}")

    def _values(self, mine, other, wanted, has_other, has_wanted):
        self._did("values")
        if isinstance(wanted, torch.Tensor) and wanted.dtype == torch.float64 and mine.dtype in WIDTH:
            return self._near(mine, other, wanted)
        if has_wanted and not equal(mine, wanted):
            raise Wrong(f"got {shown(mine)}, expected {shown(wanted)}")
        if has_other and not equal(mine, other):
            raise Wrong(f"got {shown(mine)}, PyTorch's own is {shown(other)}")

    def _near(self, mine, other, wanted):
        if mine.shape != wanted.shape:
            raise Wrong(f"got {tuple(mine.shape)}, expected {tuple(wanted.shape)}")
        width, (mean, largest) = WIDTH[mine.dtype], error_of(mine, wanted)
        allowed = (TERMS * width, TERMS * width)
        if other is not None:
            allowed = tuple(2 * error + width for error in error_of(other, wanted))
            allowed = (allowed[0] * .75, allowed[1] * 2)  # the mean is more significant than the largest error
        if not (mean <= allowed[0] and largest <= allowed[1]):
            raise Wrong(f"errors {mean:.3g} in the mean and {largest:.3g} at most, allowed {allowed[0]:.3g} and "
                        f"{allowed[1]:.3g}")

    def wrong(self, kind, call, decided=None, theirs=True):
        """Both raise an error of this kind. decided: why Weft's may be another than PyTorch's."""
        self.cases += 1
        self._did("errors")
        got = self._raised(Here.ours, call)
        if not isinstance(got, kind):
            self._problem(f"raised {got!r}, expected {kind}")
        if not (theirs and Here.theirs.functions.refuses(self.name, kind)):
            return meet()
        other = self._raised(Here.theirs, call)
        if isinstance(got, type(other)):
            return meet()
        if decided:
            self.notes.append(f"{type(got).__name__}, PyTorch's own: {type(other).__name__}: {decided}")
        else:
            self._problem(f"raised {got!r}, PyTorch's own {other!r}")
        meet()

    def _raised(self, side, call):
        with side.functions, side.functions.checking():
            try:
                call(side)
                meet_in(side)
            except Exception as error:
                return error
        return None

    def is_true(self, fact, text):
        self.cases += 1
        self._did("values")
        if not fact:
            self._problem(text)

    def line(self):
        kinds = [kind for kind in ("values", "shape", "strides", "dtype", "errors") if kind in self.kinds]
        how = f"; {Here.theirs.functions.none}" if self.alone and "values" in kinds else ""
        return f"{self.name}: {', '.join(kinds)} ({self.cases} cases{how})"


def meet_in(side):
    if Here.gpu:
        torch.cuda.synchronize()
    dist.barrier(group=side.process_group)


def alone(check, call, reference=None):
    """Compares in the world, without PyTorch's own."""
    check.same(call, reference, theirs=False, groups=False)


def refused(check, kind, call):
    """Compares Weft's side only."""
    check.wrong(kind, call, theirs=False)
