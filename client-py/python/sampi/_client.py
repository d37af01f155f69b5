"""The synchronous client."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, cast

from . import _native
from ._commands import Commands
from ._names import Disposition, StreamingBehavior, ThinkingLevel
from ._options import (
    EventListener,
    Image,
    SessionChoice,
    StderrSink,
    StopDelays,
    StrPath,
    prompt_parameters,
    spawn_options,
)
from ._ui import Answer, UiHandler, deny_all, report, tell_event, tell_line

__all__ = ["DEFAULT_CAPACITY", "Client", "Events", "Run"]

DEFAULT_CAPACITY = 65_536
"""How many events a stream keeps for a reader that is behind, unless it says otherwise."""


class Events(Iterator[_native.Event]):
    """Everything that happens, until the daemon is stopped. It keeps its client alive."""

    def __init__(self, client: Client, stream: _native.EventStream) -> None:
        self._client = client
        self._stream = stream

    def __next__(self) -> _native.Event:
        return next(self._stream)


class Run(Iterator[_native.Event]):
    """A run that was accepted: iterate over its events, steer it, ask for its outcome.

    Iterating ends after the run's `AgentSettled`. In a `with` block, leaving the block aborts a run that is
    still going on; without one, a run goes on when nobody looks. It keeps its client alive.
    """

    def __init__(self, client: Client, stream: _native.EventStream) -> None:
        self._client = client
        self._stream = stream

    def __next__(self) -> _native.Event:
        return next(self._stream)

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._stream.over and self._client.is_alive:
            self._client.abort()

    @property
    def disposition(self) -> Disposition:
        """What became of the prompt: `started`, `queued` or `handled`."""
        return cast("Disposition", self._stream.disposition)

    def steer(self, message: str, *, images: Iterable[Image] = ()) -> Disposition:
        """Queues a message that is delivered before the next request to the model."""
        return self._client.steer(message, images=images)

    def follow_up(self, message: str, *, images: Iterable[Image] = ()) -> Disposition:
        """Queues a message that is delivered once the agent would stop."""
        return self._client.follow_up(message, images=images)

    def abort(self) -> None:
        """Stops what is going on in the session. Returns once it is idle."""
        self._client.abort()

    def outcome(self, *, timeout: float | None = None) -> _native.RunOutcome:
        """Waits until the run has settled. It does not matter whether its events were read."""
        return cast("_native.RunOutcome", self._stream.outcome(timeout).wait())


class Client(Commands):
    """A client of one agent daemon, which it starts.

    >>> with Client(provider="demo", session="memory") as pi:
    ...     print(pi.run("What is in this folder?").text)

    It may be used from many threads at once. Leaving the `with` block, or `close()`, stops the daemon.

    `program` is the daemon to run; by default what `SAMPI_BIN` names, else the one that came with this
    package, else `sampi` on `PATH`. `program_args` come before all other arguments and `args` after them.
    In `env`, a value of `None` takes a variable away. `ui_handler` answers the dialogs of extensions; by
    default they are dismissed at once. `on_event` is told everything that happens, from the daemon's first
    record on, also after a restart; `events()` begins when it is called.

    After `os.fork()` the client belongs to the parent; in the child every method raises `RuntimeError`.
    """

    def __init__(
        self,
        *,
        program: StrPath | None = None,
        program_args: Sequence[StrPath] = (),
        cwd: StrPath | None = None,
        env: Mapping[str, str | None] | None = None,
        provider: str | None = None,
        model: str | None = None,
        thinking: ThinkingLevel | None = None,
        session: SessionChoice = "new",
        session_dir: StrPath | None = None,
        session_name: str | None = None,
        args: Sequence[str] = (),
        frame_limit: int | None = None,
        stderr: StderrSink = "keep",
        ui_handler: UiHandler = deny_all,
        on_event: EventListener | None = None,
    ) -> None:
        asks = ui_handler is not deny_all
        self._core, callbacks, events = _native.Core.spawn(
            **spawn_options(
                program=program,
                program_args=program_args,
                cwd=cwd,
                env=env,
                provider=provider,
                model=model,
                thinking=thinking,
                session=session,
                session_dir=session_dir,
                session_name=session_name,
                args=args,
                frame_limit=frame_limit,
                stderr=stderr,
                asks=asks,
                listens=on_event is not None,
            )
        )
        if asks or callable(stderr):
            # The thread knows the queue and the functions, not the client: when the client goes away the
            # queue ends, and the thread with it.
            sink = stderr if callable(stderr) else None
            threading.Thread(
                target=_serve, args=(callbacks, ui_handler, sink), name="sampi-callbacks", daemon=True
            ).start()
        if on_event is not None:
            threading.Thread(target=_tell, args=(events, on_event), name="sampi-events", daemon=True).start()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f"process {self.process_id}" if self.is_alive else "closed"
        return f"<{type(self).__name__} ({state})>"

    def _call(self, command: str, parameters: dict[str, Any], timeout: float | None) -> Any:
        return self._core.call(command, parameters, timeout).wait()

    def run(
        self,
        message: str,
        *,
        images: Iterable[Image] = (),
        streaming_behavior: StreamingBehavior | None = None,
        timeout: float | None = None,
    ) -> _native.RunOutcome:
        """Sends a prompt and waits until its run has settled.

        A run that failed or was aborted is an outcome, not an exception: see `RunOutcome.error`. When the
        wait is cut short, by `timeout` or Ctrl-C, the run goes on; `abort()` stops it.
        """
        prompt = prompt_parameters(message, images, streaming_behavior)
        return cast("_native.RunOutcome", self._core.run(prompt, timeout).wait())

    def stream(
        self,
        message: str,
        *,
        images: Iterable[Image] = (),
        streaming_behavior: StreamingBehavior | None = None,
        capacity: int = DEFAULT_CAPACITY,
        timeout: float | None = None,
    ) -> Run:
        """Sends a prompt and gives a handle of its run, to iterate over its events.

        >>> for event in pi.stream("Hello"):
        ...     match event:
        ...         case TextDelta(text=text):
        ...             print(text, end="")

        Nothing of the run is missed. A reader that falls behind by `capacity` events loses the oldest ones
        and gets a `Lagged` in their place. `timeout` is for accepting the prompt, not for the run.
        """
        prompt = prompt_parameters(message, images, streaming_behavior)
        stream = self._core.start_run(prompt, capacity, timeout).wait()
        return Run(self, cast("_native.EventStream", stream))

    def events(self, *, capacity: int = DEFAULT_CAPACITY) -> Events:
        """Iterates over everything that happens from now on, until the daemon is stopped."""
        return Events(self, self._core.subscribe(capacity))

    def wait_for_idle(self, *, timeout: float | None = None) -> None:
        """Waits until the session is idle; returns at once when it is."""
        self._core.wait_for_idle(timeout).wait()

    def close(self, delays: StopDelays = StopDelays()) -> int | None:
        """Stops the daemon in an orderly way and gives its exit code. Harmless when it was stopped before."""
        stop = self._core.stop(delays.after_close, delays.after_term, delays.after_kill)
        return cast("int | None", stop.wait())

    def restart(self) -> None:
        """Starts the daemon again, after it died or was closed, or while it runs; then it is stopped first.

        Calls and streams of the old process end.
        """
        self._core.restart().wait()

    @property
    def process_id(self) -> int | None:
        """The daemon's process id."""
        return self._core.process_id

    @property
    def is_alive(self) -> bool:
        """True while the daemon lives."""
        return self._core.is_alive

    @property
    def exit_code(self) -> int | None:
        """The daemon's exit code once it has ended; minus the signal's number when a signal ended it."""
        return self._core.exit_code

    @property
    def pending_calls(self) -> int:
        """How many calls wait for their answer."""
        return self._core.pending_calls


def _serve(
    callbacks: _native.Callbacks, handler: UiHandler, sink: Callable[[str], object] | None
) -> None:
    """Asks the functions until there is nothing more to ask."""
    for callback in _callbacks(callbacks):
        if isinstance(callback, _native.PendingDialog):
            # Each in a thread of its own, so that one that takes its time delays no other.
            threading.Thread(target=_answer, args=(callback, handler), name="sampi-dialog", daemon=True).start()
        elif sink is not None:
            tell_line(sink, callback)


def _tell(events: _native.Callbacks, on_event: EventListener) -> None:
    """Tells the function what happens until nothing more will."""
    for event in _callbacks(events):
        tell_event(on_event, event)


def _callbacks(callbacks: _native.Callbacks) -> Iterator[Any]:
    while True:
        try:
            callback = callbacks.next()
        except BaseException:
            # The interpreter is ending.
            return
        if callback is None:
            return
        yield callback


def _answer(pending: _native.PendingDialog, handler: UiHandler) -> None:
    try:
        answer = handler(pending.dialog)
        if inspect.isawaitable(answer):
            answer = asyncio.run(_await(answer))
        pending.answer(cast("Answer", answer))
    except Exception:
        report("a UI handler failed; its dialog is dismissed")
        pending.answer(None)


async def _await(answer: Any) -> Any:
    return await answer
