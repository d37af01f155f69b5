"""The classes of events and results."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from conftest import script

import sampi
from sampi import Block, Client, Dialog, Entry, Event, Message, RunOutcome, SessionTree, Usage

USAGE = {
    "input": 1,
    "output": 2,
    "cacheRead": 3,
    "cacheWrite": 4,
    "totalTokens": 10,
    "cost": {"input": 0.5, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.5},
}
ASSISTANT: dict[str, Any] = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "a"},
        {"type": "toolCall", "id": "c", "name": "read", "arguments": {"z": 1, "a": [True, None]}},
        {"type": "video", "url": "u"},
    ],
    "api": "a",
    "provider": "p",
    "model": "m",
    "usage": USAGE,
    "stopReason": "toolUse",
    "timestamp": 1,
}
# The protocol crate reads these two with a role and writes them without.
WITHOUT_ROLE = {key: value for key, value in ASSISTANT.items() if key != "role"}
OUTPUT = {"content": [{"type": "text", "text": "x"}], "details": {"n": 1}}
TOOL = {"toolCallId": "c", "toolName": "read"}
RETRY = {"attempt": 1, "maxAttempts": 3, "delayMs": 10, "errorMessage": "e"}
COMPACTED = {"summary": "s", "firstKeptEntryId": "e", "tokensBefore": 5}


def update(event: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message_update", "usage": USAGE, "assistantMessageEvent": event}


def ui(method: str, **fields: Any) -> dict[str, Any]:
    return {"type": "extension_ui_request", "id": "u", "method": method, **fields}


EVENTS: list[tuple[str, dict[str, Any]]] = [
    ("AgentStart", {"type": "agent_start"}),
    ("AgentEnd", {"type": "agent_end", "messages": [ASSISTANT], "willRetry": False}),
    ("AgentSettled", {"type": "agent_settled", "aborted": True}),
    ("TurnStart", {"type": "turn_start"}),
    ("TurnEnd", {"type": "turn_end", "message": ASSISTANT, "toolResults": []}),
    ("MessageStart", {"type": "message_start", "message": ASSISTANT}),
    ("MessageEnd", {"type": "message_end", "message": ASSISTANT}),
    ("StreamStart", update({"type": "start"})),
    ("TextStart", update({"type": "text_start", "contentIndex": 0})),
    ("TextDelta", update({"type": "text_delta", "contentIndex": 0, "delta": "ä\u2028"})),
    ("TextEnd", update({"type": "text_end", "contentIndex": 0, "content": "x"})),
    ("ThinkingStart", update({"type": "thinking_start", "contentIndex": 0})),
    ("ThinkingDelta", update({"type": "thinking_delta", "contentIndex": 0, "delta": "x"})),
    ("ThinkingEnd", update({"type": "thinking_end", "contentIndex": 0, "content": "x"})),
    ("ToolCallStart", update({"type": "toolcall_start", "contentIndex": 0, "id": "c", "toolName": "read"})),
    ("ToolCallDelta", update({"type": "toolcall_delta", "contentIndex": 0, "delta": "x"})),
    ("ToolCallEnd", update({"type": "toolcall_end", "contentIndex": 0, "toolCall": ASSISTANT["content"][2]})),
    ("StreamDone", update({"type": "done", "reason": "stop", "message": WITHOUT_ROLE})),
    ("StreamError", update({"type": "error", "reason": "aborted", "error": WITHOUT_ROLE})),
    ("MessageUpdate", update({"type": "hum", "pitch": 440})),
    ("ToolExecutionStart", {"type": "tool_execution_start", **TOOL, "args": {"path": "x"}}),
    ("ToolExecutionUpdate", {"type": "tool_execution_update", **TOOL, "args": {}, "partialResult": OUTPUT}),
    ("ToolExecutionEnd", {"type": "tool_execution_end", **TOOL, "result": OUTPUT, "isError": False}),
    ("QueueUpdate", {"type": "queue_update", "steering": ["a"], "followUp": []}),
    (
        "EntryAppended",
        {"type": "entry_appended", "entry": {"type": "label", "id": "i", "parentId": None, "timestamp": "t", "targetId": "x"}},
    ),
    ("SessionInfoChanged", {"type": "session_info_changed", "name": "n"}),
    ("ThinkingLevelChanged", {"type": "thinking_level_changed", "level": "high"}),
    ("CompactionStart", {"type": "compaction_start", "reason": "manual"}),
    (
        "CompactionEnd",
        {"type": "compaction_end", "reason": "manual", "result": COMPACTED, "aborted": False, "willRetry": False},
    ),
    ("AutoRetryStart", {"type": "auto_retry_start", **RETRY}),
    ("AutoRetryEnd", {"type": "auto_retry_end", "success": False, "attempt": 3, "finalError": "e"}),
    ("SummarizationRetryScheduled", {"type": "summarization_retry_scheduled", **RETRY}),
    ("SummarizationRetryAttemptStart", {"type": "summarization_retry_attempt_start", "source": "branchSummary"}),
    ("SummarizationRetryFinished", {"type": "summarization_retry_finished"}),
    ("BashExecutionUpdate", {"type": "bash_execution_update", "id": "b", "delta": "x"}),
    ("SessionDiagnostic", {"type": "session_diagnostic", "path": "p", "line": 3, "message": "m"}),
    ("ExtensionError", {"type": "extension_error", "extensionPath": "p", "event": "e", "error": "x"}),
    ("UnknownEvent", {"type": "moon_phase", "phase": {"full": True}}),
    ("Notify", ui("notify", message="m", notifyType="warning")),
    ("SetStatus", ui("setStatus", statusKey="k", statusText="t")),
    ("SetWidget", ui("setWidget", widgetKey="k", widgetLines=["a"], widgetPlacement="belowEditor")),
    ("SetTitle", ui("setTitle", title="t")),
    ("SetEditorText", ui("set_editor_text", text="t")),
    ("Lagged", {"type": "sampi.lagged", "missed": 3}),
]
MESSAGES: list[tuple[str, dict[str, Any]]] = [
    ("SystemMessage", {"role": "system", "content": "s", "sections": {"a": None}, "timestamp": 1}),
    ("UserMessage", {"role": "user", "content": "hi", "timestamp": 1}),
    ("AssistantMessage", ASSISTANT),
    ("ToolResultMessage", {"role": "toolResult", **TOOL, "content": [], "isError": True, "timestamp": 1}),
    (
        "BashExecutionMessage",
        {"role": "bashExecution", "command": "c", "output": "o", "cancelled": False, "truncated": False, "timestamp": 1},
    ),
    ("CustomMessage", {"role": "custom", "customType": "x", "content": "y", "display": True, "timestamp": 1}),
    ("BranchSummaryMessage", {"role": "branchSummary", "summary": "s", "fromId": None, "timestamp": 1}),
    ("CompactionSummaryMessage", {"role": "compactionSummary", "summary": "s", "tokensBefore": 5, "timestamp": 1}),
    ("UnknownMessage", {"role": "narrator", "content": "once"}),
]
BLOCKS: list[tuple[str, dict[str, Any]]] = [
    ("TextContent", {"type": "text", "text": "x"}),
    ("ImageContent", {"type": "image", "data": "", "mimeType": "image/png"}),
    ("ThinkingContent", {"type": "thinking", "thinking": "x"}),
    ("ToolCall", {"type": "toolCall", "id": "c", "name": "n", "arguments": {"z": 1, "a": 2}}),
    ("UnknownContent", {"type": "video", "url": "x"}),
]
BASE = {"id": "i", "parentId": "p", "timestamp": "t"}
ENTRIES: list[tuple[str, dict[str, Any]]] = [
    ("MessageEntry", {"type": "message", **BASE, "message": {"role": "user", "content": "x", "timestamp": 1}}),
    ("ModelChangeEntry", {"type": "model_change", **BASE, "provider": "p", "modelId": "m"}),
    ("ThinkingLevelChangeEntry", {"type": "thinking_level_change", **BASE, "thinkingLevel": "off"}),
    ("UsageEntry", {"type": "usage", **BASE, "kind": "k", "provider": "p", "model": "m", "usage": USAGE}),
    ("CompactionEntry", {"type": "compaction", **BASE, **COMPACTED}),
    ("ContextEditEntry", {"type": "context_edit", **BASE, "targetId": "x", "replacement": {"content": "y"}}),
    ("BranchSummaryEntry", {"type": "branch_summary", **BASE, "fromId": "x", "summary": "s"}),
    ("CustomEntry", {"type": "custom", **BASE, "customType": "x", "data": {"n": 1}}),
    ("CustomMessageEntry", {"type": "custom_message", **BASE, "customType": "x", "content": "y", "display": True}),
    ("LabelEntry", {"type": "label", **BASE, "targetId": "x", "label": "l"}),
    ("SessionInfoEntry", {"type": "session_info", **BASE, "name": "n"}),
    ("UnknownEntry", {"type": "from_the_future", **BASE, "stars": [1, 2]}),
]
DIALOGS: list[tuple[str, dict[str, Any]]] = [
    ("SelectDialog", ui("select", title="t", options=["a", "b"], timeout=1500)),
    ("ConfirmDialog", ui("confirm", title="t", message="m")),
    ("InputDialog", ui("input", title="t", placeholder="p")),
    ("EditorDialog", ui("editor", title="t", prefill="p")),
]
FAMILIES: list[tuple[Any, list[tuple[str, dict[str, Any]]]]] = [
    (Event, EVENTS),
    (Message, MESSAGES),
    (Block, BLOCKS),
    (Entry, ENTRIES),
    (Dialog, DIALOGS),
]
KINDS = [(family, name, raw) for family, kinds in FAMILIES for name, raw in kinds]


@pytest.mark.parametrize(("family", "name", "raw"), KINDS, ids=[name for _, name, _ in KINDS])
def test_every_kind_is_read_shown_compared_copied_and_written(family: Any, name: str, raw: dict[str, Any]) -> None:
    made = family.from_raw(raw)
    assert type(made) is getattr(sampi, name) and isinstance(made, family)
    assert made.raw() == raw
    assert made == family.from_raw(raw) and not made != family.from_raw(raw)
    assert made != object()
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(made, protocol)) == made
    assert copy.deepcopy(made) == made
    values = [getattr(made, attribute) for attribute in made.__match_args__]
    assert repr(made).startswith(f"{name}(") and len(values) == len(made.__match_args__)
    for attribute in ("anything", *made.__match_args__):
        with pytest.raises(AttributeError):
            setattr(made, attribute, 1)
    with pytest.raises(TypeError):
        hash(made)


def test_no_kind_is_forgotten() -> None:
    listed = {name for _, name, _ in KINDS}
    bases = {"Event", "UiEvent", "Message", "Block", "Entry", "Dialog"}
    for name, value in vars(sampi).items():
        if inspect.isclass(value) and issubclass(value, (Event, Message, Block, Entry, Dialog)):
            assert name in listed | bases


def test_attributes_have_python_names_and_types() -> None:
    event = Event.from_raw(dict(EVENTS)["MessageEnd"])
    assert isinstance(event, sampi.MessageEnd) and event.kind == "message_end"
    message = event.message
    assert isinstance(message, sampi.AssistantMessage) and message.role == "assistant"
    assert message is event.message
    assert (message.text, message.stop_reason, message.usage.cost.total) == ("a", "toolUse", 0.5)
    thinking, text, call, video = message.content
    assert isinstance(thinking, sampi.ThinkingContent) and thinking.thinking == "hm"
    assert isinstance(call, sampi.ToolCall) and list(call.arguments) == ["z", "a"]
    assert message.tool_calls == (call,)
    assert isinstance(video, sampi.UnknownContent) and video.raw() == {"type": "video", "url": "u"}
    arguments = call.arguments
    arguments["z"] = 2
    assert call.arguments == {"z": 1, "a": [True, None]}


def test_positional_patterns_put_the_useful_first() -> None:
    match Event.from_raw(dict(EVENTS)["TextDelta"]):
        case sampi.TextDelta(text):
            assert text == "ä\u2028"
        case other:
            pytest.fail(repr(other))


def test_a_malformed_known_kind_is_an_error_that_names_the_field() -> None:
    with pytest.raises(ValueError, match="aborted"):
        Event.from_raw({"type": "agent_settled", "aborted": "no"})
    with pytest.raises(ValueError, match="name"):
        Block.from_raw({"type": "toolCall", "id": "x"})


def test_kinds_of_one_family_differ() -> None:
    made = [family.from_raw(raw) for family, _, raw in KINDS]
    for index, one in enumerate(made):
        assert [other for other in made if other == one] == [one], index


def test_long_values_are_cut_in_a_repr() -> None:
    long = Event.from_raw(update({"type": "text_delta", "contentIndex": 0, "delta": "é" * 1000}))
    assert len(repr(long)) < 200 and "…" in repr(long)


def test_results_are_compared_pickled_and_written(pi: Client) -> None:
    outcome = pi.run(script({"text": "x", "tools": [{"name": "bash", "args": {"command": "true"}}]}))
    pi.set_session_name("n")
    results: list[Any] = [
        outcome,
        outcome.usage,
        outcome.usage.cost,
        pi.get_state(),
        pi.get_state().model,
        pi.get_session_stats(),
        pi.get_session_stats().tokens,
        pi.get_session_stats().context_usage,
        pi.get_entries(),
        pi.bash("true"),
        pi.clear_queue(),
        pi.get_fork_messages()[0],
    ]
    for result in results:
        assert pickle.loads(pickle.dumps(result)) == result
        assert type(result).from_raw(result.raw()) == result
        assert repr(result).startswith(type(result).__name__ + "(")
        with pytest.raises(AttributeError):
            result.anything = 1
        for attribute in result.__match_args__:
            getattr(result, attribute)


def test_a_result_is_an_outcome_of_its_own_class() -> None:
    usage = Usage.from_raw(USAGE)
    assert isinstance(usage, Usage) and usage.total_tokens == 10
    assert usage != Usage.from_raw({**USAGE, "input": 2})
    with pytest.raises(ValueError, match="disposition"):
        RunOutcome.from_raw({})


def test_a_tree_is_navigated_pickled_and_compared(pi: Client) -> None:
    pi.run(script({"text": "x"}))
    tree = pi.get_tree()
    copied = pickle.loads(pickle.dumps(tree))
    assert isinstance(copied, SessionTree) and copied == tree and len(copied) == len(tree) > 2
    assert [node.entry for node in copied.nodes] == [node.entry for node in tree.nodes]
    root = tree.roots[0]
    assert root.parent is None and root.children[0].parent == root
    assert tree.find("nothing") is None
    assert tree.raw()["leafId"] == tree.leaf_id
    assert tree.raw()["tree"][0]["entry"] == root.raw()
    pi.set_session_name("other")
    assert pi.get_tree() != tree


def test_a_tree_as_deep_as_a_long_session_is_read(fake: Callable[..., Client]) -> None:
    depth = 40_000
    tree = fake("deep_tree", env={"SAMPI_DEPTH": str(depth)}).get_tree()
    assert len(tree) == depth and tree.leaf is not None
    assert len(tree.leaf.ancestors) == depth
    assert pickle.loads(pickle.dumps(tree)) == tree
    raw = tree.raw()
    for _ in range(depth):
        raw = raw["tree"][0] if "tree" in raw else (raw["children"] or [raw])[0]
    assert raw["entry"]["id"] == f"e{depth - 1}"
