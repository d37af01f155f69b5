"""Who answers the dialogs of extensions."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Union

from . import _native
from ._errors import ProtocolError

__all__ = ["Answer", "UiHandler", "approve_when", "deny_all"]

Answer = Union[str, bool, None]
"""A `bool` for a `ConfirmDialog`, a `str` for the others, `None` to dismiss the dialog."""

UiHandler = Callable[[_native.Dialog], Union[Answer, Awaitable[Answer]]]
"""A function, plain or async, that answers a dialog. It may take its time: a dialog delays nothing else."""


def deny_all(dialog: _native.Dialog) -> None:
    """Dismisses every dialog at once, so that a run never hangs. The default."""


class _ApproveWhen:
    def __init__(self, rule: Callable[[_native.Dialog], bool]) -> None:
        self._rule = rule

    def __call__(self, dialog: _native.Dialog) -> Answer:
        return dialog.approval if self._rule(dialog) else None


def approve_when(rule: Callable[[_native.Dialog], bool]) -> Callable[[_native.Dialog], Answer]:
    """A handler that gives `Dialog.approval` to the dialogs for which `rule` is true and dismisses the others."""
    return _ApproveWhen(rule)


def report(what: str) -> None:
    """Logs the exception that is being handled, which has no caller to go to."""
    logging.getLogger("sampi").exception(what)


def tell_line(sink: Callable[[str], object], line: str) -> None:
    """Tells a function a line of stderr."""
    try:
        sink(line)
    except Exception:
        report("a function for the daemon's stderr failed")


def tell_event(on_event: Callable[[_native.Event], object], event: _native.Event | ProtocolError) -> None:
    """Tells a function an event. A record that could not be read is logged instead."""
    if isinstance(event, ProtocolError):
        logging.getLogger("sampi").error("%s", event)
        return
    try:
        on_event(event)
    except Exception:
        report("a function for events failed")
