"""The synchronous client against the daemon and its demo model."""

from __future__ import annotations

import base64
import gc
import os
import sys
import threading
from pathlib import Path

import pytest
from conftest import FAKE, script

import sampi
from sampi import (
    AgentSettled,
    AssistantMessage,
    BashExecutionUpdate,
    Client,
    CommandError,
    ImageContent,
    Lagged,
    MessageAssembler,
    MessageEnd,
    ProcessError,
    Session,
    TextContent,
    TextDelta,
    ToolExecutionEnd,
    ToolExecutionStart,
    UserMessage,
)

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_run_gives_the_outcome(pi: Client) -> None:
    outcome = pi.run(script({"text": "Hi there.", "usage": {"input": 100, "output": 10}}))
    assert outcome.ok and outcome.text == "Hi there."
    assert (outcome.stop_reason, outcome.disposition, outcome.aborted) == ("stop", "started", False)
    assert (outcome.usage.input, outcome.usage.output) == (100, 10)
    assert [message.role for message in outcome.messages][-2:] == ["user", "assistant"]


def test_a_run_that_fails_is_an_outcome(pi: Client) -> None:
    outcome = pi.run(script({"fail": {"kind": "invalidRequest", "message": "no such thing"}}))
    assert not outcome.ok and outcome.stop_reason == "error"
    assert outcome.error is not None and "no such thing" in outcome.error


def test_stream_gives_typed_events_of_the_whole_run(pi: Client) -> None:
    text, end = "", None
    tools: list[object] = []
    for event in pi.stream(
        script({"tools": [{"name": "bash", "args": {"command": "echo tool"}}]}, {"text": "All done."})
    ):
        match event:
            case TextDelta(text=piece):
                text += piece
            case ToolExecutionStart(tool_name=name, args={"command": command}):
                tools.append((name, command))
            case ToolExecutionEnd(result=result, is_error=False):
                tools.append(result.text)
            case AgentSettled(aborted=aborted):
                end = aborted
    assert text == "All done."
    assert tools == [("bash", "echo tool"), "tool\n"]
    assert end is False


def test_the_outcome_of_a_stream_needs_no_reading(pi: Client) -> None:
    run = pi.stream(script({"text": "Unread."}))
    assert run.disposition == "started"
    assert run.outcome().text == "Unread."
    assert isinstance(list(run)[-1], AgentSettled)
    assert list(run) == []


def test_leaving_the_block_of_a_run_aborts_it(pi: Client) -> None:
    with pi.stream(script({"text": "Never ", "hang": True})) as run:
        for event in run:
            if isinstance(event, TextDelta):
                break
    assert run.outcome().aborted
    assert not pi.get_state().is_streaming


def test_leaving_the_block_of_a_run_that_is_over_leaves_the_next_run_alone(pi: Client) -> None:
    with pi.stream(script({"text": "First."})) as run:
        assert run.outcome().text == "First."  # and its events were not read
        following = pi.stream(script({"text": "Never ", "hang": True}))
    assert pi.get_state().is_streaming
    following.abort()
    assert following.outcome().aborted


def gated(gate: Path) -> Client:
    os.mkfifo(gate)
    return Client(program=sys.executable, program_args=[FAKE, "gated"])


def open_gate(gate: Path) -> None:
    fifo = os.open(gate, os.O_RDWR)
    os.write(fifo, b"\n")
    # Kept open: what nobody has read would be lost.
    OPENED.append(fifo)


OPENED: list[int] = []


def test_a_run_that_is_read_keeps_its_client(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    seen: list[sampi.Event] = []
    for event in gated(gate).stream(str(gate)):
        if not seen:
            gc.collect()
            open_gate(gate)
        seen.append(event)
    assert isinstance(seen[-1], AgentSettled)


def test_a_stream_of_events_keeps_its_client(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    pi = gated(gate)
    events = pi.events()
    pi.prompt(str(gate))
    del pi
    gc.collect()
    open_gate(gate)
    assert any(isinstance(event, AgentSettled) for event in iter(lambda: next(events), None))


def test_a_block_can_be_left_while_another_thread_reads(pi: Client) -> None:
    seen: list[sampi.Event] = []
    with pi.stream(script({"text": "Never ", "hang": True})) as run:
        reader = threading.Thread(target=lambda: seen.extend(run))
        reader.start()
        while not pi.get_state().is_streaming:
            pass
    reader.join()
    assert isinstance(seen[-1], AgentSettled) and run.outcome().aborted


def test_a_run_can_be_steered_and_followed_up(pi: Client) -> None:
    with pi.stream(
        script(
            {"tools": [{"name": "bash", "args": {"command": "sleep 0.2"}}]}, {"text": "Two."}, {"text": "Three."}
        )
    ) as run:
        for event in run:
            if isinstance(event, ToolExecutionStart):
                assert run.steer("left") == "queued"
                assert run.follow_up("and then") == "queued"
        texts = [message.text for message in run.outcome().messages if isinstance(message, UserMessage)]
    assert texts[1:] == ["left", "and then"]


def test_a_prompt_during_a_run_is_refused_or_queued(pi: Client) -> None:
    with pi.stream(script({"hang": True})) as run:
        with pytest.raises(CommandError) as refused:
            pi.prompt("me too")
        assert (refused.value.command, refused.value.code) == ("prompt", "busy")
        assert pi.prompt("me too", streaming_behavior="followUp") == "queued"
        assert pi.clear_queue().follow_up == ("me too",)
        run.abort()
    assert run.outcome().aborted


def test_every_command_of_the_table_has_a_method() -> None:
    for name in sampi._native.COMMANDS:
        for client in (Client, sampi.AsyncClient):
            method = getattr(client, name)
            assert method.__doc__, name


def test_commands_have_python_names_and_typed_results(pi: Client, tmp_path: Path) -> None:
    pi.run(script({"text": "First."}))
    assert pi.get_last_assistant_text() == "First."
    assert pi.bash("printf abc").output == "abc"
    assert pi.bash("printf abc; exit 3", exclude_from_context=True).exit_code == 3
    pi.set_session_name("A name")
    state = pi.get_state()
    assert (state.session_name, state.session_file, state.is_streaming) == ("A name", None, False)
    assert state.model is not None and state.model.provider == "demo"
    stats = pi.get_session_stats()
    assert stats.user_messages == 1 and stats.tokens.total > 0
    assert [model.id for model in pi.get_available_models() if model.provider == "demo"] == ["demo", "demo-thinking"]
    assert pi.set_model("demo", "demo").id == "demo"
    assert pi.get_available_thinking_levels() == ("off",)
    pi.set_thinking_level("off")
    assert pi.cycle_thinking_level() is None
    pi.set_steering_mode("all")
    pi.set_follow_up_mode("all")
    assert (pi.get_state().steering_mode, pi.get_state().follow_up_mode) == ("all", "all")
    pi.set_auto_compaction(False)
    pi.set_auto_retry(True)
    pi.abort_retry()
    pi.abort_bash()
    pi.abort()
    assert not pi.get_state().auto_compaction_enabled
    messages = pi.get_messages()
    assert isinstance(messages[-1], sampi.BashExecutionMessage)
    entries = pi.get_entries()
    assert entries.leaf_id == entries.entries[-1].id
    assert len(pi.get_entries(since=entries.entries[-2].id).entries) == 1
    tree = pi.get_tree()
    assert len(tree) == len(entries.entries)
    assert tree.leaf is not None and tree.leaf.entry == entries.entries[-1]
    assert [node.entry.id for node in reversed(tree.leaf.ancestors)] == [entry.id for entry in entries.entries]
    forks = pi.get_fork_messages()
    assert len(forks) == 1
    assert pi.fork(forks[0].entry_id).text == forks[0].text
    assert pi.new_session() is True
    assert pi.get_commands() == ()


def test_commands_of_sampi_alone_move_in_the_tree_and_list_sessions(tmp_path: Path) -> None:
    with Client(provider="demo", session_name="listed") as pi:
        pi.run(script({"text": "First."}))
        pi.run(script({"text": "Second."}))
        first, second = (message.entry_id for message in pi.get_fork_messages())
        moved = pi.navigate_tree(second)
        assert moved.editor_text is not None and "Second." in moved.editor_text and not moved.cancelled
        assert pi.get_last_assistant_text() == "First."
        entry = pi.set_label(first, "here")
        assert (entry.target_id, entry.label) == (first, "here")
        node = pi.get_tree().find(first)
        assert node is not None and node.label == "here"
        assert pi.set_label(first, None).label is None
        pi.new_session()
        listed = pi.list_sessions(search="listed").sessions
        assert [session.name for session in listed] == ["listed"]
        assert pi.list_sessions(cwd=tmp_path / "nowhere").sessions == ()
        pi.delete_session(listed[0].path)
        assert pi.list_sessions(search="listed").sessions == ()


def test_a_failed_command_tells_its_name_and_kind(pi: Client) -> None:
    with pytest.raises(CommandError, match="Model not found") as failed:
        pi.set_model("nobody", "nothing")
    assert (failed.value.command, failed.value.code) == ("set_model", "not_found")


def test_a_wrong_parameter_is_a_value_error_that_names_it(pi: Client) -> None:
    with pytest.raises(ValueError, match="level: unknown value `loud`"):
        pi.set_thinking_level("loud")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no thinking level"):
        Client(thinking="loud")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="-1"):
        pi.get_state(timeout=-1)


def test_any_command_can_be_called_by_its_wire_name(pi: Client) -> None:
    assert isinstance(pi.call("get_state"), sampi.SessionState)
    with pytest.raises(CommandError) as failed:
        pi.call("make_coffee", {"sugar": 2})
    assert failed.value.code == "unknown_command"


def test_images_come_from_bytes_paths_and_blocks(pi: Client, tmp_path: Path) -> None:
    path = tmp_path / "pixel.png"
    path.write_bytes(PIXEL)
    block = ImageContent.from_raw({"type": "image", "data": base64.b64encode(PIXEL).decode(), "mimeType": "image/png"})
    assert isinstance(block, ImageContent)
    outcome = pi.run(script({"text": "Seen."}), images=[PIXEL, path, block])
    user = next(message for message in outcome.messages if isinstance(message, UserMessage))
    assert isinstance(user.content[0], TextContent)
    assert [content.mime_type for content in user.content if isinstance(content, ImageContent)] == ["image/png"] * 3
    with pytest.raises(ValueError, match="no image"):
        pi.run("x", images=[b"plain text"])


def test_events_gives_everything_until_the_daemon_is_stopped(pi: Client) -> None:
    events = pi.events()
    pi.bash("echo one")
    pi.run(script({"text": "Two."}))
    pi.close()
    seen = list(events)
    assert any(isinstance(event, BashExecutionUpdate) and event.text == "one\n" for event in seen)
    assert isinstance(seen[-1], AgentSettled)


def test_a_reader_that_is_too_slow_is_told_so(pi: Client) -> None:
    events = pi.events(capacity=10)
    pi.run(script({"deltas": 100}))
    first = next(events)
    assert isinstance(first, Lagged) and first.missed > 50


def test_the_assembler_follows_the_stream(pi: Client) -> None:
    assembler = MessageAssembler()
    assert assembler.message is None
    for event in pi.stream(script({"text": "One two three.", "deltas": 5})):
        assembler.apply(event)
        if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
            assert assembler.message == event.message
    assert not assembler.is_streaming


def test_one_client_serves_many_threads(pi: Client) -> None:
    ids: list[str] = []
    lock = threading.Lock()

    def ask() -> None:
        for _ in range(20):
            state = pi.get_state()
            with lock:
                ids.append(state.session_id)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 160 and len(set(ids)) == 1
    assert pi.pending_calls == 0


def test_a_stream_is_read_by_one_thread_at_a_time(pi: Client) -> None:
    events = pi.events()
    reader = threading.Thread(target=lambda: list(events))
    reader.start()
    with pytest.raises(RuntimeError, match="another thread"):
        for _ in range(10_000):
            threading.Event().wait(0.001)
            next(events)
    pi.close()
    reader.join()


def test_close_gives_the_exit_code_and_restart_starts_anew(pi: Client) -> None:
    first = pi.process_id
    assert pi.is_alive and pi.exit_code is None
    assert pi.close() == 0
    assert pi.close() == 0
    assert not pi.is_alive and pi.exit_code == 0
    with pytest.raises(ProcessError) as stopped:
        pi.get_state()
    assert stopped.value.exit_code == 0
    pi.restart()
    assert pi.is_alive and pi.process_id != first
    assert pi.get_state().message_count == 0


def test_sessions_are_kept_continued_opened_and_copied() -> None:
    with Client(provider="demo", session_name="kept") as pi:
        pi.run(script({"text": "Remember."}))
        state = pi.get_state()
    assert state.session_file is not None and Path(state.session_file).exists()
    choices = ["continue", Session.open(state.session_file), Session.open(Path(state.session_file))]
    for choice in choices:
        with Client(provider="demo", session=choice) as pi:  # type: ignore[arg-type]
            assert pi.get_last_assistant_text() == "Remember."
            assert pi.get_state().session_id == state.session_id
    with Client(provider="demo", session=Session.fork(state.session_file)) as pi:
        assert pi.get_last_assistant_text() == "Remember."
        assert pi.get_state().session_id != state.session_id
    with Client(provider="demo", session=Session.id("my-own")) as pi:
        assert pi.get_state().session_id == "my-own"
    with Client(provider="demo") as pi:
        assert pi.switch_session(state.session_file)
        assert pi.clone()
        assert pi.get_state().session_name == "kept"


def test_repr_says_what_it_is(pi: Client) -> None:
    assert repr(pi) == f"<Client (process {pi.process_id})>"
    pi.close()
    assert repr(pi) == "<Client (closed)>"
