"""Where the daemon is."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sysconfig
from pathlib import Path

from ._errors import ProcessError

_NAME = "sampi.exe" if os.name == "nt" else "sampi"


def find_daemon() -> Path:
    """The daemon's program: `SAMPI_BIN`, else the one this package was installed with, else on `PATH`."""
    named = os.environ.get("SAMPI_BIN")
    if named:
        return Path(named)
    installed = _installed()
    if installed is not None:
        return installed
    found = shutil.which(_NAME)
    if found is not None:
        return Path(found)
    raise ProcessError(
        "no agent program found: SAMPI_BIN is not set, this installation has no `sampi`, and it is not on PATH"
    )


def _installed() -> Path | None:
    """The program that came in the package's own wheel, wherever the installer put it."""
    candidates: list[Path] = []
    try:
        files = importlib.metadata.files("sampi") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == _NAME and file.parent.name.lower() in ("bin", "scripts"):
            candidates.append(Path(str(file.locate())).resolve())
    candidates.append(Path(sysconfig.get_path("scripts")) / _NAME)
    return next((path for path in candidates if os.access(path, os.X_OK) and path.is_file()), None)
