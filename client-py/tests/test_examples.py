"""The examples are programs that people would start from: each is run against the demo model."""

from __future__ import annotations

import ast
import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import FAKE, script

from sampi import Client

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"


def run(example: str, *arguments: str | Path, answers: str = "") -> str:
    """Runs an example and gives what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / example, *arguments],
        capture_output=True,
        text=True,
        input=answers,
        timeout=50,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_review_repository(tmp_path: Path) -> None:
    (tmp_path / "bug.py").write_text("def half(n):\n    return n / 0\n")
    printed = run(
        "review_repository.py",
        tmp_path,
        "--provider=demo",
        "--prompt",
        script({"tools": [{"name": "read", "args": {"path": "bug.py"}}]}, {"text": "bug.py:2 divides by zero."}),
    )
    assert "[read bug.py]" in printed and "bug.py:2 divides by zero." in printed and "tokens" in printed
    assert "failed" not in printed


def test_live_progress() -> None:
    printed = run(
        "live_progress.py",
        script({"tools": [{"name": "bash", "args": {"command": "echo hi"}}]}, {"text": "All **done**."}),
        "--provider=demo",
    )
    assert "1 tool calls" in printed and "All done." in printed and "stop" in printed


def test_permission_dialog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Nothing to ask." in run("permission_dialog.py", script({"text": "Nothing to ask."}), "--provider=demo")
    peer = tmp_path / "peer"
    peer.write_text(f"#!/bin/sh\nexec {sys.executable} {FAKE} permission\n")
    peer.chmod(0o755)
    monkeypatch.setenv("SAMPI_BIN", str(peer))
    printed = run("permission_dialog.py", "Tidy up", answers="y\n")
    assert "Run rm? [y/N]" in printed and "granted" in printed
    assert "denied" in run("permission_dialog.py", "Tidy up", answers="n\n")


def test_ten_sessions() -> None:
    printed = run("ten_sessions.py", "--provider=demo", script({"text": "Yes."}), script({"text": "No."}))
    assert printed.count("'Yes.'") == printed.count("'No.'") == 5
    assert "10 sessions" in printed


def test_notebook_cell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SAMPI_PROVIDER", "demo")
    cells = (EXAMPLES / "notebook_cell.py").read_text().split("# %%\n")
    names: dict[str, Any] = {}

    async def notebook() -> None:
        # As Jupyter does it: each cell is compiled for itself and run on the loop that is there.
        for cell in cells:
            code = compile(cell, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, names)
            if asyncio.iscoroutine(result):
                await result

    asyncio.run(notebook())
    assert names["answer"].ok and names["stats"].tokens.total > 0
    assert capsys.readouterr().out
    assert names["pi"].exit_code == 0


def test_usage_table(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    for name in ("first", "second"):
        with Client(provider="demo", session_dir=sessions, session_name=name) as pi:
            for _ in range(2):
                pi.run(script({"text": "x", "usage": {"input": 100, "output": 10}}))
    table = tmp_path / "usage.csv"
    printed = run("usage_table.py", sessions, "--csv", table)
    assert "demo/demo" in printed and "40 output tokens" in printed
    assert table.read_text().splitlines()[1:] == [f"{name},demo/demo,2,200,0,20,0.0" for name in ("first", "second")]


def test_every_example_is_tested() -> None:
    tests = {name.removeprefix("test_") + ".py" for name in globals() if name.startswith("test_")}
    assert {path.name for path in EXAMPLES.glob("*.py")} <= tests
    assert not os.environ.get("SAMPI_BIN")
