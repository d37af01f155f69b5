"""The asyncio client."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, cast

from . import _native
from ._async_commands import AsyncCommands
from ._bridge import bridge
from ._client import DEFAULT_CAPACITY
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

__all__ = ["AsyncClient", "AsyncEvents", "AsyncRun"]

_BATCH = 256
"""How many events cross into the event loop at once."""


class _Reader:
    """Reads a stream in batches, for one task at a time: a stream wakes only whoever waited last."""

    def __init__(self) -> None:
        self._batch: deque[_native.Event] = deque()
        self._reading = False

    async def next(self, started: Callable[[], Awaitable[_native.EventStream]]) -> _native.Event:
        if self._reading:
            raise RuntimeError("another task is reading this stream")
        if not self._batch:
            self._reading = True
            try:
                await self._fill(await started())
            finally:
                self._reading = False
        return self._batch.popleft()

    async def _fill(self, stream: _native.EventStream) -> None:
        # Other tasks get their turn between batches, also when there is always more to read.
        await asyncio.sleep(0)
        while True:
            events = stream.take(_BATCH)
            if events is None:
                raise StopAsyncIteration
            if events:
                self._batch.extend(events)
                return
            await bridge().ready(stream)


class AsyncEvents(AsyncIterator[_native.Event]):
    """Everything that happens, until the daemon is stopped. It keeps its client alive.

    One task reads it at a time; another that tries gets a `RuntimeError`.
    """

    def __init__(self, client: AsyncClient, stream: _native.EventStream) -> None:
        self._client = client
        self._stream = stream
        self._reader = _Reader()

    def __aiter__(self) -> AsyncEvents:
        return self

    async def __anext__(self) -> _native.Event:
        return await self._reader.next(self._started)

    async def _started(self) -> _native.EventStream:
        self._client._serve()
        return self._stream


class AsyncRun(AsyncIterator[_native.Event]):
    """A run: iterate over its events, steer it, ask for its outcome.

    The prompt is sent when the run is first used: by `async for`, `async with`, `await run.start()` or
    `await run.outcome()`. Iterating ends after the run's `AgentSettled`; one task iterates at a time, another
    that tries gets a `RuntimeError`. Leaving an `async with` block aborts a run that is still going on;
    without one, a run goes on when nobody looks. It keeps its client alive.
    """

    def __init__(self, client: AsyncClient, start: _native.Call) -> None:
        self._client = client
        self._start: _native.Call | None = start
        self._stream: _native.EventStream | None = None
        self._reader = _Reader()
        self._starting = asyncio.Lock()

    async def start(self) -> AsyncRun:
        """Sends the prompt, if that has not been done."""
        await self._started()
        return self

    async def _started(self) -> _native.EventStream:
        self._client._serve()
        if self._stream is not None:
            return self._stream
        async with self._starting:
            if self._stream is None:
                if self._start is None:
                    raise RuntimeError("the prompt of this run was refused, or nobody waited for its answer")
                start, self._start = self._start, None
                self._stream = cast("_native.EventStream", await bridge().call(start))
        return self._stream

    def __aiter__(self) -> AsyncRun:
        return self

    async def __anext__(self) -> _native.Event:
        return await self._reader.next(self._started)

    async def __aenter__(self) -> AsyncRun:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None and not self._stream.over and self._client.is_alive:
            await self._client.abort()

    @property
    def disposition(self) -> Disposition | None:
        """What became of the prompt: `started`, `queued` or `handled`; `None` before it was sent."""
        return None if self._stream is None else self._stream.disposition

    async def steer(self, message: str, *, images: Iterable[Image] = ()) -> Disposition:
        """Queues a message that is delivered before the next request to the model."""
        return await self._client.steer(message, images=images)

    async def follow_up(self, message: str, *, images: Iterable[Image] = ()) -> Disposition:
        """Queues a message that is delivered once the agent would stop."""
        return await self._client.follow_up(message, images=images)

    async def abort(self) -> None:
        """Stops what is going on in the session. Returns once it is idle."""
        await self._client.abort()

    async def outcome(self, *, timeout: float | None = None) -> _native.RunOutcome:
        """Waits until the run has settled. It does not matter whether its events were read."""
        stream = await self._started()
        return cast("_native.RunOutcome", await bridge().call(stream.outcome(timeout)))


class AsyncClient(AsyncCommands):
    """A client of one agent daemon, which it starts, for asyncio.

    >>> async with AsyncClient(provider="demo", session="memory") as pi:
    ...     print((await pi.run("What is in this folder?")).text)

    The options are those of `Client`. It may be used from many tasks at once, and from more than one event
    loop. Commands are sent in the order in which they are awaited; cancelling a task abandons only its
    wait. An async `ui_handler` runs on the event loop, a plain one in a thread of its own for each dialog;
    `on_event` and a function for `stderr` run on the event loop.

    The constructor starts the daemon and does not wait for it, so in a notebook `pi = AsyncClient()` will
    do; `await pi.close()` stops it.
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
        # What asks the functions knows the queues and the functions, not the client: when the client goes away
        # the queues end, and the tasks with them.
        self._servants: list[Callable[[], Coroutine[Any, Any, None]]] = []
        if asks or callable(stderr):
            sink = stderr if callable(stderr) else None
            self._servants.append(partial(_serve, callbacks, ui_handler, sink))
        if on_event is not None:
            self._servants.append(partial(_tell, events, on_event))
        self._serving: dict[int, asyncio.Task[None]] = {}
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            # Made outside of a loop: whatever is awaited first serves.
            pass
        else:
            self._serve()

    def _serve(self) -> None:
        """Has somebody ask the functions, on the running loop."""
        loop = asyncio.get_running_loop()
        for index, servant in enumerate(self._servants):
            serving = self._serving.get(index)
            if serving is None or serving.done() or serving.get_loop() is not loop:
                self._serving[index] = loop.create_task(servant(), name="sampi-callbacks")

    async def __aenter__(self) -> AsyncClient:
        self._serve()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        state = f"process {self.process_id}" if self.is_alive else "closed"
        return f"<{type(self).__name__} ({state})>"

    async def _call(self, command: str, parameters: dict[str, Any], timeout: float | None) -> Any:
        self._serve()
        return await bridge().call(self._core.call(command, parameters, timeout))

    async def run(
        self,
        message: str,
        *,
        images: Iterable[Image] = (),
        streaming_behavior: StreamingBehavior | None = None,
        timeout: float | None = None,
    ) -> _native.RunOutcome:
        """Sends a prompt and waits until its run has settled.

        A run that failed or was aborted is an outcome, not an exception: see `RunOutcome.error`. When the
        wait is cut short, by `timeout` or cancelling, the run goes on; `abort()` stops it.
        """
        self._serve()
        prompt = prompt_parameters(message, images, streaming_behavior)
        return cast("_native.RunOutcome", await bridge().call(self._core.run(prompt, timeout)))

    def stream(
        self,
        message: str,
        *,
        images: Iterable[Image] = (),
        streaming_behavior: StreamingBehavior | None = None,
        capacity: int = DEFAULT_CAPACITY,
        timeout: float | None = None,
    ) -> AsyncRun:
        """A run of this prompt, to iterate over its events. The prompt is sent when it is first used.

        >>> async for event in pi.stream("Hello"):
        ...     match event:
        ...         case TextDelta(text=text):
        ...             print(text, end="")

        Nothing of the run is missed. A reader that falls behind by `capacity` events loses the oldest ones
        and gets a `Lagged` in their place. `timeout` is for accepting the prompt, not for the run.
        """
        prompt = prompt_parameters(message, images, streaming_behavior)
        return AsyncRun(self, self._core.start_run(prompt, capacity, timeout))

    def events(self, *, capacity: int = DEFAULT_CAPACITY) -> AsyncEvents:
        """Iterates over everything that happens from now on, until the daemon is stopped."""
        return AsyncEvents(self, self._core.subscribe(capacity))

    async def wait_for_idle(self, *, timeout: float | None = None) -> None:
        """Waits until the session is idle; returns at once when it is."""
        self._serve()
        await bridge().call(self._core.wait_for_idle(timeout))

    async def close(self, delays: StopDelays = StopDelays()) -> int | None:
        """Stops the daemon in an orderly way and gives its exit code. Harmless when it was stopped before."""
        stop = self._core.stop(delays.after_close, delays.after_term, delays.after_kill)
        exit_code = await bridge().call(stop)
        loop = asyncio.get_running_loop()
        serving = [task for task in self._serving.values() if task.get_loop() is loop]
        self._serving.clear()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        return cast("int | None", exit_code)

    async def restart(self) -> None:
        """Starts the daemon again, after it died or was closed, or while it runs; then it is stopped first.

        Calls and streams of the old process end.
        """
        await bridge().call(self._core.restart())
        self._serve()

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


async def _serve(
    callbacks: _native.Callbacks, handler: UiHandler, sink: Callable[[str], object] | None
) -> None:
    """Asks the functions until there is nothing more to ask."""
    answering: set[asyncio.Task[None]] = set()
    try:
        async for callback in _callbacks(callbacks):
            if isinstance(callback, _native.PendingDialog):
                # Each in a task of its own, so that one that takes its time delays no other.
                task = asyncio.get_running_loop().create_task(_answer(callback, handler))
                answering.add(task)
                task.add_done_callback(answering.discard)
            elif sink is not None:
                tell_line(sink, callback)
    finally:
        for task in answering:
            task.cancel()


async def _tell(events: _native.Callbacks, on_event: EventListener) -> None:
    """Tells the function what happens until nothing more will."""
    async for event in _callbacks(events):
        tell_event(on_event, event)


async def _callbacks(callbacks: _native.Callbacks) -> AsyncIterator[Any]:
    while (taken := callbacks.take(_BATCH)) is not None:
        for callback in taken:
            yield callback
        # Other tasks get their turn, also when there is always more to take.
        await asyncio.sleep(0)
        await bridge().ready(callbacks)


async def _answer(pending: _native.PendingDialog, handler: UiHandler) -> None:
    try:
        if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)
        ):
            answer = handler(pending.dialog)
        else:
            answer = await _in_a_thread(handler, pending.dialog)
        if inspect.isawaitable(answer):
            answer = await answer
        pending.answer(answer)
    except Exception:
        report("a UI handler failed; its dialog is dismissed")
        pending.answer(None)
    except asyncio.CancelledError:
        pending.answer(None)
        raise


async def _in_a_thread(handler: UiHandler, dialog: _native.Dialog) -> Answer | Awaitable[Answer]:
    """Calls a plain handler in a thread of its own: a person may take hours, and the threads of
    `asyncio.to_thread` are few and everybody's."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Callable[[], Answer | Awaitable[Answer]]] = loop.create_future()

    def give(result: Callable[[], Answer | Awaitable[Answer]]) -> None:
        if not done.cancelled():
            done.set_result(result)

    def fail(error: BaseException) -> Answer:
        raise error

    def call() -> None:
        try:
            answer = handler(dialog)
            result: Callable[[], Answer | Awaitable[Answer]] = lambda: answer
        except BaseException as error:
            result = partial(fail, error)
        try:
            loop.call_soon_threadsafe(give, result)
        except RuntimeError:
            # The loop is closed: nobody waits any more.
            pass

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(call,), name="sampi-dialog", daemon=True).start()
    return (await done)()
