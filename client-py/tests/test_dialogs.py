"""Dialogs of extensions: who answers them."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

import sampi
from sampi import Client, ConfirmDialog, Dialog, EditorDialog, InputDialog, SelectDialog, approve_when, deny_all

Fake = Callable[..., Client]

ASKED: list[dict[str, Any]] = [
    {"method": "select", "title": "s", "options": ["one", "two"]},
    {"method": "confirm", "title": "c", "message": "m"},
    {"method": "input", "title": "i"},
    {"method": "editor", "title": "e", "prefill": "p"},
]
CANCELLED = [{"id": f"d{index}", "cancelled": True} for index in range(4)]


def told(pi: Client, asked: list[dict[str, Any]] = ASKED) -> Any:
    return json.loads(pi.run(json.dumps(asked)).text)


def test_without_a_handler_dialogs_are_dismissed_at_once(fake: Fake) -> None:
    assert told(fake("dialogs")) == CANCELLED
    assert told(fake("dialogs", ui_handler=deny_all)) == CANCELLED


def test_a_function_answers(fake: Fake) -> None:
    def handler(dialog: Dialog) -> sampi.Answer:
        match dialog:
            case SelectDialog(title="s", options=options):
                return options[1]
            case ConfirmDialog(message="m"):
                return True
            case InputDialog(placeholder=None):
                return "typed"
            case EditorDialog(prefill="p"):
                return None
        raise AssertionError(dialog)

    assert told(fake("dialogs", ui_handler=handler)) == [
        {"id": "d0", "value": "two"},
        {"id": "d1", "confirmed": True},
        {"id": "d2", "value": "typed"},
        {"id": "d3", "cancelled": True},
    ]


def test_an_async_function_answers_a_synchronous_client(fake: Fake) -> None:
    async def handler(dialog: Dialog) -> sampi.Answer:
        await asyncio.sleep(0)
        return isinstance(dialog, ConfirmDialog) or "x"

    answers = told(fake("dialogs", ui_handler=handler))
    assert [answer.get("value", answer.get("confirmed")) for answer in answers] == ["x", True, "x", "x"]


def test_a_rule_approves(fake: Fake) -> None:
    assert told(fake("dialogs", ui_handler=approve_when(lambda dialog: True))) == [
        {"id": "d0", "value": "one"},
        {"id": "d1", "confirmed": True},
        {"id": "d2", "cancelled": True},
        {"id": "d3", "value": "p"},
    ]
    only = approve_when(lambda dialog: isinstance(dialog, ConfirmDialog))
    assert [answer.get("cancelled") for answer in told(fake("dialogs", ui_handler=only))] == [True, None, True, True]


def test_a_slow_answer_delays_neither_others_nor_commands(fake: Fake) -> None:
    second = threading.Event()

    def handler(dialog: Dialog) -> str:
        if dialog.id == "d0":
            assert second.wait(30)
        else:
            second.set()
        return dialog.id

    pi = fake("dialogs", ui_handler=handler)
    asked = [{"method": "input", "title": "a"}, {"method": "input", "title": "b"}]
    assert [answer["value"] for answer in told(pi, asked)] == ["d0", "d1"]


def test_a_handler_that_fails_dismisses_its_dialog_and_is_logged(
    fake: Fake, caplog: pytest.LogCaptureFixture
) -> None:
    def handler(dialog: Dialog) -> sampi.Answer:
        if isinstance(dialog, ConfirmDialog):
            return "yes"
        raise ValueError("no idea")

    with caplog.at_level(logging.ERROR, logger="sampi"):
        assert told(fake("dialogs", ui_handler=handler)) == CANCELLED
    assert caplog.text.count("no idea") >= 3
    assert "a bool or None, not str" in caplog.text


def test_a_dialog_tells_what_somebody_who_agrees_answers() -> None:
    def approval(**request: Any) -> sampi.Answer:
        return Dialog.from_raw({"type": "extension_ui_request", "id": "d", "title": "t", **request}).approval

    assert approval(method="select", options=["one", "two"]) == "one"
    assert approval(method="select", options=[]) is None
    assert approval(method="confirm", message="m") is True
    assert approval(method="input") is None
    assert approval(method="editor", prefill="p") == "p"
