"""Build backend: maturin, with the daemon in the wheel.

The daemon is built by cargo in release mode, unless `SAMPI_DAEMON` names a program that is built already; a
relative path is one from the workspace, because installers choose where a build backend runs.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import maturin

PROJECT = Path(__file__).resolve().parent.parent
WORKSPACE = PROJECT.parent
SCRIPTS = PROJECT / "wheeldata" / "scripts"

get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_editable


def prepare_metadata_for_build_wheel(directory: str, config: Any = None) -> str:
    """Writes the metadata of the wheel."""
    SCRIPTS.mkdir(parents=True, exist_ok=True)  # maturin wants the folder also when only asked for metadata
    return str(maturin.prepare_metadata_for_build_wheel(directory, config))


def prepare_metadata_for_build_editable(directory: str, config: Any = None) -> str:
    """Writes the metadata of an editable installation."""
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return str(maturin.prepare_metadata_for_build_editable(directory, config))


def build_wheel(directory: str, config: Any = None, metadata: str | None = None) -> str:
    """Builds the wheel."""
    place_daemon()
    return str(maturin.build_wheel(directory, config, metadata))


def build_editable(directory: str, config: Any = None, metadata: str | None = None) -> str:
    """Builds the wheel of an editable installation."""
    place_daemon()
    return str(maturin.build_editable(directory, config, metadata))


def get_requires_for_build_sdist(config: Any = None) -> list[str]:
    """What `build_sdist` needs."""
    return []


def build_sdist(directory: str, config: Any = None) -> str:
    """There is none: the package is built from the workspace, which has the daemon's sources."""
    raise RuntimeError("sampi has no source distribution: install it from its repository (pip install ./client-py)")


def place_daemon() -> None:
    """Puts the daemon where maturin takes it into the wheel."""
    given = os.environ.get("SAMPI_DAEMON")
    daemon = (WORKSPACE / given).resolve() if given else build_daemon()
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    target = SCRIPTS / ("sampi.exe" if os.name == "nt" else "sampi")
    shutil.copyfile(daemon, target)
    target.chmod(target.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def build_daemon() -> Path:
    """Builds the daemon and gives its path."""
    cargo = os.environ.get("CARGO", "cargo")
    arguments = ["build", "--release", "--locked", "--package", "sampi-server", "--bin", "sampi"]
    messages = subprocess.run(
        [cargo, *arguments, "--message-format", "json-render-diagnostics"],
        cwd=WORKSPACE,
        # A wheel may be installed on a machine with an older glibc than this one's.
        env={**os.environ, "SAMPI_BUILD_PORTABLE": "1"},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    return executable(messages)


def executable(messages: str) -> Path:
    """The program among cargo's messages."""
    import json

    for line in messages.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message.get("executable"):
            return Path(message["executable"])
    raise RuntimeError("cargo built no program")
