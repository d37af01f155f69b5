"""A daemon that misbehaves on purpose: `fake_peer.py SCENARIO`."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

USAGE = {
    "input": 1,
    "output": 2,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 3,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
}

STATE = {
    "thinkingLevel": "off",
    "isStreaming": False,
    "isCompacting": False,
    "steeringMode": "all",
    "followUpMode": "all",
    "sessionId": "s",
    "autoCompactionEnabled": True,
    "messageCount": 0,
    "pendingMessageCount": 0,
}


def write(*records: dict[str, Any] | str) -> None:
    """Writes records (or lines as they are) in one chunk."""
    lines = (record if isinstance(record, str) else json.dumps(record) for record in records)
    os.write(1, "".join(line + "\n" for line in lines).encode())


def commands() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


def answer(command: dict[str, Any], data: Any = None, **fields: Any) -> dict[str, Any]:
    """The successful answer to a command."""
    response = {"id": command.get("id"), "type": "response", "command": command["type"], "success": True}
    return {**response, **({} if data is None else {"data": data}), **fields}


def assistant(text: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
        "api": "fake",
        "provider": "fake",
        "model": "fake",
        "usage": USAGE,
        "stopReason": "stop",
        "timestamp": 1,
    }


def delta(text: str) -> dict[str, Any]:
    event = {"type": "text_delta", "contentIndex": 0, "delta": text}
    return {"type": "message_update", "usage": USAGE, "assistantMessageEvent": event}


def run(command: dict[str, Any], *middle: dict[str, Any] | str, text: str = "done") -> list[Any]:
    """A whole run, its response first."""
    return [
        answer(command, {"disposition": "started"}),
        {"type": "agent_start"},
        *middle,
        {"type": "message_end", "message": assistant(text)},
        {"type": "agent_end", "messages": [assistant(text)], "willRetry": False},
        {"type": "agent_settled", "aborted": False},
    ]


def dies_at_once() -> None:
    print("cannot start: no licence", file=sys.stderr, flush=True)
    sys.exit(3)


def dies_mid_frame() -> None:
    for command in commands():
        os.write(1, json.dumps(answer(command, {"disposition": "started"}))[:20].encode())
        sys.exit(4)


def killed() -> None:
    for _ in commands():
        os.kill(os.getpid(), signal.SIGKILL)


def one_chunk() -> None:
    for command in commands():
        write(*run(command, delta("quick"), text="quick"))


def strange_ids() -> None:
    for command in commands():
        write(answer({"id": "nobody", "type": "prompt"}), answer({"id": 7, "type": "prompt"}))
        write(*run(command))


def flood() -> None:
    for command in commands():
        count = int(command.get("message") or 0)
        write(answer(command, {"disposition": "started"}))
        line = json.dumps(delta("x" * 12)) + "\n"
        for _ in range(count // 1000):
            os.write(1, (line * 1000).encode())
        write(*run(command)[2:])


def prelude() -> None:
    write("Welcome!", "", "[1, 2]", "{not json", '"text"')
    for command in commands():
        write("a line in between", *run(command))


def lingers() -> None:
    os.close(1)
    time.sleep(30)


def malformed() -> None:
    for command in commands():
        write(*run(command, {"type": "agent_settled", "aborted": "no"}, delta("after")))


def unknown() -> None:
    odd = {"type": "message_update", "usage": USAGE, "assistantMessageEvent": {"type": "hum", "pitch": 440}}
    notify = {"type": "extension_ui_request", "id": "n", "method": "notify", "message": "Heads up"}
    for command in commands():
        write(*run(command, {"type": "moon_phase", "phase": {"full": True}}, odd, notify))


def dialogs() -> None:
    """Asks what the prompt says (a list of requests) and answers with what it was told."""
    told: list[Any] = []
    prompt: dict[str, Any] = {}
    asked = 0
    for record in commands():
        if record["type"] == "prompt":
            prompt, told = record, []
            requests = json.loads(record["message"])
            asked = len(requests)
            write(answer(record, {"disposition": "started"}), {"type": "agent_start"})
            for index, request in enumerate(requests):
                write({"type": "extension_ui_request", "id": f"d{index}", **request})
        elif record["type"] == "extension_ui_response":
            told.append({key: value for key, value in record.items() if key != "type"})
            if len(told) == asked:
                told.sort(key=lambda answered: str(answered["id"]))
                write(*run(prompt, text=json.dumps(told))[2:])
        else:
            write(answer(record))


def permission() -> None:
    """Asks for a permission before it says anything."""
    prompt: dict[str, Any] = {}
    ask = {"type": "extension_ui_request", "id": "p", "method": "confirm", "title": "Shell", "message": "Run rm?"}
    for record in commands():
        if record["type"] == "prompt":
            prompt = record
            write(answer(record, {"disposition": "started"}), {"type": "agent_start"}, ask)
        elif record["type"] == "extension_ui_response":
            word = "granted" if record.get("confirmed") else "denied"
            write(*run(prompt, delta(word), text=word)[2:])


def hangs() -> None:
    """Answers get_commands and nothing else."""
    for command in commands():
        if command["type"] == "get_commands":
            write(answer(command, {"commands": []}))


def order() -> None:
    """Answers with the messages so far, in the order in which they came."""
    seen: list[str] = []
    for command in commands():
        if command["type"] == "get_last_assistant_text":
            write(answer(command, {"text": ",".join(seen)}))
        else:
            seen.append(command["message"])
            write(answer(command, {"disposition": "queued"}))


def talks_on_stderr() -> None:
    for command in commands():
        print("one\ntwo", file=sys.stderr, flush=True)
        write(*run(command))


def deep_tree() -> None:
    """A chain of as many entries as SAMPI_DEPTH says."""
    depth = int(os.environ["SAMPI_DEPTH"])
    for command in commands():
        parts = []
        for index in range(depth):
            entry = {"type": "session_info", "id": f"e{index}", "parentId": None, "timestamp": "t", "name": "n"}
            parts.append('{"entry":%s,"children":[' % json.dumps(entry))
        tree = "".join(parts) + "]}" * depth
        head = json.dumps(answer(command))[:-1]
        write('%s,"data":{"tree":[%s],"leafId":"e%d"}}' % (head, tree, depth - 1))


def raw_commands() -> None:
    for command in commands():
        seen = {key: value for key, value in command.items() if key != "id"}
        write(answer(command, {"seen": seen, "text": json.dumps(seen)}))


def gated() -> None:
    """Begins a run and ends it when a line comes out of the FIFO that the prompt names."""
    for command in commands():
        records = run(command)
        write(*records[:2])
        with open(command["message"]) as gate:
            gate.readline()
        write(*records[2:])


def asks_at_once() -> None:
    """Asks before it is asked anything. When it has its answer it says so, and then answers commands."""
    print("asking", file=sys.stderr, flush=True)
    write({"type": "extension_ui_request", "id": "d", "method": "confirm", "title": "t", "message": "m"})
    waiting: list[dict[str, Any]] = []
    for record in commands():
        waiting.append(record)
        if record["type"] == "extension_ui_response":
            waiting.remove(record)
            write({"type": "extension_error", "extensionPath": "x", "event": "e", "error": json.dumps(record)})
            break
    for record in itertools.chain(waiting, commands()):
        write(answer(record, STATE))


def announces() -> None:
    """Has something to say before it is asked anything."""
    write({"type": "session_diagnostic", "path": "p", "message": "m"}, {"type": "agent_settled", "aborted": "no"})
    for command in commands():
        write(*run(command))


if __name__ == "__main__":
    scenario = globals()[sys.argv[1]]
    scenario()
