# SPDX-License-Identifier: BSD-3-Clause
"""weft.Lock, a lock that all PEs share."""
from types import TracebackType

from weft._core import clear_lock, set_lock, test_lock, zeros


class Lock:
    """A lock that one PE holds at a time, as threading.Lock is for threads: `with lock:`, or
    acquire() and release(). To make one is collective over all PEs. Who waits is served in the order
    of coming. Behind release(), and so behind the block, what the holder has put is there.

    RuntimeError: before init(), after finalize(), a peer that failed.
    """

    __slots__ = {"word": "What set_lock() and its like take: one element of int64.", "__weakref__": None}

    def __init__(self) -> None:
        self.word = zeros(1, "int64")

    def __repr__(self) -> str:
        return "<weft.Lock, gone>" if self.word.freed else "<weft.Lock>"

    def acquire(self, blocking: bool = True) -> bool:
        """Waits for the lock, or, with blocking=False, takes it if it is free. Whether it is held now.

        RuntimeError: this thread holds it already, a peer that failed.
        """
        if not blocking:
            return not test_lock(self.word)
        set_lock(self.word)
        return True

    def release(self) -> None:
        """Lets the next one have it. RuntimeError: this PE does not hold it."""
        clear_lock(self.word)

    def free(self) -> None:
        """Gives its memory up. Local; also when the object goes."""
        self.word.free()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
