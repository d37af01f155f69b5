"""Every command of the protocol as a method.

Made from `_async_commands.py` by `python client-py/tools/make_sync.py`: edit that file instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, cast

from . import _native
from ._names import Disposition, QueueMode, StreamingBehavior, ThinkingLevel
from ._options import Image, StrPath, given, prompt_parameters, wire_images


class Commands:
    """One method for each command. With `timeout`, in seconds, a call fails with `TimeoutError` when it is
    not answered in time; without it, it waits as long as it takes."""

    def _call(self, command: str, parameters: dict[str, Any], timeout: float | None) -> Any:
        raise NotImplementedError

    def call(
        self, command: str, parameters: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> Any:
        """Calls a command by its wire name, also one that this version does not know.

        `parameters` have their wire names. A command that is not known gives its `data` as plain JSON.
        """
        return self._call(command, dict(parameters or {}), timeout)

    # Prompts and queues

    def prompt(
        self,
        message: str,
        *,
        images: Iterable[Image] = (),
        streaming_behavior: StreamingBehavior | None = None,
        timeout: float | None = None,
    ) -> Disposition:
        """Submits a prompt and gives what became of it: `started`, `queued` or `handled`.

        While a run is under way a prompt needs `streaming_behavior`, which says how it is queued. See `run`
        and `stream` for the run that follows.
        """
        parameters = prompt_parameters(message, images, streaming_behavior)
        return cast("Disposition", self._call("prompt", parameters, timeout))

    def steer(
        self, message: str, *, images: Iterable[Image] = (), timeout: float | None = None
    ) -> Disposition:
        """Queues a message that is delivered before the next request to the model."""
        parameters = given(message=message, images=wire_images(images))
        return cast("Disposition", self._call("steer", parameters, timeout))

    def follow_up(
        self, message: str, *, images: Iterable[Image] = (), timeout: float | None = None
    ) -> Disposition:
        """Queues a message that is delivered once the agent would stop."""
        parameters = given(message=message, images=wire_images(images))
        return cast("Disposition", self._call("follow_up", parameters, timeout))

    def abort(self, *, timeout: float | None = None) -> None:
        """Stops what is going on. Answered once the session is idle."""
        self._call("abort", {}, timeout)

    def clear_queue(self, *, timeout: float | None = None) -> _native.ClearedQueue:
        """Takes all queued messages out and gives their texts back."""
        return cast("_native.ClearedQueue", self._call("clear_queue", {}, timeout))

    def set_steering_mode(self, mode: QueueMode, *, timeout: float | None = None) -> None:
        """Sets how steering messages are delivered: all at once, or one at a time."""
        self._call("set_steering_mode", {"mode": mode}, timeout)

    def set_follow_up_mode(self, mode: QueueMode, *, timeout: float | None = None) -> None:
        """Sets how follow-up messages are delivered: all at once, or one at a time."""
        self._call("set_follow_up_mode", {"mode": mode}, timeout)

    # Models and thinking

    def set_model(
        self, provider: str, model_id: str, *, timeout: float | None = None
    ) -> _native.Model:
        """Chooses a model."""
        parameters = {"provider": provider, "modelId": model_id}
        return cast("_native.Model", self._call("set_model", parameters, timeout))

    def cycle_model(self, *, timeout: float | None = None) -> _native.CycledModel | None:
        """Chooses the next model; `None` when there is no other."""
        return cast("_native.CycledModel | None", self._call("cycle_model", {}, timeout))

    def get_available_models(self, *, timeout: float | None = None) -> tuple[_native.Model, ...]:
        """Lists the models whose provider has credentials."""
        return cast("tuple[_native.Model, ...]", self._call("get_available_models", {}, timeout))

    def set_thinking_level(self, level: ThinkingLevel, *, timeout: float | None = None) -> None:
        """Sets the thinking level; one that the model does not support is clamped."""
        self._call("set_thinking_level", {"level": level}, timeout)

    def cycle_thinking_level(self, *, timeout: float | None = None) -> ThinkingLevel | None:
        """Chooses the next thinking level; `None` when the model cannot think."""
        return cast("ThinkingLevel | None", self._call("cycle_thinking_level", {}, timeout))

    def get_available_thinking_levels(
        self, *, timeout: float | None = None
    ) -> tuple[ThinkingLevel, ...]:
        """Lists the thinking levels that the model supports."""
        levels = self._call("get_available_thinking_levels", {}, timeout)
        return cast("tuple[ThinkingLevel, ...]", levels)

    # Compaction, retry, shell commands

    def compact(
        self, instructions: str | None = None, *, timeout: float | None = None
    ) -> _native.CompactionResult:
        """Summarises the older part of the conversation. `instructions` say what the summary should pay
        attention to. Takes as long as the model does."""
        parameters = given(customInstructions=instructions)
        return cast("_native.CompactionResult", self._call("compact", parameters, timeout))

    def set_auto_compaction(self, enabled: bool, *, timeout: float | None = None) -> None:
        """Turns automatic compaction on or off."""
        self._call("set_auto_compaction", {"enabled": enabled}, timeout)

    def set_auto_retry(self, enabled: bool, *, timeout: float | None = None) -> None:
        """Turns automatic retry on or off."""
        self._call("set_auto_retry", {"enabled": enabled}, timeout)

    def abort_retry(self, *, timeout: float | None = None) -> None:
        """Ends the wait before a retry, and with it the retrying."""
        self._call("abort_retry", {}, timeout)

    def bash(
        self, command: str, *, exclude_from_context: bool = False, timeout: float | None = None
    ) -> _native.BashResult:
        """Runs a shell command and adds its output to the conversation.

        With `exclude_from_context` the output is kept in the session and away from the model. What the
        command writes meanwhile comes in `BashExecutionUpdate` events.
        """
        parameters = given(command=command, excludeFromContext=exclude_from_context or None)
        return cast("_native.BashResult", self._call("bash", parameters, timeout))

    def abort_bash(self, *, timeout: float | None = None) -> None:
        """Stops the shell commands that are running."""
        self._call("abort_bash", {}, timeout)

    # Sessions

    def new_session(
        self, *, parent_session: StrPath | None = None, timeout: float | None = None
    ) -> bool:
        """Starts an empty session. False when an extension prevented it.

        `parent_session` is the file of the session that this one follows.
        """
        parameters = given(parentSession=None if parent_session is None else os.fspath(parent_session))
        return cast("bool", self._call("new_session", parameters, timeout))

    def switch_session(self, session_path: StrPath, *, timeout: float | None = None) -> bool:
        """Opens another session file. False when an extension prevented it."""
        parameters = {"sessionPath": os.fspath(session_path)}
        return cast("bool", self._call("switch_session", parameters, timeout))

    def fork(self, entry_id: str, *, timeout: float | None = None) -> _native.ForkResult:
        """Makes a new session from what came before one of the user's messages; see `get_fork_messages`."""
        return cast("_native.ForkResult", self._call("fork", {"entryId": entry_id}, timeout))

    def clone(self, *, timeout: float | None = None) -> bool:
        """Makes a new session from the whole active branch. False when an extension prevented it."""
        return cast("bool", self._call("clone", {}, timeout))

    def set_session_name(self, name: str, *, timeout: float | None = None) -> None:
        """Sets the session's display name."""
        self._call("set_session_name", {"name": name}, timeout)

    def export_html(
        self, output_path: StrPath | None = None, *, timeout: float | None = None
    ) -> str:
        """Writes the session as an HTML file and gives its path."""
        parameters = given(outputPath=None if output_path is None else os.fspath(output_path))
        return cast("str", self._call("export_html", parameters, timeout))

    def navigate_tree(
        self,
        target_id: str,
        *,
        summarize: bool = False,
        instructions: str | None = None,
        label: str | None = None,
        timeout: float | None = None,
    ) -> _native.Navigated:
        """Moves to another entry of the session's tree; what comes next continues there.

        A user message means the point before it, so that it can be said anew. With `summarize` the model
        summarises the branch that is left, and `instructions` say what it should pay attention to. `label`
        marks the summary, or the target when there is none. Sampi only; Pi does not know it.
        """
        parameters = given(
            targetId=target_id, summarize=summarize or None, customInstructions=instructions, label=label
        )
        return cast("_native.Navigated", self._call("navigate_tree", parameters, timeout))

    def set_label(
        self, entry_id: str, label: str | None, *, timeout: float | None = None
    ) -> _native.LabelEntry:
        """Marks an entry; `None` takes its mark away. Sampi only; Pi does not know it."""
        parameters = given(entryId=entry_id, label=label)
        return cast("_native.LabelEntry", self._call("set_label", parameters, timeout))

    def list_sessions(
        self,
        *,
        cwd: StrPath | None = None,
        search: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
    ) -> _native.SessionList:
        """Lists sessions on disk, the one that was appended to last first.

        With `cwd` only those of this working directory, with `search` only those with this text in their
        name, first message, id or working directory. `cursor` is an earlier `next_cursor`, to go on from
        there. Sampi only; Pi does not know it.
        """
        directory = None if cwd is None else os.fspath(cwd)
        parameters = given(cwd=directory, search=search, limit=limit, cursor=cursor)
        return cast("_native.SessionList", self._call("list_sessions", parameters, timeout))

    def delete_session(self, session_path: StrPath, *, timeout: float | None = None) -> None:
        """Deletes the file of a session that no process has open. Sampi only; Pi does not know it."""
        self._call("delete_session", {"sessionPath": os.fspath(session_path)}, timeout)

    # Questions

    def get_state(self, *, timeout: float | None = None) -> _native.SessionState:
        """Asks for the session's state."""
        return cast("_native.SessionState", self._call("get_state", {}, timeout))

    def get_messages(self, *, timeout: float | None = None) -> tuple[_native.Message, ...]:
        """Asks for the messages of the context."""
        return cast("tuple[_native.Message, ...]", self._call("get_messages", {}, timeout))

    def get_session_stats(self, *, timeout: float | None = None) -> _native.SessionStats:
        """Asks for token and cost totals."""
        return cast("_native.SessionStats", self._call("get_session_stats", {}, timeout))

    def get_fork_messages(self, *, timeout: float | None = None) -> tuple[_native.ForkMessage, ...]:
        """Asks for the messages that `fork` accepts."""
        return cast("tuple[_native.ForkMessage, ...]", self._call("get_fork_messages", {}, timeout))

    def get_entries(
        self, *, since: str | None = None, timeout: float | None = None
    ) -> _native.Entries:
        """Asks for the session's entries in the order in which they were appended.

        With `since`, an entry's id, only for those that came after it.
        """
        return cast("_native.Entries", self._call("get_entries", given(since=since), timeout))

    def get_tree(self, *, timeout: float | None = None) -> _native.SessionTree:
        """Asks for the session as a tree, of any depth."""
        return cast("_native.SessionTree", self._call("get_tree", {}, timeout))

    def get_last_assistant_text(self, *, timeout: float | None = None) -> str | None:
        """Asks for the text of the last assistant message that has any."""
        return cast("str | None", self._call("get_last_assistant_text", {}, timeout))

    def get_commands(self, *, timeout: float | None = None) -> tuple[_native.SlashCommand, ...]:
        """Asks for the commands that a prompt can name with a slash."""
        return cast("tuple[_native.SlashCommand, ...]", self._call("get_commands", {}, timeout))
