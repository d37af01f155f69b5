"""Who answers the dialogs of extensions."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Union

from . import _native

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
        return approval(dialog) if self._rule(dialog) else None


def approve_when(rule: Callable[[_native.Dialog], bool]) -> Callable[[_native.Dialog], Answer]:
    """A handler that agrees to the dialogs for which `rule` is true and dismisses the others.

    To agree is yes to a confirmation, the first option of a choice, the given text of an editor; an input,
    which has no such answer, is dismissed.
    """
    return _ApproveWhen(rule)


def approval(dialog: _native.Dialog) -> Answer:
    """What somebody who agrees without looking closer answers."""
    match dialog:
        case _native.ConfirmDialog():
            return True
        case _native.SelectDialog(options=options):
            return options[0] if options else None
        case _native.EditorDialog(prefill=prefill):
            return prefill
        case _:
            return None


def report(what: str) -> None:
    """Logs the exception that is being handled, which has no caller to go to."""
    logging.getLogger("sampi").exception(what)
