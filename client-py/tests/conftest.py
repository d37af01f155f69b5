"""Clients that touch nothing of the user's."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sampi import AsyncClient, Client

FAKE = Path(__file__).parent / "fake_peer.py"


def script(*steps: dict[str, Any]) -> str:
    """A prompt that tells the demo model what to answer."""
    return "@script " + json.dumps({"steps": steps})


@pytest.fixture(autouse=True)
def _own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemons of a test have their configuration, and their working directory, in its folder."""
    config = tmp_path / "config"
    config.mkdir()
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(config))
    monkeypatch.setenv("PI_OFFLINE", "1")
    monkeypatch.delenv("PI_CODING_AGENT_SESSION_DIR", raising=False)
    monkeypatch.chdir(work)


@pytest.fixture
def pi() -> Iterator[Client]:
    """A client of the demo model."""
    with Client(provider="demo", session="memory") as client:
        yield client


@pytest.fixture
def fake() -> Iterator[Callable[..., Client]]:
    """Makes clients of a daemon that misbehaves."""
    clients: list[Client] = []

    def make(scenario: str, **options: Any) -> Client:
        client = Client(program=sys.executable, program_args=[FAKE, scenario], **options)
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


def async_fake(scenario: str, **options: Any) -> AsyncClient:
    """An async client of a daemon that misbehaves."""
    return AsyncClient(program=sys.executable, program_args=[FAKE, scenario], **options)
