# SPDX-License-Identifier: BSD-3-Clause
"""Lanes: sequences of work, each done in order. The calling thread is a lane, and so is a CUDA stream. Calling a lane
gives it work:

    lane(torch.mm, a, b, out=c)
    lane(weft.put_slice, dest, source, n, pe, stream=lane.stream)

Marks join two lanes:

    other.after(lane.mark())      # the other lane continues from here
"""
import torch


class Thread:
    """The calling thread: work is complete when the call returns."""

    stream = None
    at_once = True

    def __call__(self, work, *args, **kwargs):
        return work(*args, **kwargs)

    def follows(self, other):
        pass

    def is_captured(self):
        return False


class Stream:
    """A CUDA stream: work is enqueued, also into a graph that is being captured."""

    at_once = False

    def __init__(self, stream):
        self.stream = stream

    def __call__(self, work, *args, **kwargs):
        # Does what torch.cuda.stream does, which takes five times as long.
        device, before = torch.cuda.current_device(), torch.cuda.current_stream(self.stream.device)
        torch.cuda.set_stream(self.stream)
        try:
            return work(*args, **kwargs)
        finally:
            torch.cuda.set_stream(before)
            if device != self.stream.device_index:
                torch.cuda.set_device(device)

    def mark(self):
        return self.stream.record_event()

    def after(self, mark):
        self.stream.wait_event(mark)

    def follows(self, other):
        """Waits for the current end of the other stream, unless only one of the two is being captured into a graph."""
        if other.stream != self.stream and other.is_captured() == self.is_captured():
            self.after(other.mark())

    def is_captured(self):
        # Makes the stream current, because it may have been current only at an earlier time.
        return Stream.__call__(self, torch.cuda.is_current_stream_capturing)


class CurrentStream(Stream):
    """PyTorch's current stream, during one call."""

    def __call__(self, work, *args, **kwargs):
        return work(*args, **kwargs)


_thread = Thread()


def lane_of(device):
    """Returns the lane on which PyTorch's own operators would work on such tensors now."""
    if device.type == "cpu":
        return _thread
    return CurrentStream(torch.cuda.current_stream(device))
