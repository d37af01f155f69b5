"""From the native half to an asyncio event loop: one socket, which wakes the loop when something is done."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any, Protocol

from . import _native

_bridges: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopBridge] = weakref.WeakKeyDictionary()


class Source(Protocol):
    """Something that can be waited for."""

    def arm(self, bridge: _native.Bridge, token: int) -> bool: ...


class LoopBridge:
    """What one event loop waits for. It knows the loop only weakly, so that loops can go away."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._native = _native.Bridge()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        loop.add_reader(self._native.fileno(), self._drain)

    async def call(self, call: _native.Call) -> Any:
        """Sends a call and waits for its answer. Cancelling abandons only the wait."""
        token = self._native.token()
        future = self._future(token)
        wait: _native.Wait | None = None
        try:
            wait = call.start(self._native, token)
            return await future
        except asyncio.CancelledError:
            if wait is not None:
                wait.cancel()
            raise
        finally:
            self._waiting.pop(token, None)

    async def ready(self, source: Source) -> None:
        """Waits until the source has something."""
        token = self._native.token()
        future = self._future(token)
        try:
            if source.arm(self._native, token):
                await future
        finally:
            self._waiting.pop(token, None)

    def _future(self, token: int) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        self._waiting[token] = future
        return future

    def _drain(self) -> None:
        for token, value, error in self._native.drain():
            future = self._waiting.pop(token, None)
            if future is None or future.done():
                continue
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)


def bridge() -> LoopBridge:
    """The bridge of the running loop."""
    loop = asyncio.get_running_loop()
    found = _bridges.get(loop)
    if found is None:
        found = _bridges[loop] = LoopBridge(loop)
    return found
