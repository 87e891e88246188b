# SPDX-License-Identifier: BSD-3-Clause
"""weft/device.cuh for Triton: put, signal, wait and synchronise inside a kernel.

    import triton.language as tl
    import weft.triton as wt

    @wt.jit
    def ring(team, inbox, outbox, arrived, nelems, round):
        right = (wt.me(team) + 1) % wt.n(team)
        wt.put_signal(team, inbox, outbox, nelems, arrived, round, wt.SIGNAL_SET, right)
        wt.wait_ge(team, arrived, round)

    team = weft.device_team()
    ring[(1,)](team.address, inbox, outbox, arrived, inbox.numel(), 1)

`team` is the address of a weft_device_team in GPU memory, m a member's rank. Peers can access memory of the device
heap: weft.empty(..., space="device"), also as torch tensors. A program of the grid is one caller: a function does its
work once for the program, as a whole, between the statements around it. Only at, p, g and the packets take tensors,
element by element. Stores through tensor descriptors count like other stores. Waits return 1, or 0 when the job is
over: then results are undefined, and every further wait returns after about a millisecond.

A grid that waits must fit on the GPU as a whole (launch_cooperative_grid=True ensures it). Functions synchronise all
warps of a program, so they must not be used in warp-specialised parts. Triton does not pipeline a loop that calls one
of them: it would load data before the wait for that data.
"""
try:
    import triton
    import triton.language as tl
except ImportError as _lacks:
    raise ImportError("weft.triton needs Triton: pip install triton") from _lacks

from weft.triton import _extern
from weft.triton._library import jit, libs

SIGNAL_SET, SIGNAL_ADD = tl.constexpr(1), tl.constexpr(2)
CMP_EQ, CMP_NE, CMP_GT, CMP_GE, CMP_LT, CMP_LE = map(tl.constexpr, range(1, 7))


@triton.jit
def _bytes(p):
    """Returns the bytes of an element that p points to: a bool has 1 bit, and takes a byte."""
    return (p.dtype.element_ty.primitive_bitwidth + 7) // 8


# Triton's pipeliner moves loads in a loop before externs, even before impure ones, but not past a tl.debug_barrier().
# So each function after which memory may look different has one.

# --- The team ---------------------------------------------------------------------------------------------

@triton.jit
def me(team):
    """Returns this PE's rank in the team."""
    return _extern.me(team)


@triton.jit
def n(team):
    """Returns the number of members."""
    return _extern.n(team)


@triton.jit
def at(team, p, m):
    """Returns the address of member m's copy of this PE's memory at p, a pointer or a tensor of pointers; for tl.load,
    tl.store and atomics with scope="sys".
    """
    # A distance, which is a multiple of a page, preserves Triton's knowledge of p's alignment.
    distance = _extern.at(team, 0, m) // _bytes(p)
    return p + tl.multiple_of(distance, 128)


@triton.jit
def abort(team, status):
    """Ends the job with this status."""
    _extern.abort(team, status)


# --- Copies -----------------------------------------------------------------------------------------------

@triton.jit
def put(team, dest, source, nelems, m):
    """Copies nelems elements from source, any memory of this GPU, to dest on member m."""
    tl.static_assert(dest.dtype == source.dtype, "put: dest and source point to different types")
    _extern.stores_wait()
    tl.debug_barrier()
    _extern.put_b(team, dest, source, tl.cast(nelems, tl.int64) * _bytes(dest), m)
    tl.debug_barrier()


@triton.jit
def get(team, dest, source, nelems, m):
    """Copies nelems elements from source on member m to dest, any memory of this GPU."""
    tl.static_assert(dest.dtype == source.dtype, "get: dest and source point to different types")
    _extern.stores_wait()
    tl.debug_barrier()
    _extern.get_b(team, dest, source, tl.cast(nelems, tl.int64) * _bytes(dest), m)
    tl.debug_barrier()


@triton.jit
def put_signal(team, dest, source, nelems, sig, value, op, m):
    """put, then sets (or, by op, increases) the signal sig on member m, ordered after the data."""
    tl.static_assert(dest.dtype == source.dtype, "put_signal: dest and source point to different types")
    tl.static_assert(sig.dtype.element_ty.primitive_bitwidth == 64, "put_signal: sig points to no words of 64 bits")
    _extern.stores_wait()
    tl.debug_barrier()
    _extern.put_signal_b(team, dest, source, tl.cast(nelems, tl.int64) * _bytes(dest), sig, value, op, m)


# --- Signals: 64-bit words --------------------------------------------------------------------------------

@triton.jit
def signal(team, sig, value, m):
    """Sets the signal on member m, ordered after everything that this program has stored so far."""
    tl.static_assert(sig.dtype.element_ty.primitive_bitwidth == 64, "signal: sig points to no words of 64 bits")
    _extern.stores_wait()
    _extern.put_signal_b(team, 0, 0, 0, sig, value, SIGNAL_SET, m)


@triton.jit
def signal_add(team, sig, value, m):
    """Adds to the signal on member m, ordered after everything that this program has stored so far."""
    tl.static_assert(sig.dtype.element_ty.primitive_bitwidth == 64, "signal_add: sig points to no words of 64 bits")
    _extern.stores_wait()
    _extern.put_signal_b(team, 0, 0, 0, sig, value, SIGNAL_ADD, m)


@triton.jit
def signal_fetch(team, sig):
    """Returns the value of this PE's own signal; everything that was stored before the signal is visible then."""
    tl.static_assert(sig.dtype.element_ty.primitive_bitwidth == 64, "signal_fetch: sig points to no words of 64 bits")
    tl.debug_barrier()
    return tl.cast(_extern.signal_fetch_b(team, sig), sig.dtype.element_ty, bitcast=True)


@triton.jit
def wait_until(team, sig, cmp, value):
    """Waits until this PE's own signal compares with value."""
    tl.static_assert(sig.dtype.element_ty.primitive_bitwidth == 64, "wait_until: sig points to no words of 64 bits")
    tl.debug_barrier()
    return _extern.wait_until_b(team, sig, cmp, value)


@triton.jit
def wait_ge(team, sig, value):
    """wait_until(team, sig, CMP_GE, value)."""
    tl.static_assert(sig.dtype.element_ty.primitive_bitwidth == 64, "wait_ge: sig points to no words of 64 bits")
    tl.debug_barrier()
    return _extern.wait_until_b(team, sig, CMP_GE, value)


@triton.jit
def wait_eq(team, sig, value):
    """wait_until(team, sig, CMP_EQ, value)."""
    tl.static_assert(sig.dtype.element_ty.primitive_bitwidth == 64, "wait_eq: sig points to no words of 64 bits")
    tl.debug_barrier()
    return _extern.wait_until_b(team, sig, CMP_EQ, value)


# --- Words and atomics: not ordered with anything else, except by fence() before or after them ------------------

@triton.jit
def p(team, dest, value, m):
    """Stores a word of 4 or 8 bytes on member m, once for the program; member m may poll the word. For tensors, the
    thread that has an element stores it; if the layout has copies of an element, several threads store it, at
    different times, so no other PE may change the word meanwhile.
    """
    word = tl.cast(value, dest.dtype.element_ty)
    if dest.dtype.element_ty.primitive_bitwidth == 32:
        _extern.p32(team, dest, tl.cast(word, tl.uint32, bitcast=True), m)
    else:
        _extern.p64(team, dest, tl.cast(word, tl.uint64, bitcast=True), m)


@triton.jit
def g(team, source, m):
    """Loads a word of 4 or 8 bytes of member m, anew each time: once for the program. For tensors each thread loads its
    elements, so copies of an element in several threads may have been loaded at different times.
    """
    if source.dtype.element_ty.primitive_bitwidth == 32:
        return tl.cast(_extern.g32(team, source, m), source.dtype.element_ty, bitcast=True)
    else:
        return tl.cast(_extern.g64(team, source, m), source.dtype.element_ty, bitcast=True)


@triton.jit
def atomic_fetch(team, word, m):
    """Returns the value of a word of member m. For tensors uses atomics that add 0, because threads would load
    different values."""
    if at(team, word, m).type.is_block():
        return atomic_fetch_add(team, word, 0, m)
    else:
        return g(team, word, m)


@triton.jit
def atomic_set(team, word, value, m):
    """Sets a word of member m."""
    atomic_swap(team, word, value, m)


@triton.jit
def atomic_swap(team, word, value, m):
    """Sets a word of member m and returns the old value."""
    return tl.atomic_xchg(at(team, word, m), tl.cast(value, word.dtype.element_ty), sem="relaxed", scope="sys")


@triton.jit
def atomic_compare_swap(team, word, cond, value, m):
    """Sets a word of member m if it equals cond, and returns the old value."""
    return tl.atomic_cas(at(team, word, m), tl.cast(cond, word.dtype.element_ty), tl.cast(value, word.dtype.element_ty),
                         sem="relaxed", scope="sys")


@triton.jit
def atomic_add(team, word, value, m):
    """Adds to a word of member m."""
    atomic_fetch_add(team, word, value, m)


@triton.jit
def atomic_fetch_add(team, word, value, m):
    """Adds to a word of member m and returns the old value."""
    return tl.atomic_add(at(team, word, m), tl.cast(value, word.dtype.element_ty), sem="relaxed", scope="sys")


@triton.jit
def atomic_fetch_and(team, word, value, m):
    """Performs a bitwise and; returns the old value."""
    return tl.atomic_and(at(team, word, m), tl.cast(value, word.dtype.element_ty), sem="relaxed", scope="sys")


@triton.jit
def atomic_fetch_or(team, word, value, m):
    """Performs a bitwise or; returns the old value."""
    return tl.atomic_or(at(team, word, m), tl.cast(value, word.dtype.element_ty), sem="relaxed", scope="sys")


@triton.jit
def atomic_fetch_xor(team, word, value, m):
    """Performs a bitwise exclusive or; returns the old value."""
    return tl.atomic_xor(at(team, word, m), tl.cast(value, word.dtype.element_ty), sem="relaxed", scope="sys")


# --- Order ------------------------------------------------------------------------------------------------

@triton.jit
def fence():
    """Orders everything that this program has stored so far before its later stores."""
    _extern.stores_wait()
    tl.debug_barrier()
    _extern.fence_b()


@triton.jit
def quiet():
    """Completes everything that this program has stored so far."""
    fence()


@triton.jit
def fence_async():
    """Needed between a wait and loads through tensor descriptors of data that peers have stored (Hopper and later)."""
    tl.debug_barrier()
    _extern.fence_async()


# --- Synchronisation: program i of a member with program i of the others, on a channel -----------------------

@triton.jit
def arrive(team, channel):
    """The first half of a barrier: everything that this program has stored so far is visible to members that depart."""
    _extern.stores_wait()
    _extern.arrive_b(team, channel)


@triton.jit
def depart(team, channel):
    """The second half: waits until all members have arrived."""
    tl.debug_barrier()
    return _extern.depart_b(team, channel)


@triton.jit
def barrier(team, channel):
    """Synchronises all members; each sees everything that the others have stored before."""
    _extern.stores_wait()
    tl.debug_barrier()
    return _extern.barrier_b(team, channel)


@triton.jit
def sync(team, channel):
    """Synchronises all members, without ordering memory."""
    tl.debug_barrier()
    return _extern.sync_b(team, channel)


@triton.jit
def barrier_grid(team):
    """Synchronises all programs of all members; the whole grid must be resident."""
    _extern.stores_wait()
    tl.debug_barrier()
    return _extern.barrier_grid(team)


# --- Packets: 8 bytes that carry their own flag --------------------------------------------------------------

@triton.jit
def ll_epoch_begin(team, channel):
    """Begins an epoch of this program's packets on the channel, and returns it; in each epoch every member sends to all
    others."""
    return _extern.ll_epoch_begin(team, channel)


@triton.jit
def ll_epoch_end(team, channel, epoch):
    """Ends the epoch, after all packets have been received."""
    _extern.ll_epoch_end(team, channel, epoch)


@triton.jit
def ll_send(team, channel, unit, data, epoch, m):
    """Sends 64-bit words as packets number `unit` to member m."""
    _extern.ll_send(team, channel, unit, tl.cast(data, tl.uint64, bitcast=True), epoch, m)


@triton.jit
def ll_bcast(team, channel, unit, data, epoch):
    """Sends 64-bit words as packets number `unit` to all other members."""
    _extern.ll_bcast(team, channel, unit, tl.cast(data, tl.uint64, bitcast=True), epoch)


@triton.jit
def ll_recv(team, channel, unit, source, epoch):
    """Waits for member source's packets and returns the words: uint64."""
    return _extern.ll_data(team, channel, unit, source, epoch)


__all__ = ["CMP_EQ", "CMP_GE", "CMP_GT", "CMP_LE", "CMP_LT", "CMP_NE", "SIGNAL_ADD", "SIGNAL_SET", "abort", "arrive",
           "at", "atomic_add", "atomic_compare_swap", "atomic_fetch", "atomic_fetch_add", "atomic_fetch_and",
           "atomic_fetch_or", "atomic_fetch_xor", "atomic_set", "atomic_swap", "barrier", "barrier_grid", "depart",
           "fence", "fence_async", "g", "get", "jit", "libs", "ll_bcast", "ll_epoch_begin", "ll_epoch_end", "ll_recv",
           "ll_send", "me", "n", "p", "put", "put_signal", "quiet", "signal", "signal_add", "signal_fetch", "sync",
           "wait_eq", "wait_ge", "wait_until"]
