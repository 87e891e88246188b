# SPDX-License-Identifier: BSD-3-Clause
"""weft.Lock, a lock that all PEs share."""
from types import TracebackType

from weft._core import clear_lock, set_lock, test_lock, zeros


class Lock:
    """A lock that one PE holds at a time, as threading.Lock is for threads: `with lock:`, or acquire() and release().
    Making one is collective over all PEs. Waiting PEs are served in the order of their calls. After release(), and so
    after the block, everything that the holder has put has arrived.

    RuntimeError: before init(), after finalize(), or a peer failed.
    """

    __slots__ = {"word": "What set_lock() and its like take: one element of int64.", "__weakref__": None}

    def __init__(self) -> None:
        self.word = zeros(1, "int64")

    def __repr__(self) -> str:
        return "<weft.Lock, gone>" if self.word.freed else "<weft.Lock>"

    def acquire(self, blocking: bool = True) -> bool:
        """Blocks until this PE holds the lock, or, with blocking=False, takes it only if it is free. Returns whether
        the lock is held.

        RuntimeError: this thread holds the lock already, or a peer failed.
        """
        if not blocking:
            return not test_lock(self.word)
        set_lock(self.word)
        return True

    def release(self) -> None:
        """Releases the lock. RuntimeError: this PE does not hold it."""
        clear_lock(self.word)

    def free(self) -> None:
        """Frees the lock's memory. Local; garbage collection does the same."""
        self.word.free()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
