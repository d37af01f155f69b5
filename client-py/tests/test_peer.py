"""A daemon that misbehaves on purpose: each case ends as documented."""

from __future__ import annotations

import json
import queue
from collections.abc import Callable

import pytest

import sampi
from sampi import (
    AgentSettled,
    Client,
    MessageUpdate,
    Notify,
    ProcessError,
    ProtocolError,
    SessionDiagnostic,
    TextDelta,
    UnknownEvent,
)

Fake = Callable[..., Client]


def test_one_that_dies_at_once_tells_its_exit_code_and_stderr(fake: Fake) -> None:
    with pytest.raises(ProcessError) as died:
        fake("dies_at_once").get_state()
    assert died.value.exit_code == 3
    assert died.value.stderr_tail == "cannot start: no licence\n"
    assert "cannot start: no licence" in str(died.value)


def test_one_that_dies_in_the_middle_of_a_record_fails_the_call(fake: Fake) -> None:
    with pytest.raises(ProcessError) as died:
        fake("dies_mid_frame").run("x")
    assert died.value.exit_code == 4


def test_one_that_is_killed_has_the_signal_as_its_exit_code(fake: Fake) -> None:
    pi = fake("killed")
    events = pi.events()
    with pytest.raises(ProcessError) as died:
        pi.run("x")
    assert died.value.exit_code == -9
    with pytest.raises(ProcessError):
        list(events)
    assert (pi.is_alive, pi.exit_code) == (False, -9)


def test_a_run_in_one_chunk_with_its_response_is_not_missed(fake: Fake) -> None:
    pi = fake("one_chunk")
    for _ in range(50):
        events = list(pi.stream("x"))
        assert [event.text for event in events if isinstance(event, TextDelta)] == ["quick"]
        assert isinstance(events[-1], AgentSettled)
    assert pi.run("x").text == "quick"


def test_answers_that_nobody_asked_for_are_ignored(fake: Fake) -> None:
    assert fake("strange_ids").run("x").text == "done"


def test_a_flood_is_read_to_its_end(fake: Fake) -> None:
    pi = fake("flood")
    assert sum(isinstance(event, TextDelta) for event in pi.stream("20000")) == 20_000
    assert pi.run("20000").text == "done"


def test_lines_that_are_no_records_are_skipped(fake: Fake) -> None:
    assert fake("prelude").run("x").text == "done"


def test_one_that_closes_its_output_and_lingers_is_gone(fake: Fake) -> None:
    with pytest.raises(ProcessError, match="closed its output") as gone:
        fake("lingers").get_state()
    assert gone.value.exit_code == -9


def test_a_malformed_known_event_is_raised_and_the_stream_goes_on(fake: Fake) -> None:
    pi = fake("malformed")
    run = pi.stream("x")
    events = iter(run)
    seen: list[sampi.Event] = []
    with pytest.raises(ProtocolError, match="agent_settled: aborted") as malformed:
        seen.extend(iter(lambda: next(events), None))
    assert malformed.value.record is not None and '"no"' in malformed.value.record
    rest = list(events)
    assert isinstance(rest[0], TextDelta) and isinstance(rest[-1], AgentSettled)
    with pytest.raises(ProtocolError):
        pi.run("x")


def test_unknown_events_and_what_extensions_show_come_in_the_stream(fake: Fake) -> None:
    _, unknown, odd, notify, *_ = fake("unknown").stream("x")
    assert isinstance(unknown, UnknownEvent) and unknown.kind == "moon_phase"
    assert unknown.raw()["phase"] == {"full": True}
    assert type(odd) is MessageUpdate and odd.raw()["assistantMessageEvent"]["pitch"] == 440
    assert isinstance(notify, Notify) and (notify.message, notify.level) == ("Heads up", "info")


def test_a_limit_on_time_ends_only_the_wait(fake: Fake) -> None:
    pi = fake("hangs")
    with pytest.raises(sampi.TimeoutError, match="get_state was not answered within 0.01 s"):
        pi.get_state(timeout=0.01)
    with pytest.raises(TimeoutError):
        pi.run("x", timeout=0.01)
    with pytest.raises(sampi.SampiError):
        pi.stream("x", timeout=0.01)
    assert pi.pending_calls == 0
    assert pi.get_commands() == ()


def test_an_answer_beyond_the_frame_limit_fails_its_call_alone(fake: Fake) -> None:
    pi = fake("raw_commands", frame_limit=4096)
    with pytest.raises(ProtocolError, match="frame limit"):
        pi.call("anything", {"text": "x" * 5000})
    assert pi.call("anything", {"n": 1})["seen"] == {"type": "anything", "n": 1}


def test_parameters_have_their_wire_names(fake: Fake) -> None:
    pi = fake("raw_commands")
    with pytest.raises(ProtocolError) as odd:
        pi.switch_session("/a/b")
    assert odd.value.record is None
    assert pi.call("export", {"id": "not ours", "deep": {"list": [1, 2.5, None, "é"]}})["seen"] == {
        "type": "export",
        "deep": {"list": [1, 2.5, None, "é"]},
    }


def test_parameters_that_a_command_does_not_know_are_sent_as_they_are(fake: Fake) -> None:
    text = fake("raw_commands").call("get_last_assistant_text", {"of": {"day": -1.5}, "none": None})
    assert json.loads(text) == {"type": "get_last_assistant_text", "of": {"day": -1.5}, "none": None}


def test_a_function_hears_everything_from_the_first_record_on(
    fake: Fake, caplog: pytest.LogCaptureFixture
) -> None:
    heard: queue.Queue[sampi.Event] = queue.Queue()

    def on_event(event: sampi.Event) -> None:
        heard.put(event)
        if isinstance(event, AgentSettled):
            raise ValueError("a listener's own affair")

    pi = fake("announces", on_event=on_event)
    for _ in range(2):
        assert isinstance(heard.get(timeout=30), SessionDiagnostic)
        pi.run("x")
        while not isinstance(heard.get(timeout=30), AgentSettled):
            pass
        pi.restart()
    assert isinstance(heard.get(timeout=30), SessionDiagnostic)
    assert "agent_settled: aborted" in caplog.text and "own affair" in caplog.text


def test_lines_of_stderr_reach_a_function(fake: Fake) -> None:
    lines: queue.Queue[str] = queue.Queue()
    pi = fake("talks_on_stderr", stderr=lines.put)
    pi.run("x")
    assert [lines.get(timeout=30), lines.get(timeout=30)] == ["one", "two"]


def test_lines_of_stderr_can_go_to_our_own(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    pi = fake("talks_on_stderr", stderr="inherit")
    pi.run("x")
    pi.close()
    assert capfd.readouterr().err == "one\ntwo\n"
