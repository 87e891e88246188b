# SPDX-License-Identifier: BSD-3-Clause
"""Lanes: in each, work is done in order. The calling thread is one, a CUDA stream is one; who calls
a lane gives it work to do:

    lane(torch.mm, a, b, out=c)
    lane(weft.put_slice, dest, source, n, pe, stream=lane.stream)

A lane that goes on beside another is joined with it by marks, both ways:

    side = lane.beside()
    side.after(lane.mark())       # the side lane goes on from here
    ...
    lane.after(side.mark())       # and here the lane goes on when the side lane has come to its end
"""
import torch


class Thread:
    """The calling thread: work is done when the call returns."""

    stream = None
    at_once = True

    def __call__(self, work, *args, **kwargs):
        return work(*args, **kwargs)

    def beside(self):
        return self

    def mark(self):
        return None

    def after(self, mark):
        pass

    def follows(self, other):
        pass

    def is_captured(self):
        return False


class Stream:
    """A CUDA stream: work is enqueued, also into a graph that is being captured."""

    at_once = False
    _sides = {}

    def __init__(self, stream):
        self.stream = stream

    def __call__(self, work, *args, **kwargs):
        # As torch.cuda.stream does, which takes five times as long.
        device, before = torch.cuda.current_device(), torch.cuda.current_stream(self.stream.device)
        torch.cuda.set_stream(self.stream)
        try:
            return work(*args, **kwargs)
        finally:
            torch.cuda.set_stream(before)
            if device != self.stream.device_index:
                torch.cuda.set_device(device)

    def beside(self):
        """One of its own for each stream. What goes on there is short and others wait for it."""
        key = self.stream.device_index, self.stream.cuda_stream
        if key not in self._sides:
            self._sides[key] = Stream(torch.cuda.Stream(self.stream.device, priority=-1))
        return self._sides[key]

    def mark(self):
        return self.stream.record_event()

    def after(self, mark):
        self.stream.wait_event(mark)

    def follows(self, other):
        """Goes on when the other stream has come to its end of now. A graph has no part in what is
        outside of it."""
        if other.stream != self.stream and other.is_captured() == self.is_captured():
            self.after(other.mark())

    def is_captured(self):
        # Also of what was current once, and is not any more.
        return Stream.__call__(self, torch.cuda.is_current_stream_capturing)


class CurrentStream(Stream):
    """PyTorch's current one, for the time of one call."""

    def __call__(self, work, *args, **kwargs):
        return work(*args, **kwargs)


_thread = Thread()


def lane_of(device):
    """Where PyTorch's own operators on such tensors do their work at the moment."""
    if device.type == "cpu":
        return _thread
    return CurrentStream(torch.cuda.current_stream(device))
