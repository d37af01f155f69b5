"""The build backend."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

BACKEND = Path(__file__).parent.parent / "tools" / "build_wheel.py"


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The backend, in a workspace of its own."""
    spec = importlib.util.spec_from_file_location("build_wheel", BACKEND)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "WORKSPACE", tmp_path)
    monkeypatch.setattr(module, "SCRIPTS", tmp_path / "scripts")
    return module


def test_a_relative_daemon_is_one_of_the_workspace(
    backend: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = tmp_path / "target" / "release" / "sampi"
    daemon.parent.mkdir(parents=True)
    for given in ("target/release/sampi", str(daemon)):
        daemon.write_text(given)
        monkeypatch.setenv("SAMPI_DAEMON", given)
        backend.place_daemon()
        assert (tmp_path / "scripts" / "sampi").read_text() == given
