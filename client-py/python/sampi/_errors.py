"""The exceptions of the package: one tree, with `SampiError` at its root."""

from __future__ import annotations

import builtins
from typing import Any

__all__ = ["CommandError", "ProcessError", "ProtocolError", "SampiError", "TimeoutError"]


class SampiError(Exception):
    """Anything that this package raises on its own account."""


class ProcessError(SampiError):
    """The daemon could not be started, or it is gone.

    `exit_code` is `None` when it never ran, and minus the signal's number when a signal ended it.
    `stderr_tail` is the last of what it wrote to stderr.
    """

    def __init__(self, message: str, exit_code: int | None = None, stderr_tail: str = "") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.exit_code, self.stderr_tail)


class CommandError(SampiError):
    """The daemon answered that a command failed.

    `code` is the kind of failure (`busy`, `not_found`, `no_model`, ...) when the daemon tells it.
    """

    def __init__(self, command: str, message: str, code: str | None = None) -> None:
        super().__init__(f"{command} failed: {message}")
        self.command = command
        self.message = message
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.command, self.message, self.code)


class TimeoutError(SampiError, builtins.TimeoutError):
    """A time limit that the caller set ran out. A command that was sent may still have its effect."""


class ProtocolError(SampiError):
    """The daemon wrote something that is not as the protocol says. `record` is what it wrote, if known."""

    def __init__(self, message: str, record: str | None = None) -> None:
        super().__init__(message)
        self.record = record

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.record)


for _error in (SampiError, ProcessError, CommandError, TimeoutError, ProtocolError):
    _error.__module__ = "sampi"
del _error
