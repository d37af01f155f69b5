"""Events a second and the round trip of get_state, beside pi-agent-python-sdk when its interpreter is given.

    python client-py/tools/bench.py [--daemon target/release/sampi] [--peer-python VENV/bin/python] [--rounds 5]

The events come from a peer that writes 50,000 text deltas as fast as they are read, and from the daemon's demo
model. Each client runs in a process of its own, in turns, so that both see the same machine; the best of the
rounds counts. CPU is that of the client's process alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EVENTS = 50_000
DEMO_EVENTS = 20_000
CALLS = 2_000
DEMO_PROMPT = "@script " + json.dumps({"steps": [{"deltas": DEMO_EVENTS}]})


def cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Measured:
    def __init__(self) -> None:
        self.figures: dict[str, float] = {}
        self._wall, self._cpu = time.perf_counter(), cpu()

    def start(self) -> None:
        self._wall, self._cpu = time.perf_counter(), cpu()

    def stop(self, name: str, count: int) -> None:
        wall, used = time.perf_counter() - self._wall, cpu() - self._cpu
        self.figures[f"{name} us"] = wall / count * 1e6
        self.figures[f"{name} CPU us"] = used / count * 1e6


def peer_command() -> list[str]:
    return [sys.executable, __file__, "--as-peer"]


def measure_sync(daemon: str) -> dict[str, float]:
    import sampi

    measured = Measured()
    program, *rest = peer_command()
    with sampi.Client(program=program, program_args=rest) as pi:
        measured.start()
        seen = sum(type(event) is sampi.TextDelta and len(event.text) > 0 for event in pi.stream("x"))
        measured.stop("peer", EVENTS)
        assert seen == EVENTS, seen
    with sampi.Client(program=daemon, provider="demo", session="memory") as pi:
        measured.start()
        seen = sum(type(event) is sampi.TextDelta and len(event.text) > 0 for event in pi.stream(DEMO_PROMPT))
        measured.stop("demo", DEMO_EVENTS)
        assert seen >= DEMO_EVENTS, seen
        measured.start()
        for _ in range(CALLS):
            assert not pi.get_state().is_streaming
        measured.stop("get_state", CALLS)
    return measured.figures


async def measure_async(daemon: str) -> dict[str, float]:
    import sampi

    measured = Measured()
    program, *rest = peer_command()
    async with sampi.AsyncClient(program=program, program_args=rest) as pi:
        measured.start()
        seen = 0
        async for event in pi.stream("x"):
            seen += type(event) is sampi.TextDelta and len(event.text) > 0
        measured.stop("peer", EVENTS)
        assert seen == EVENTS, seen
    async with sampi.AsyncClient(program=daemon, provider="demo", session="memory") as pi:
        measured.start()
        seen = 0
        async for event in pi.stream(DEMO_PROMPT):
            seen += type(event) is sampi.TextDelta and len(event.text) > 0
        measured.stop("demo", DEMO_EVENTS)
        assert seen >= DEMO_EVENTS, seen
        measured.start()
        for _ in range(CALLS):
            assert not (await pi.get_state()).is_streaming
        measured.stop("get_state", CALLS)
    return measured.figures


async def measure_sdk(daemon: str) -> dict[str, float]:
    from pi_agent import AsyncPiClient  # type: ignore[import-not-found, unused-ignore]

    measured = Measured()

    async def read(client: Any, prompt: str, count: int, name: str) -> None:
        measured.start()
        seen = 0
        async with client.stream(prompt) as run:
            async for event in run:
                text = event.text_delta
                seen += text is not None and len(text) > 0
        measured.stop(name, count)
        assert seen >= count, (seen, count)

    options: dict[str, Any] = {"cwd": os.getcwd(), "allow_unknown_version": True}
    async with AsyncPiClient(executable=peer_command(), **options) as client:
        await read(client, "x", EVENTS, "peer")
    async with AsyncPiClient(executable=[daemon], provider="demo", model="demo", **options) as client:
        await read(client, DEMO_PROMPT, DEMO_EVENTS, "demo")
        measured.start()
        for _ in range(CALLS):
            await client.get_state()
        measured.stop("get_state", CALLS)
    return measured.figures


def peer() -> None:
    """Answers what clients ask at their start, and a prompt with a flood."""
    if "--version" in sys.argv:
        print("1.6.0")
        return
    usage = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "totalTokens"), 0)
    usage["cost"] = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "total"), 0)  # type: ignore[assignment]
    answer = {"role": "assistant", "content": [{"type": "text", "text": "x"}], "api": "a", "provider": "p"}
    answer |= {"model": "m", "usage": usage, "stopReason": "stop", "timestamp": 1}
    state = {"thinkingLevel": "off", "isStreaming": False, "isCompacting": False, "steeringMode": "all"}
    state |= {"followUpMode": "all", "sessionId": "s", "autoCompactionEnabled": True, "messageCount": 0}
    state |= {"pendingMessageCount": 0}
    delta = {"type": "text_delta", "contentIndex": 0, "delta": "twelve chars"}
    line = json.dumps({"type": "message_update", "usage": usage, "assistantMessageEvent": delta}).encode() + b"\n"
    chunk = line * 500

    def write(*records: dict[str, Any]) -> None:
        send(b"".join(json.dumps(record).encode() + b"\n" for record in records))

    def send(data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]

    for text in sys.stdin:
        command = json.loads(text)
        response = {"id": command.get("id"), "type": "response", "command": command["type"], "success": True}
        if command["type"] == "get_state":
            write(response | {"data": state})
        elif command["type"] == "prompt":
            write(response | {"data": {"disposition": "started"}}, {"type": "agent_start"})
            write({"type": "message_start", "message": answer | {"content": [], "stopReason": "pending"}})
            for _ in range(EVENTS // 500):
                send(chunk)
            write({"type": "message_end", "message": answer})
            write({"type": "agent_end", "messages": [answer], "willRetry": False})
            write({"type": "agent_settled", "aborted": False})
        else:
            write(response)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--daemon")
    parser.add_argument("--peer-python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", choices=("sync", "async", "sdk"))
    options = parser.parse_args()
    if options.measure:
        measure = {"sync": measure_sync, "async": measure_async, "sdk": measure_sdk}[options.measure]
        figures = measure(options.daemon)
        print(json.dumps(asyncio.run(figures) if asyncio.iscoroutine(figures) else figures))
        return
    from sampi import find_daemon

    daemon = str(Path(options.daemon).resolve() if options.daemon else find_daemon())
    clients = {"sampi, sync": (sys.executable, "sync"), "sampi, asyncio": (sys.executable, "async")}
    if options.peer_python:
        clients["pi-agent-python-sdk"] = (options.peer_python, "sdk")
    best: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        own = {"HOME": folder, "PI_CODING_AGENT_DIR": folder, "PI_OFFLINE": "1", "PI_TELEMETRY": "0"}
        for _ in range(options.rounds):
            for name, (python, measure_name) in clients.items():
                command = [python, __file__, "--measure", measure_name, "--daemon", daemon]
                run = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=folder, env={**os.environ, **own})
                for figure, value in json.loads(run.stdout).items():
                    known = best.setdefault(name, {})
                    known[figure] = min(value, known.get(figure, value))
    for name, figures in best.items():
        print(f"{name:22}" + "  ".join(f"{figure} {value:8.1f}" for figure, value in figures.items()))
        events = 1e6 / figures["peer us"], 1e6 / figures["demo us"]
        print(f"{'':22}{events[0]:,.0f} events a second from the peer, {events[1]:,.0f} from the demo model")


if __name__ == "__main__":
    if "--as-peer" in sys.argv:
        peer()
    else:
        main()
