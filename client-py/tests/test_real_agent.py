"""The clients against a real agent, Sampi or Pi, whose model is played by a server of this test.

Opt-in: `SAMPI_TEST_AGENT="node …/cli.js" python -m pytest tests/test_real_agent.py`.
"""

from __future__ import annotations

import json
import os
import shlex
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import sampi
from sampi import (
    AgentSettled,
    AssistantMessage,
    AsyncClient,
    BashExecutionMessage,
    BashExecutionUpdate,
    Client,
    CommandError,
    Lagged,
    MessageAssembler,
    ProcessError,
    Session,
    TextDelta,
    ToolExecutionEnd,
    ToolExecutionStart,
    UserMessage,
)

AGENT = os.environ.get("SAMPI_TEST_AGENT")
pytestmark = pytest.mark.skipif(AGENT is None, reason="SAMPI_TEST_AGENT names no agent")


class PlayedModel(BaseHTTPRequestHandler):
    """Answers `answer N`, where N counts the assistant's messages so far.

    When the latest prompt is `hold`, the first half of the answer comes at once and the rest when the server is
    told to go on; when it is `use a tool`, the answer calls bash.
    """

    server: PlayedServer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        messages = request["messages"]
        count = sum(message["role"] == "assistant" for message in messages)
        latest = json.dumps(messages[-1]["content"]) if messages[-1]["role"] == "user" else ""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if "use a tool" in latest:
            function = {"name": "bash", "arguments": json.dumps({"command": "echo from the tool"})}
            self.chunk({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
            self.chunk({}, "tool_calls")
        else:
            self.chunk({"content": "answer "})
            if "hold" in latest:
                self.server.go_on.wait(20)
            self.chunk({"content": str(count)})
            self.chunk({}, "stop")
        self.write(b"data: [DONE]\n\n")

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        self.write(b"data: %s\n\n" % json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode())

    def write(self, data: bytes) -> None:
        try:
            self.wfile.write(data)
            self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            pass  # The run was aborted.

    def log_message(self, format: str, *args: Any) -> None:
        pass


class PlayedServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), PlayedModel)
        self.go_on = threading.Event()


@pytest.fixture
def model() -> Iterator[PlayedServer]:
    """The server that plays the model; the agents of the test are configured to use it."""
    with PlayedServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        played = {
            "api": "openai-completions",
            "apiKey": "k",
            "baseUrl": f"http://127.0.0.1:{server.server_port}/v1",
            "models": [{"id": "m", "name": "Played", "contextWindow": 100_000, "maxTokens": 4096}],
        }
        config = Path(os.environ["PI_CODING_AGENT_DIR"])
        (config / "models.json").write_text(json.dumps({"providers": {"played": played}}))
        yield server
        server.go_on.set()
        server.shutdown()
        thread.join()


def program() -> dict[str, Any]:
    """The options that start the agent under test."""
    first, *rest = shlex.split(AGENT or "")
    return {"program": first, "program_args": rest}


def played(**options: Any) -> dict[str, Any]:
    """The options that start it with the model of the test."""
    return {**program(), "provider": "played", "model": "m", **options}


def hold(pi: Client) -> sampi.Run:
    """Starts a run that stands still in the middle of its answer."""
    run = pi.stream("hold")
    assert any(isinstance(event, TextDelta) for event in run)
    return run


def test_runs_stream_assemble_and_settle(model: PlayedServer) -> None:
    with Client(**played(session="memory")) as pi:
        assembler = MessageAssembler()
        text, last = "", None
        with pi.stream("hello") as run:
            for event in run:
                assert not isinstance(event, (sampi.UnknownEvent, Lagged)), event
                assembler.apply(event)
                if isinstance(event, TextDelta):
                    text += event.text
                last = event
        assert isinstance(last, AgentSettled) and not last.aborted
        outcome = run.outcome()
        assert outcome.ok and outcome.text == text == "answer 0"
        assert (outcome.stop_reason, outcome.disposition) == ("stop", "started")
        assert assembler.message == outcome.messages[-1]
        assert pi.run("again").text == "answer 1"
        assert pi.get_last_assistant_text() == "answer 1"
        assert pi.get_session_stats().assistant_messages == 2


def test_tool_calls_are_typed_events(model: PlayedServer) -> None:
    with Client(**played(session="memory")) as pi:
        tools: list[object] = []
        for event in pi.stream("use a tool"):
            match event:
                case ToolExecutionStart(tool_name=name, args={"command": command}):
                    tools.append((name, command))
                case ToolExecutionEnd(result=result, is_error=False):
                    tools.append(result.text)
        assert tools == [("bash", "echo from the tool"), "from the tool\n"]
        assert pi.get_last_assistant_text() == "answer 1"
        assert [message.role for message in pi.get_messages()][-4:] == ["user", "assistant", "toolResult", "assistant"]


def test_prompts_during_a_run_are_refused_or_queued(model: PlayedServer) -> None:
    with Client(**played(session="memory")) as pi:
        run = hold(pi)
        with pytest.raises(CommandError, match="streamingBehavior") as refused:
            pi.prompt("me too")
        assert refused.value.command == "prompt"
        assert pi.prompt("cleared", streaming_behavior="followUp") == "queued"
        assert pi.clear_queue().follow_up == ("cleared",)
        assert run.steer("left") == "queued"
        assert run.follow_up("and then") == "queued"
        state = pi.get_state()
        assert state.is_streaming and state.pending_message_count == 2
        model.go_on.set()
        outcome = run.outcome()
        assert outcome.text == "answer 2"
        texts = [message.text for message in outcome.messages if isinstance(message, UserMessage)]
        assert texts == ["hold", "left", "and then"]


def test_an_aborted_run_is_an_outcome(model: PlayedServer) -> None:
    with Client(**played(session="memory")) as pi:
        with hold(pi) as run:
            pass
        outcome = run.outcome()
        assert outcome.aborted and not outcome.ok and outcome.stop_reason == "aborted"
        assert not pi.get_state().is_streaming
        # The model is not shown the answer that was cut off.
        assert pi.run("and on").text == "answer 0"


def test_commands_give_typed_results(model: PlayedServer) -> None:
    with Client(**played(session="memory")) as pi:
        events = pi.events()
        result = pi.bash("printf 'a\\nb\\n'; exit 4")
        assert (result.output, result.exit_code, result.cancelled) == ("a\nb\n", 4, False)
        output = ""
        while output != result.output:
            update = next(events)
            assert isinstance(update, BashExecutionUpdate)
            output += update.text
        assert isinstance(pi.get_messages()[-1], BashExecutionMessage)
        pi.set_session_name("named")
        state = pi.get_state()
        assert (state.session_name, state.session_file, state.is_streaming) == ("named", None, False)
        assert state.model is not None and (state.model.provider, state.model.id) == ("played", "m")
        assert [found.id for found in pi.get_available_models() if found.provider == "played"] == ["m"]
        assert pi.set_model("played", "m").name == "Played"
        assert pi.get_available_thinking_levels() == ("off",)
        assert pi.cycle_thinking_level() is None
        pi.set_steering_mode("all")
        pi.set_follow_up_mode("all")
        pi.set_auto_compaction(False)
        pi.set_auto_retry(True)
        pi.abort_retry()
        pi.abort_bash()
        pi.abort()
        state = pi.get_state()
        assert (state.steering_mode, state.follow_up_mode) == ("all", "all")
        assert not state.auto_compaction_enabled
        pi.get_commands()
        assert pi.pending_calls == 0


def test_entries_and_the_tree_agree(model: PlayedServer) -> None:
    with Client(**played(session="memory")) as pi:
        pi.run("one")
        pi.run("two")
        entries = pi.get_entries()
        assert entries.leaf_id == entries.entries[-1].id
        assert [entry.id for entry in pi.get_entries(since=entries.entries[-2].id).entries] == [entries.leaf_id]
        assert not any(isinstance(entry, sampi.UnknownEntry) for entry in entries.entries)
        tree = pi.get_tree()
        assert len(tree) == len(entries.entries)
        assert tree.leaf is not None and tree.leaf.entry == entries.entries[-1]
        assert [node.entry.id for node in reversed(tree.leaf.ancestors)] == [entry.id for entry in entries.entries]
        forks = pi.get_fork_messages()
        assert [fork.text for fork in forks] == ["one", "two"]
        assert pi.fork(forks[1].entry_id).text == "two"
        assert pi.get_last_assistant_text() == "answer 0"
        assert pi.new_session() is True
        assert pi.get_messages() == ()


def test_what_fails_says_so(model: PlayedServer) -> None:
    with Client(**played(session="memory")) as pi:
        with pytest.raises(CommandError, match="Model not found") as failed:
            pi.set_model("nobody", "nothing")
        assert failed.value.command == "set_model"
        with pytest.raises(CommandError, match="Unknown command: make_coffee"):
            pi.call("make_coffee", {"sugar": 2})
        for call in (lambda: pi.fork("nowhere"), lambda: pi.get_entries(since="nowhere"), pi.compact):
            with pytest.raises(CommandError):
                call()
        assert pi.pending_calls == 0


def test_a_prompt_without_a_model_fails() -> None:
    keys: dict[str, str | None] = {name: None for name in os.environ if name.endswith(("_KEY", "_TOKEN"))}
    with Client(**program(), session="memory", env=keys) as pi:
        assert pi.get_available_models() == ()
        with pytest.raises(CommandError, match="No "):
            pi.run("hi")


def test_sessions_are_kept_continued_and_copied(model: PlayedServer) -> None:
    with Client(**played(session_name="kept")) as pi:
        assert pi.run("remember").text == "answer 0"
        state = pi.get_state()
    assert state.session_file is not None and Path(state.session_file).exists()
    for choice in ("continue", Session.open(state.session_file)):
        with Client(**played(session=choice)) as pi:
            assert pi.get_last_assistant_text() == "answer 0"
            assert (pi.get_state().session_id, pi.get_state().session_name) == (state.session_id, "kept")
    with Client(**played(session=Session.fork(state.session_file))) as pi:
        assert pi.get_last_assistant_text() == "answer 0"
        assert pi.get_state().session_id != state.session_id
    with Client(**played()) as pi:
        assert pi.switch_session(state.session_file)
        assert pi.clone()
        assert pi.run("go on").text == "answer 1"
        page = pi.export_html()
        assert Path(page).read_text().lstrip().lower().startswith("<!doctype html")


def test_close_and_restart(model: PlayedServer) -> None:
    with Client(**played(session="memory")) as pi:
        assert pi.run("hello").text == "answer 0"
        assert pi.close() == 0
        with pytest.raises(ProcessError) as stopped:
            pi.get_state()
        assert stopped.value.exit_code == 0
        pi.restart()
        assert pi.run("hello").text == "answer 0"


async def test_the_async_client_does_the_same(model: PlayedServer) -> None:
    async with AsyncClient(**played(session="memory")) as pi:
        text = ""
        async for event in pi.stream("hello"):
            if isinstance(event, TextDelta):
                text += event.text
        assert text == "answer 0"
        outcome = await pi.run("again")
        assert outcome.text == "answer 1" and isinstance(outcome.messages[-1], AssistantMessage)
        run = pi.stream("hold")
        async for event in run:
            if isinstance(event, TextDelta):
                break
        await pi.abort()
        assert (await run.outcome()).aborted
        assert (await pi.bash("echo hi")).output == "hi\n"
        assert not (await pi.get_state()).is_streaming
