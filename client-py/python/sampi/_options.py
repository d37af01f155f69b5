"""Options and parameters that the two clients share."""

from __future__ import annotations

import base64
import mimetypes
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, Union

from . import _native
from ._locate import find_daemon
from ._names import StreamingBehavior, ThinkingLevel

__all__ = ["EventListener", "Image", "Session", "SessionChoice", "StderrSink", "StopDelays"]

StrPath = Union[str, "os.PathLike[str]"]

StderrSink = Union[Literal["keep", "inherit"], Callable[[str], object]]
"""Where the daemon's stderr goes: nowhere but into errors, to ours, or line by line to a function."""


EventListener = Callable[[_native.Event], object]
"""A function that is told what happens, from the daemon's first record on."""


@dataclass(frozen=True)
class Session:
    """Which session the daemon opens: one of the class methods, or the strings `new`, `memory`, `continue`."""

    kind: Literal["open", "id", "fork"]
    value: str

    @classmethod
    def open(cls, session: StrPath) -> Session:
        """The session with this path or id."""
        return cls("open", os.fspath(session))

    @classmethod
    def id(cls, session_id: str) -> Session:
        """The session with exactly this id in the project, made if it is missing."""
        return cls("id", session_id)

    @classmethod
    def fork(cls, session: StrPath) -> Session:
        """A new session that starts as a copy of the one with this path or id."""
        return cls("fork", os.fspath(session))


SessionChoice = Union[Literal["new", "memory", "continue"], Session]
"""`new` is a session in a file, `memory` one that is never written, `continue` the folder's latest."""


@dataclass(frozen=True)
class StopDelays:
    """How patiently a daemon is stopped, in seconds: its input is closed, then SIGTERM, then SIGKILL."""

    after_close: float = 5.0
    after_term: float = 2.0
    after_kill: float = 2.0


Image = Union[_native.ImageContent, bytes, bytearray, StrPath]
"""An image of a prompt: a path, the bytes of a PNG, JPEG, GIF or WebP file, or an `ImageContent`."""

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


def wire_images(images: Iterable[Image]) -> list[dict[str, Any]]:
    """Images as a prompt carries them."""
    return [_wire_image(image) for image in images]


def _wire_image(image: Image) -> dict[str, Any]:
    if isinstance(image, _native.ImageContent):
        return {"type": "image", "data": image.data, "mimeType": image.mime_type}
    if isinstance(image, (bytes, bytearray)):
        data, guessed = bytes(image), None
    else:
        path = Path(image)
        data, guessed = path.read_bytes(), mimetypes.guess_type(path.name)[0]
    mime_type = _sniff(data) or guessed
    if mime_type is None or not mime_type.startswith("image/"):
        raise ValueError("this is no image of a known kind; give an ImageContent with its media type")
    return {"type": "image", "data": base64.b64encode(data).decode("ascii"), "mimeType": mime_type}


def _sniff(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)


def prompt_parameters(
    message: str, images: Iterable[Image], streaming_behavior: StreamingBehavior | None
) -> dict[str, Any]:
    """The parameters of `prompt`."""
    return given(message=message, images=wire_images(images), streamingBehavior=streaming_behavior)


def given(**parameters: Any) -> dict[str, Any]:
    """Parameters without those that were left out."""
    return {name: value for name, value in parameters.items() if value is not None}


class SpawnOptions(TypedDict):
    """What `_native.Core.spawn` takes."""

    program: StrPath
    program_args: list[str]
    cwd: StrPath | None
    env: dict[str, str | None]
    provider: str | None
    model: str | None
    thinking: str | None
    session: tuple[str, str | None]
    session_dir: StrPath | None
    session_name: str | None
    args: list[str]
    frame_limit: int | None
    stderr: str
    asks: bool
    listens: bool


def spawn_options(
    *,
    program: StrPath | None,
    program_args: Sequence[StrPath],
    cwd: StrPath | None,
    env: Mapping[str, str | None] | None,
    provider: str | None,
    model: str | None,
    thinking: ThinkingLevel | None,
    session: SessionChoice,
    session_dir: StrPath | None,
    session_name: str | None,
    args: Sequence[str],
    frame_limit: int | None,
    stderr: StderrSink,
    asks: bool,
    listens: bool,
) -> SpawnOptions:
    """The options of a client as the native half takes them."""
    return SpawnOptions(
        program=find_daemon() if program is None else program,
        program_args=[os.fspath(arg) for arg in program_args],
        cwd=cwd,
        env=dict(env or {}),
        provider=provider,
        model=model,
        thinking=thinking,
        session=(session.kind, session.value) if isinstance(session, Session) else (session, None),
        session_dir=session_dir,
        session_name=session_name,
        args=list(args),
        frame_limit=frame_limit,
        stderr=stderr if isinstance(stderr, str) else "lines",
        asks=asks,
        listens=listens,
    )
