# SPDX-License-Identifier: BSD-3-Clause
"""Events and the communication stream of a Buffer (deep_ep.py). On the CPU a call is complete when it returns, and its
event has nothing to wait for.
"""
import torch


class EventHandle:
    """The current end of a CUDA stream, by default of the current one; without CUDA, nothing."""

    def __init__(self, stream=None):
        if stream is None and torch.cuda.is_available() and torch.cuda.is_initialized():
            stream = torch.cuda.current_stream()
        self.event = None if stream is None else stream.record_event()
        self._device = None if stream is None else stream.device

    def current_stream_wait(self):
        """Makes the current stream of the event's GPU wait for the event. The host does not wait."""
        if self.event is not None:
            torch.cuda.current_stream(self._device).wait_event(self.event)


class EventOverlap:
    """The event of a call, for overlap with other work:

        with event:
            work()                  # on the current stream, beside the call
        # from here on the current stream waits for the call

    event: an EventHandle, or None if the call was not asynchronous. extra_tensors: tensors to keep alive.
    """

    def __init__(self, event=None, extra_tensors=None):
        self.event, self.extra_tensors = event, extra_tensors
        self.hook_after_wait = None
        self._releases = False

    def current_stream_wait(self, release_handle=False):
        """Makes the current stream wait for the event, then calls the registered hook once. release_handle: forgets the
        event. RuntimeError if there is no event."""
        if self.event is None:
            raise RuntimeError("EventOverlap.current_stream_wait: there is no event: pass async_finish=True to the call")
        self.event.current_stream_wait()
        hook, self.hook_after_wait = self.hook_after_wait, None
        if hook is not None:
            hook()
        if release_handle:
            self.event = None

    def register_hook_after_wait(self, hook_after_wait):
        """Registers a function for the next current_stream_wait() to call. RuntimeError if there is one already."""
        if self.hook_after_wait is not None:
            raise RuntimeError("EventOverlap.register_hook_after_wait: a hook is registered already")
        self.hook_after_wait = hook_after_wait

    def __call__(self, release_handle=False):
        """Returns this object, for `with event(release_handle=True)`."""
        self._releases = release_handle
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.event is not None:
            self.current_stream_wait(self._releases)
        self._releases = False


class Communication:
    """The communication stream of a Buffer on each GPU. All its calls run there, in the order in which they are made."""

    def __init__(self):
        self._streams = {}

    def stream(self, device):
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)
        return self._streams[device]

    def run(self, device, previous, work, inputs):
        """Returns the result of work(), and the EventHandle of its end. work: a function without arguments, which returns a
        list with all tensors that it has made for the caller. previous: the event that work() waits for, or None for the
        end of the current stream. inputs: a list with the tensors that it uses."""
        if device.type == "cpu":
            with torch.no_grad():
                return work(), _nothing
        caller, own = torch.cuda.current_stream(device), self.stream(device)
        event = getattr(previous, "event", previous)  # of an EventOverlap
        if event is None or event.event is None:
            own.wait_stream(caller)
        else:
            own.wait_event(event.event)
        with torch.cuda.stream(own), torch.no_grad():
            results = work()
        # The allocator must not reuse the memory of either stream's tensors before the other stream has passed them.
        for values, stream in (inputs, own), (results, caller):
            for value in values:
                if isinstance(value, torch.Tensor):
                    value.record_stream(stream)
        return results, EventHandle(own)


class _Nothing(EventHandle):
    def __init__(self):
        self.event = None


_nothing = _Nothing()


def finish(event, async_finish, return_recv_hook=False):
    """Returns the EventOverlap of a call, and its receiving hook or None. Without either the current stream waits."""
    if return_recv_hook:
        return EventOverlap(), event.current_stream_wait
    if async_finish:
        return EventOverlap(event), None
    event.current_stream_wait()
    return EventOverlap(), None
