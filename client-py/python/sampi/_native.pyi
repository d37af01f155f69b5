"""The native half of the package: the client itself, and the classes of events and results."""

from os import PathLike
from typing import Any, ClassVar, Literal, final

from typing_extensions import disjoint_base

from ._errors import ProtocolError
from ._names import CompactionReason, Disposition, QueueMode, StopReason, ThinkingLevel

COMMANDS: list[str]
PI_VERSION: str

def _rebuild(name: str, text: str) -> Any: ...
def _shut_down() -> None: ...

@final
class Core:
    """One client of one daemon."""
    @staticmethod
    def spawn(
        *,
        program: str | PathLike[str],
        program_args: list[str],
        cwd: str | PathLike[str] | None,
        env: dict[str, str | None],
        provider: str | None,
        model: str | None,
        thinking: str | None,
        session: tuple[str, str | None],
        session_dir: str | PathLike[str] | None,
        session_name: str | None,
        args: list[str],
        frame_limit: int | None,
        stderr: str,
        asks: bool,
        listens: bool,
    ) -> tuple[Core, Callbacks, Callbacks]: ...
    def call(self, name: str, parameters: dict[str, Any], timeout: float | None) -> Call: ...
    def run(self, prompt: dict[str, Any], timeout: float | None) -> Call: ...
    def start_run(self, prompt: dict[str, Any], capacity: int, timeout: float | None) -> Call: ...
    def subscribe(self, capacity: int) -> EventStream: ...
    def wait_for_idle(self, timeout: float | None) -> Call: ...
    def stop(self, after_close: float, after_term: float, after_kill: float) -> Call: ...
    def restart(self) -> Call: ...
    @property
    def process_id(self) -> int | None: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def is_alive(self) -> bool: ...
    @property
    def pending_calls(self) -> int: ...

@final
class Call:
    """A call. It is sent by `wait` or `start`, once."""
    def wait(self) -> Any: ...
    def start(self, bridge: Bridge, token: int) -> Wait: ...

@final
class Wait:
    """A call on its way."""
    def cancel(self) -> None: ...

@final
class Bridge:
    """What one event loop waits for."""
    def __new__(cls) -> Bridge: ...
    def fileno(self) -> int: ...
    def token(self) -> int: ...
    def drain(self) -> list[tuple[int, Any, BaseException | None]]: ...

@final
class EventStream:
    """A bounded stream of events: all of them, or those of one run."""
    def __iter__(self) -> EventStream: ...
    def __next__(self) -> Event: ...
    def take(self, limit: int) -> list[Event] | None: ...
    def arm(self, bridge: Bridge, token: int) -> bool: ...
    @property
    def disposition(self) -> Disposition | None: ...
    @property
    def over(self) -> bool: ...
    def outcome(self, timeout: float | None = None) -> Call: ...

@final
class Callbacks:
    """What Python functions are asked or told: dialogs, lines of stderr, events."""
    def next(self) -> PendingDialog | str | Event | ProtocolError | None: ...
    def take(self, limit: int) -> list[PendingDialog | str | Event | ProtocolError] | None: ...
    def arm(self, bridge: Bridge, token: int) -> bool: ...

@final
class PendingDialog:
    """A dialog that waits for its answer. Dropping it dismisses the dialog."""
    @property
    def dialog(self) -> Dialog: ...
    def answer(self, value: str | bool | None) -> None: ...

@disjoint_base
class Event:
    """Something that happened in the session. Match on the subclasses."""
    __match_args__: ClassVar[tuple[()]]
    @property
    def kind(self) -> str:
        """The event's name on the wire, such as `tool_execution_start`."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> Event:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class AgentStart(Event):
    """The agent began to work."""
    __match_args__: ClassVar[tuple[()]]

@final
class AgentEnd(Event):
    """The agent stopped. It may go on by itself: only `AgentSettled` says that it does not."""
    __match_args__: ClassVar[tuple[Literal["messages"], Literal["will_retry"]]]
    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of this run, in order."""
    @property
    def will_retry(self) -> bool:
        """True when a retry follows."""

@final
class AgentSettled(Event):
    """Nothing more happens by itself. The last event of every run."""
    __match_args__: ClassVar[tuple[Literal["aborted"]]]
    @property
    def aborted(self) -> bool:
        """True when the run was aborted."""

@final
class TurnStart(Event):
    """A turn began: one answer of the model and the tool calls in it."""
    __match_args__: ClassVar[tuple[()]]

@final
class TurnEnd(Event):
    """A turn ended."""
    __match_args__: ClassVar[tuple[Literal["message"], Literal["tool_results"]]]
    @property
    def message(self) -> Message:
        """The assistant message."""
    @property
    def tool_results(self) -> tuple[Message, ...]:
        """The results of its tool calls."""

@final
class MessageStart(Event):
    """A message began. An assistant message comes with the stop reason `pending`."""
    __match_args__: ClassVar[tuple[Literal["message"]]]
    @property
    def message(self) -> Message:
        """The message so far."""

@final
class MessageEnd(Event):
    """A message ended."""
    __match_args__: ClassVar[tuple[Literal["message"]]]
    @property
    def message(self) -> Message:
        """The whole message."""

@final
class ToolExecutionStart(Event):
    """A tool call is about to run."""
    __match_args__: ClassVar[tuple[Literal["tool_name"], Literal["args"], Literal["tool_call_id"]]]
    @property
    def tool_name(self) -> str:
        """The tool's name."""
    @property
    def args(self) -> dict[str, Any]:
        """The arguments, a dict of the caller's own."""
    @property
    def tool_call_id(self) -> str:
        """The call's id."""

@final
class ToolExecutionUpdate(Event):
    """A tool reports what it has so far."""
    __match_args__: ClassVar[tuple[Literal["tool_name"], Literal["partial_result"], Literal["args"], Literal["tool_call_id"]]]
    @property
    def tool_name(self) -> str:
        """The tool's name."""
    @property
    def partial_result(self) -> ToolOutput:
        """The result so far."""
    @property
    def args(self) -> dict[str, Any]:
        """The arguments, a dict of the caller's own."""
    @property
    def tool_call_id(self) -> str:
        """The call's id."""

@final
class ToolExecutionEnd(Event):
    """A tool call is done."""
    __match_args__: ClassVar[tuple[Literal["tool_name"], Literal["result"], Literal["is_error"], Literal["duration_ms"], Literal["tool_call_id"]]]
    @property
    def tool_name(self) -> str:
        """The tool's name."""
    @property
    def result(self) -> ToolOutput:
        """The result."""
    @property
    def is_error(self) -> bool:
        """True when the tool failed."""
    @property
    def duration_ms(self) -> int | None:
        """How long it ran, in milliseconds; `None` when it did not run."""
    @property
    def tool_call_id(self) -> str:
        """The call's id."""

@final
class QueueUpdate(Event):
    """The queues changed."""
    __match_args__: ClassVar[tuple[Literal["steering"], Literal["follow_up"]]]
    @property
    def steering(self) -> tuple[str, ...]:
        """The texts of all steering messages that wait, oldest first."""
    @property
    def follow_up(self) -> tuple[str, ...]:
        """The texts of all follow-up messages that wait, oldest first."""

@final
class EntryAppended(Event):
    """An entry other than a message was appended to the session."""
    __match_args__: ClassVar[tuple[Literal["entry"]]]
    @property
    def entry(self) -> Entry:
        """The entry."""

@final
class SessionInfoChanged(Event):
    """The session's display name changed."""
    __match_args__: ClassVar[tuple[Literal["name"]]]
    @property
    def name(self) -> str | None:
        """The name; `None` when it was taken away."""

@final
class ThinkingLevelChanged(Event):
    """The thinking level changed."""
    __match_args__: ClassVar[tuple[Literal["level"]]]
    @property
    def level(self) -> ThinkingLevel:
        """The level that is now in force."""

@final
class CompactionStart(Event):
    """A compaction began."""
    __match_args__: ClassVar[tuple[Literal["reason"]]]
    @property
    def reason(self) -> CompactionReason:
        """Why: `manual`, `threshold` or `overflow`."""

@final
class CompactionEnd(Event):
    """A compaction ended."""
    __match_args__: ClassVar[tuple[Literal["reason"], Literal["result"], Literal["aborted"], Literal["will_retry"], Literal["error_message"]]]
    @property
    def reason(self) -> CompactionReason:
        """Why it ran."""
    @property
    def result(self) -> CompactionResult | None:
        """What it made; `None` when it failed or was stopped."""
    @property
    def aborted(self) -> bool:
        """True when it was stopped."""
    @property
    def will_retry(self) -> bool:
        """True when the request that was too long is sent again."""
    @property
    def error_message(self) -> str | None:
        """What went wrong."""

@final
class AutoRetryStart(Event):
    """A failed request is sent again after a delay."""
    __match_args__: ClassVar[tuple[Literal["attempt"], Literal["max_attempts"], Literal["delay_ms"], Literal["error_message"]]]
    @property
    def attempt(self) -> int:
        """The attempt that follows, from 1."""
    @property
    def max_attempts(self) -> int:
        """How many attempts there are at most."""
    @property
    def delay_ms(self) -> int:
        """The delay in milliseconds."""
    @property
    def error_message(self) -> str:
        """Why the request failed."""

@final
class AutoRetryEnd(Event):
    """The retrying ended."""
    __match_args__: ClassVar[tuple[Literal["success"], Literal["attempt"], Literal["final_error"]]]
    @property
    def success(self) -> bool:
        """True when an attempt succeeded."""
    @property
    def attempt(self) -> int:
        """The last attempt."""
    @property
    def final_error(self) -> str | None:
        """Why the last attempt failed."""

@final
class SummarizationRetryScheduled(Event):
    """A failed summary is asked for again after a delay."""
    __match_args__: ClassVar[tuple[Literal["attempt"], Literal["max_attempts"], Literal["delay_ms"], Literal["error_message"]]]
    @property
    def attempt(self) -> int:
        """The attempt that follows, from 1."""
    @property
    def max_attempts(self) -> int:
        """How many attempts there are at most."""
    @property
    def delay_ms(self) -> int:
        """The delay in milliseconds."""
    @property
    def error_message(self) -> str:
        """Why the request failed."""

@final
class SummarizationRetryAttemptStart(Event):
    """A summary is asked for again."""
    __match_args__: ClassVar[tuple[Literal["source"], Literal["reason"]]]
    @property
    def source(self) -> str:
        """`compaction` or `branchSummary`."""
    @property
    def reason(self) -> CompactionReason | None:
        """Why the compaction runs; `None` for a branch summary."""

@final
class SummarizationRetryFinished(Event):
    """The retrying of a summary ended."""
    __match_args__: ClassVar[tuple[()]]

@final
class BashExecutionUpdate(Event):
    """A shell command that the user runs wrote something."""
    __match_args__: ClassVar[tuple[Literal["text"], Literal["id"]]]
    @property
    def text(self) -> str:
        """What it wrote."""
    @property
    def id(self) -> Any:
        """The id of the `bash` command."""

@final
class SessionDiagnostic(Event):
    """Something is wrong with the session's file, and what became of it. Sampi only."""
    __match_args__: ClassVar[tuple[Literal["message"], Literal["path"], Literal["line"]]]
    @property
    def message(self) -> str:
        """What is wrong, and what became of it."""
    @property
    def path(self) -> str:
        """The file."""
    @property
    def line(self) -> int | None:
        """The line, from 1; `None` when it concerns the file as a whole."""

@final
class ExtensionError(Event):
    """A handler of an extension failed."""
    __match_args__: ClassVar[tuple[Literal["extension_path"], Literal["event"], Literal["error"]]]
    @property
    def extension_path(self) -> str:
        """The extension's path."""
    @property
    def event(self) -> str:
        """The event that it handled."""
    @property
    def error(self) -> str:
        """What went wrong."""

@final
class UnknownEvent(Event):
    """An event of a kind that this version does not know. `kind` has its name and `raw()` all of it."""
    __match_args__: ClassVar[tuple[Literal["kind"]]]
    @property
    def kind(self) -> str:
        """The event's name on the wire."""

class MessageUpdate(Event):
    """The assistant message grew. Match on the subclasses; a plain `MessageUpdate` is of a kind that this version does not know."""
    __match_args__: ClassVar[tuple[()]]
    @property
    def usage(self) -> Usage:
        """The usage so far, as the provider reports it."""

@final
class StreamStart(MessageUpdate):
    """The provider's stream began."""
    __match_args__: ClassVar[tuple[()]]

@final
class TextStart(MessageUpdate):
    """A text block began."""
    __match_args__: ClassVar[tuple[Literal["content_index"]]]
    @property
    def content_index(self) -> int:
        """The block's place in the message's content."""

@final
class TextDelta(MessageUpdate):
    """Text was added."""
    __match_args__: ClassVar[tuple[Literal["text"], Literal["content_index"]]]
    @property
    def text(self) -> str:
        """What was added."""
    @property
    def content_index(self) -> int:
        """The block's place in the message's content."""

@final
class TextEnd(MessageUpdate):
    """A text block ended."""
    __match_args__: ClassVar[tuple[Literal["text"], Literal["content_index"]]]
    @property
    def text(self) -> str:
        """The whole text of the block."""
    @property
    def content_index(self) -> int:
        """The block's place in the message's content."""

@final
class ThinkingStart(MessageUpdate):
    """A thinking block began."""
    __match_args__: ClassVar[tuple[Literal["content_index"]]]
    @property
    def content_index(self) -> int:
        """The block's place in the message's content."""

@final
class ThinkingDelta(MessageUpdate):
    """Thinking was added."""
    __match_args__: ClassVar[tuple[Literal["text"], Literal["content_index"]]]
    @property
    def text(self) -> str:
        """What was added."""
    @property
    def content_index(self) -> int:
        """The block's place in the message's content."""

@final
class ThinkingEnd(MessageUpdate):
    """A thinking block ended."""
    __match_args__: ClassVar[tuple[Literal["text"], Literal["content_index"]]]
    @property
    def text(self) -> str:
        """The whole text of the block."""
    @property
    def content_index(self) -> int:
        """The block's place in the message's content."""

@final
class ToolCallStart(MessageUpdate):
    """A tool call began."""
    __match_args__: ClassVar[tuple[Literal["tool_name"], Literal["tool_call_id"], Literal["content_index"]]]
    @property
    def tool_name(self) -> str:
        """The tool's name."""
    @property
    def tool_call_id(self) -> str:
        """The call's id."""
    @property
    def content_index(self) -> int:
        """The block's place in the message's content."""

@final
class ToolCallDelta(MessageUpdate):
    """Text was added to a tool call's arguments."""
    __match_args__: ClassVar[tuple[Literal["text"], Literal["content_index"]]]
    @property
    def text(self) -> str:
        """What was added, a piece of JSON."""
    @property
    def content_index(self) -> int:
        """The block's place in the message's content."""

@final
class ToolCallEnd(MessageUpdate):
    """A tool call is complete."""
    __match_args__: ClassVar[tuple[Literal["tool_call"], Literal["content_index"]]]
    @property
    def tool_call(self) -> Block:
        """The whole call."""
    @property
    def content_index(self) -> int:
        """The block's place in the message's content."""

@final
class StreamDone(MessageUpdate):
    """The provider's stream ended well."""
    __match_args__: ClassVar[tuple[Literal["message"], Literal["reason"]]]
    @property
    def message(self) -> AssistantMessage:
        """The whole message."""
    @property
    def reason(self) -> StopReason:
        """Why it ended."""

@final
class StreamError(MessageUpdate):
    """The provider's stream failed or was aborted."""
    __match_args__: ClassVar[tuple[Literal["message"], Literal["reason"]]]
    @property
    def message(self) -> AssistantMessage:
        """What there is of the message."""
    @property
    def reason(self) -> StopReason:
        """`error` or `aborted`."""

@disjoint_base
class UiEvent(Event):
    """An extension wants something shown and expects no answer. Match on the subclasses."""
    __match_args__: ClassVar[tuple[()]]

@final
class Notify(UiEvent):
    """Show a message."""
    __match_args__: ClassVar[tuple[Literal["message"], Literal["level"]]]
    @property
    def message(self) -> str:
        """The message."""
    @property
    def level(self) -> Literal["info", "warning", "error"]:
        """How grave it is: `info`, `warning` or `error`."""

@final
class SetStatus(UiEvent):
    """Set or clear a line of status."""
    __match_args__: ClassVar[tuple[Literal["key"], Literal["text"]]]
    @property
    def key(self) -> str:
        """Which line."""
    @property
    def text(self) -> str | None:
        """The text; `None` clears the line."""

@final
class SetWidget(UiEvent):
    """Set or clear a widget."""
    __match_args__: ClassVar[tuple[Literal["key"], Literal["lines"], Literal["placement"]]]
    @property
    def key(self) -> str:
        """Which widget."""
    @property
    def lines(self) -> tuple[str, ...] | None:
        """The lines; `None` clears the widget."""
    @property
    def placement(self) -> Literal["aboveEditor", "belowEditor"]:
        """Where to show it: `aboveEditor` or `belowEditor`."""

@final
class SetTitle(UiEvent):
    """Set the window's title."""
    __match_args__: ClassVar[tuple[Literal["title"]]]
    @property
    def title(self) -> str:
        """The title."""

@final
class SetEditorText(UiEvent):
    """Put text into the host's editor."""
    __match_args__: ClassVar[tuple[Literal["text"]]]
    @property
    def text(self) -> str:
        """The text."""

@final
class Lagged(Event):
    """The reader was too slow: events were dropped here, the oldest ones."""
    __match_args__: ClassVar[tuple[Literal["missed"]]]
    @property
    def missed(self) -> int:
        """How many were dropped."""

@disjoint_base
class Message:
    """A message of the conversation. Match on the subclasses."""
    __match_args__: ClassVar[tuple[()]]
    @property
    def role(self) -> str:
        """The role on the wire, such as `assistant`."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> Message:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class SystemMessage(Message):
    """Instructions and tool declarations at one point of the transcript."""
    __match_args__: ClassVar[tuple[Literal["text"], Literal["sections"], Literal["tools_added"], Literal["tools_removed"], Literal["timestamp"]]]
    @property
    def text(self) -> str:
        """Instruction text."""
    @property
    def sections(self) -> dict[str, str | None] | None:
        """Named sections, each text or `None`."""
    @property
    def tools_added(self) -> tuple[ToolDefinition, ...] | None:
        """Tools that become available here."""
    @property
    def tools_removed(self) -> tuple[str, ...] | None:
        """The names of tools that stop being available here."""
    @property
    def timestamp(self) -> int:
        """Unix milliseconds."""

@final
class UserMessage(Message):
    """What the user said."""
    __match_args__: ClassVar[tuple[Literal["content"], Literal["text"], Literal["timestamp"]]]
    @property
    def content(self) -> tuple[Block, ...]:
        """Text and images."""
    @property
    def text(self) -> str:
        """The text of all text blocks."""
    @property
    def timestamp(self) -> int:
        """Unix milliseconds."""

@final
class AssistantMessage(Message):
    """What the model answered."""
    __match_args__: ClassVar[tuple[Literal["content"], Literal["text"], Literal["tool_calls"], Literal["stop_reason"], Literal["usage"], Literal["provider"], Literal["model"], Literal["api"], Literal["error_message"], Literal["timestamp"], Literal["duration_ms"], Literal["response_id"], Literal["response_model"], Literal["raw_stop_reason"], Literal["thinking_level"]]]
    @property
    def content(self) -> tuple[Block, ...]:
        """Text, thinking and tool calls."""
    @property
    def text(self) -> str:
        """The text of all text blocks."""
    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
    @property
    def stop_reason(self) -> StopReason:
        """Why the answer ended."""
    @property
    def usage(self) -> Usage:
        """Tokens and cost."""
    @property
    def provider(self) -> str:
        """The provider's id."""
    @property
    def model(self) -> str:
        """The model's id."""
    @property
    def api(self) -> str:
        """The API that was spoken."""
    @property
    def error_message(self) -> str | None:
        """What went wrong, for `error` and `aborted`."""
    @property
    def timestamp(self) -> int:
        """When the request started, Unix milliseconds."""
    @property
    def duration_ms(self) -> int | None:
        """Milliseconds from `timestamp` to the end of the response."""
    @property
    def response_id(self) -> str | None:
        """The provider's id of the response."""
    @property
    def response_model(self) -> str | None:
        """The model that answered, when it is not the one that was asked."""
    @property
    def raw_stop_reason(self) -> str | None:
        """The provider's own stop reason."""
    @property
    def thinking_level(self) -> str | None:
        """The thinking level that was asked for."""

@final
class ToolResultMessage(Message):
    """What a tool gave back."""
    __match_args__: ClassVar[tuple[Literal["content"], Literal["tool_name"], Literal["text"], Literal["is_error"], Literal["tool_call_id"], Literal["details"], Literal["usage"], Literal["timestamp"], Literal["duration_ms"]]]
    @property
    def content(self) -> tuple[Block, ...]:
        """Text and images for the model."""
    @property
    def tool_name(self) -> str:
        """The tool's name."""
    @property
    def text(self) -> str:
        """The text of all text blocks."""
    @property
    def is_error(self) -> bool:
        """True when the tool failed."""
    @property
    def tool_call_id(self) -> str:
        """The call that this answers."""
    @property
    def details(self) -> Any:
        """Details for people and hosts, specific to the tool."""
    @property
    def usage(self) -> Usage | None:
        """Usage of model work that the tool did itself."""
    @property
    def timestamp(self) -> int:
        """When the result was made, Unix milliseconds."""
    @property
    def duration_ms(self) -> int | None:
        """How long the tool ran, in milliseconds."""

@final
class BashExecutionMessage(Message):
    """A shell command that the user ran directly, and its output."""
    __match_args__: ClassVar[tuple[Literal["command"], Literal["output"], Literal["exit_code"], Literal["cancelled"], Literal["truncated"], Literal["full_output_path"], Literal["exclude_from_context"], Literal["timestamp"]]]
    @property
    def command(self) -> str:
        """The command."""
    @property
    def output(self) -> str:
        """Stdout and stderr together, possibly cut."""
    @property
    def exit_code(self) -> int | None:
        """The exit code; `None` when the command was cancelled."""
    @property
    def cancelled(self) -> bool:
        """True when the command was stopped."""
    @property
    def truncated(self) -> bool:
        """True when `output` is not the whole output."""
    @property
    def full_output_path(self) -> str | None:
        """The file that has the whole output."""
    @property
    def exclude_from_context(self) -> bool:
        """True when the model must not see it."""
    @property
    def timestamp(self) -> int:
        """Unix milliseconds."""

@final
class CustomMessage(Message):
    """A message of an extension; the model sees it as the user's."""
    __match_args__: ClassVar[tuple[Literal["content"], Literal["custom_type"], Literal["text"], Literal["display"], Literal["details"], Literal["timestamp"]]]
    @property
    def content(self) -> tuple[Block, ...]:
        """Text and images for the model."""
    @property
    def custom_type(self) -> str:
        """The extension's name for this kind of message."""
    @property
    def text(self) -> str:
        """The text of all text blocks."""
    @property
    def display(self) -> bool:
        """True when people should see it."""
    @property
    def details(self) -> Any:
        """Details for people and hosts."""
    @property
    def timestamp(self) -> int:
        """Unix milliseconds."""

@final
class BranchSummaryMessage(Message):
    """The summary of a branch that was left."""
    __match_args__: ClassVar[tuple[Literal["summary"], Literal["from_id"], Literal["timestamp"]]]
    @property
    def summary(self) -> str:
        """The summary."""
    @property
    def from_id(self) -> str | None:
        """The leaf of the branch that was left."""
    @property
    def timestamp(self) -> int:
        """Unix milliseconds."""

@final
class CompactionSummaryMessage(Message):
    """The summary of what was compacted."""
    __match_args__: ClassVar[tuple[Literal["summary"], Literal["tokens_before"], Literal["timestamp"]]]
    @property
    def summary(self) -> str:
        """The summary."""
    @property
    def tokens_before(self) -> int:
        """How many tokens the context had before."""
    @property
    def timestamp(self) -> int:
        """Unix milliseconds."""

@final
class UnknownMessage(Message):
    """A message of a role that this version does not know. `raw()` has all of it."""
    __match_args__: ClassVar[tuple[Literal["role"]]]
    @property
    def role(self) -> str:
        """The role on the wire."""

@disjoint_base
class Block:
    """One block of a message's content. Match on the subclasses."""
    __match_args__: ClassVar[tuple[()]]
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> Block:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class TextContent(Block):
    """Text."""
    __match_args__: ClassVar[tuple[Literal["text"]]]
    @property
    def text(self) -> str:
        """The text."""

@final
class ImageContent(Block):
    """An image."""
    __match_args__: ClassVar[tuple[Literal["data"], Literal["mime_type"]]]
    @property
    def data(self) -> str:
        """The bytes as base64."""
    @property
    def mime_type(self) -> str:
        """The media type, such as `image/png`."""

@final
class ThinkingContent(Block):
    """The model's thinking."""
    __match_args__: ClassVar[tuple[Literal["thinking"], Literal["redacted"]]]
    @property
    def thinking(self) -> str:
        """The thinking text; may be empty when it was redacted."""
    @property
    def redacted(self) -> bool:
        """True when the provider's safety filters hid the thinking."""

@final
class ToolCall(Block):
    """A tool call of the model."""
    __match_args__: ClassVar[tuple[Literal["name"], Literal["arguments"], Literal["id"], Literal["arguments_error"]]]
    @property
    def name(self) -> str:
        """The tool's name."""
    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments, a dict of the caller's own."""
    @property
    def id(self) -> str:
        """The call's id, which its result repeats."""
    @property
    def arguments_error(self) -> str | None:
        """What was wrong with the model's arguments, when they were no JSON object."""

@final
class UnknownContent(Block):
    """A block of a kind that this version does not know. `raw()` has all of it."""
    __match_args__: ClassVar[tuple[Literal["kind"]]]
    @property
    def kind(self) -> str | None:
        """The kind on the wire."""

@disjoint_base
class Entry:
    """One entry of a session. Match on the subclasses."""
    __match_args__: ClassVar[tuple[()]]
    @property
    def id(self) -> str:
        """The entry's id."""
    @property
    def parent_id(self) -> str | None:
        """The entry before it on its branch; `None` at a root."""
    @property
    def timestamp(self) -> str:
        """When it was appended, ISO 8601."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> Entry:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class MessageEntry(Entry):
    """A message of the conversation."""
    __match_args__: ClassVar[tuple[Literal["message"]]]
    @property
    def message(self) -> Message:
        """The message."""

@final
class ModelChangeEntry(Entry):
    """The user chose a model."""
    __match_args__: ClassVar[tuple[Literal["provider"], Literal["model_id"]]]
    @property
    def provider(self) -> str:
        """The provider's id."""
    @property
    def model_id(self) -> str:
        """The model's id."""

@final
class ThinkingLevelChangeEntry(Entry):
    """The user chose a thinking level."""
    __match_args__: ClassVar[tuple[Literal["thinking_level"]]]
    @property
    def thinking_level(self) -> str:
        """The level."""

@final
class UsageEntry(Entry):
    """Usage that belongs to no assistant message."""
    __match_args__: ClassVar[tuple[Literal["usage_kind"], Literal["usage"], Literal["provider"], Literal["model"], Literal["note"]]]
    @property
    def usage_kind(self) -> str:
        """What the usage was for, such as `cache_warm`."""
    @property
    def usage(self) -> Usage:
        """Tokens and cost."""
    @property
    def provider(self) -> str:
        """The provider's id."""
    @property
    def model(self) -> str:
        """The model's id."""
    @property
    def note(self) -> str | None:
        """A qualifier for people."""

@final
class CompactionEntry(Entry):
    """What came before was summarised."""
    __match_args__: ClassVar[tuple[Literal["summary"], Literal["first_kept_entry_id"], Literal["tokens_before"], Literal["details"], Literal["usage"]]]
    @property
    def summary(self) -> str:
        """The summary."""
    @property
    def first_kept_entry_id(self) -> str:
        """The first entry before this one that the model still sees."""
    @property
    def tokens_before(self) -> int:
        """Tokens of the context before."""
    @property
    def details(self) -> Any:
        """Data specific to whoever made the summary."""
    @property
    def usage(self) -> Usage | None:
        """Usage of the summarising."""

@final
class ContextEditEntry(Entry):
    """A change of what one earlier entry contributes to the model's context."""
    __match_args__: ClassVar[tuple[Literal["target_id"], Literal["replacement"]]]
    @property
    def target_id(self) -> str:
        """The entry that is changed."""
    @property
    def replacement(self) -> tuple[Block, ...] | None:
        """The new content; `None` leaves the entry out."""

@final
class BranchSummaryEntry(Entry):
    """The summary of a branch that was left."""
    __match_args__: ClassVar[tuple[Literal["summary"], Literal["from_id"], Literal["details"], Literal["usage"]]]
    @property
    def summary(self) -> str:
        """The summary."""
    @property
    def from_id(self) -> str:
        """The leaf of the branch that was left."""
    @property
    def details(self) -> Any:
        """Data specific to whoever made the summary."""
    @property
    def usage(self) -> Usage | None:
        """Usage of the summarising."""

@final
class CustomEntry(Entry):
    """State of an extension; the model never sees it."""
    __match_args__: ClassVar[tuple[Literal["custom_type"], Literal["data"]]]
    @property
    def custom_type(self) -> str:
        """The extension's name for this kind of entry."""
    @property
    def data(self) -> Any:
        """The state."""

@final
class CustomMessageEntry(Entry):
    """A message of an extension; the model sees it as the user's."""
    __match_args__: ClassVar[tuple[Literal["content"], Literal["custom_type"], Literal["display"], Literal["details"]]]
    @property
    def content(self) -> tuple[Block, ...]:
        """Text and images for the model."""
    @property
    def custom_type(self) -> str:
        """The extension's name for this kind of message."""
    @property
    def display(self) -> bool:
        """True when people should see it."""
    @property
    def details(self) -> Any:
        """Details for people and hosts."""

@final
class LabelEntry(Entry):
    """The user's mark on an entry."""
    __match_args__: ClassVar[tuple[Literal["target_id"], Literal["label"]]]
    @property
    def target_id(self) -> str:
        """The entry that is marked."""
    @property
    def label(self) -> str | None:
        """The mark; `None` takes it away."""

@final
class SessionInfoEntry(Entry):
    """What is known of the session as a whole."""
    __match_args__: ClassVar[tuple[Literal["name"]]]
    @property
    def name(self) -> str | None:
        """The display name; `None` takes it away."""

@final
class UnknownEntry(Entry):
    """An entry of a kind that this version does not know. `raw()` has all of it."""
    __match_args__: ClassVar[tuple[Literal["kind"]]]
    @property
    def kind(self) -> str | None:
        """The kind on the wire."""

@disjoint_base
class Dialog:
    """A question of an extension that waits for an answer. Match on the subclasses."""
    __match_args__: ClassVar[tuple[()]]
    @property
    def id(self) -> str:
        """The request's id."""
    @property
    def approval(self) -> str | bool | None:
        """What somebody who agrees without looking closer answers: yes to a confirmation, the first option of
        a choice, the given text of an editor; `None` for an input."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> Dialog:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class SelectDialog(Dialog):
    """Choose one of several options."""
    __match_args__: ClassVar[tuple[Literal["title"], Literal["options"], Literal["timeout"]]]
    @property
    def title(self) -> str:
        """What is asked."""
    @property
    def options(self) -> tuple[str, ...]:
        """The options."""
    @property
    def timeout(self) -> float | None:
        """Seconds after which the daemon takes the dialog for cancelled; `None` for never."""

@final
class ConfirmDialog(Dialog):
    """Yes or no."""
    __match_args__: ClassVar[tuple[Literal["title"], Literal["message"], Literal["timeout"]]]
    @property
    def title(self) -> str:
        """What is asked."""
    @property
    def message(self) -> str:
        """More about it."""
    @property
    def timeout(self) -> float | None:
        """Seconds after which the daemon takes the answer for no; `None` for never."""

@final
class InputDialog(Dialog):
    """Enter a line of text."""
    __match_args__: ClassVar[tuple[Literal["title"], Literal["placeholder"], Literal["timeout"]]]
    @property
    def title(self) -> str:
        """What is asked."""
    @property
    def placeholder(self) -> str | None:
        """Text to show while nothing is entered."""
    @property
    def timeout(self) -> float | None:
        """Seconds after which the daemon takes the dialog for cancelled; `None` for never."""

@final
class EditorDialog(Dialog):
    """Edit a text of several lines."""
    __match_args__: ClassVar[tuple[Literal["title"], Literal["prefill"]]]
    @property
    def title(self) -> str:
        """What is asked."""
    @property
    def prefill(self) -> str | None:
        """The text to start from."""

@final
class Usage:
    """Tokens of one response, and what they cost."""
    __match_args__: ClassVar[tuple[Literal["input"], Literal["output"], Literal["cache_read"], Literal["cache_write"], Literal["total_tokens"], Literal["cost"], Literal["reasoning"]]]
    @property
    def input(self) -> int:
        """Input tokens that were neither read from nor written to the cache."""
    @property
    def output(self) -> int:
        """Output tokens, reasoning included."""
    @property
    def cache_read(self) -> int:
        """Tokens read from the prompt cache."""
    @property
    def cache_write(self) -> int:
        """Tokens written to the prompt cache."""
    @property
    def total_tokens(self) -> int:
        """All tokens of the request and its response."""
    @property
    def cost(self) -> UsageCost:
        """What the tokens cost, in US dollars."""
    @property
    def reasoning(self) -> int | None:
        """The part of `output` that is reasoning, when the provider tells."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> Usage:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class UsageCost:
    """The cost of one response, in US dollars."""
    __match_args__: ClassVar[tuple[Literal["total"], Literal["input"], Literal["output"], Literal["cache_read"], Literal["cache_write"]]]
    @property
    def total(self) -> float:
        """The whole cost."""
    @property
    def input(self) -> float:
        """Cost of the input tokens."""
    @property
    def output(self) -> float:
        """Cost of the output tokens."""
    @property
    def cache_read(self) -> float:
        """Cost of reading the cache."""
    @property
    def cache_write(self) -> float:
        """Cost of writing the cache."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> UsageCost:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Model:
    """A model that can be chosen."""
    __match_args__: ClassVar[tuple[Literal["provider"], Literal["id"], Literal["name"], Literal["api"], Literal["base_url"], Literal["reasoning"], Literal["input"], Literal["cost"], Literal["context_window"], Literal["max_tokens"]]]
    @property
    def provider(self) -> str:
        """The provider's id."""
    @property
    def id(self) -> str:
        """The model's id, as sent to the API."""
    @property
    def name(self) -> str:
        """Display name."""
    @property
    def api(self) -> str:
        """The API it speaks, such as `openai-completions`."""
    @property
    def base_url(self) -> str:
        """Base URL of the API."""
    @property
    def reasoning(self) -> bool:
        """True when the model can think."""
    @property
    def input(self) -> tuple[str, ...]:
        """What the model takes: `text`, `image`."""
    @property
    def cost(self) -> ModelCost:
        """Prices."""
    @property
    def context_window(self) -> int:
        """Context window in tokens."""
    @property
    def max_tokens(self) -> int:
        """Largest output in tokens."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> Model:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ModelCost:
    """Prices in US dollars per million tokens."""
    __match_args__: ClassVar[tuple[Literal["input"], Literal["output"], Literal["cache_read"], Literal["cache_write"]]]
    @property
    def input(self) -> float:
        """Input tokens."""
    @property
    def output(self) -> float:
        """Output tokens."""
    @property
    def cache_read(self) -> float:
        """Tokens read from the cache."""
    @property
    def cache_write(self) -> float:
        """Tokens written to the cache."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> ModelCost:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ToolDefinition:
    """A tool that the model may call."""
    __match_args__: ClassVar[tuple[Literal["name"], Literal["description"], Literal["parameters"]]]
    @property
    def name(self) -> str:
        """The tool's name."""
    @property
    def description(self) -> str:
        """What the tool does, for the model."""
    @property
    def parameters(self) -> Any:
        """JSON Schema of the arguments."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> ToolDefinition:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ToolOutput:
    """What a tool gave back."""
    __match_args__: ClassVar[tuple[Literal["text"], Literal["content"], Literal["details"], Literal["structured_content"], Literal["usage"]]]
    @property
    def text(self) -> str:
        """The text of all text blocks."""
    @property
    def content(self) -> tuple[Block, ...]:
        """Text and images for the model."""
    @property
    def details(self) -> Any:
        """Details for people and hosts, specific to the tool."""
    @property
    def structured_content(self) -> Any:
        """The result as data, specific to the tool."""
    @property
    def usage(self) -> Usage | None:
        """Usage of model work that the tool did itself."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> ToolOutput:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class CompactionResult:
    """What a compaction made."""
    __match_args__: ClassVar[tuple[Literal["summary"], Literal["first_kept_entry_id"], Literal["tokens_before"], Literal["estimated_tokens_after"], Literal["usage"], Literal["details"]]]
    @property
    def summary(self) -> str:
        """The summary."""
    @property
    def first_kept_entry_id(self) -> str:
        """The first entry before the compaction that the model still sees."""
    @property
    def tokens_before(self) -> int:
        """Tokens of the context before."""
    @property
    def estimated_tokens_after(self) -> int | None:
        """Estimate of the tokens of the context after."""
    @property
    def usage(self) -> Usage | None:
        """Usage of the summarising."""
    @property
    def details(self) -> Any:
        """Files that were read and changed, or an extension's own data."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> CompactionResult:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class SessionState:
    """The session's state."""
    __match_args__: ClassVar[tuple[Literal["session_id"], Literal["session_file"], Literal["session_name"], Literal["model"], Literal["thinking_level"], Literal["is_streaming"], Literal["is_compacting"], Literal["steering_mode"], Literal["follow_up_mode"], Literal["auto_compaction_enabled"], Literal["message_count"], Literal["pending_message_count"]]]
    @property
    def session_id(self) -> str:
        """The session's id."""
    @property
    def session_file(self) -> str | None:
        """The session's file; `None` for a session in memory."""
    @property
    def session_name(self) -> str | None:
        """The session's display name."""
    @property
    def model(self) -> Model | None:
        """The chosen model."""
    @property
    def thinking_level(self) -> ThinkingLevel:
        """The thinking level in force."""
    @property
    def is_streaming(self) -> bool:
        """True while a run is under way."""
    @property
    def is_compacting(self) -> bool:
        """True while a compaction runs."""
    @property
    def steering_mode(self) -> QueueMode:
        """How steering messages are delivered: `all` or `one-at-a-time`."""
    @property
    def follow_up_mode(self) -> QueueMode:
        """How follow-up messages are delivered."""
    @property
    def auto_compaction_enabled(self) -> bool:
        """True when automatic compaction is on."""
    @property
    def message_count(self) -> int:
        """How many messages the context has."""
    @property
    def pending_message_count(self) -> int:
        """How many messages wait in the queues."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> SessionState:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class SessionStats:
    """Totals over the whole session."""
    __match_args__: ClassVar[tuple[Literal["session_id"], Literal["session_file"], Literal["tokens"], Literal["cost"], Literal["user_messages"], Literal["assistant_messages"], Literal["tool_calls"], Literal["tool_results"], Literal["total_messages"], Literal["context_usage"]]]
    @property
    def session_id(self) -> str:
        """The session's id."""
    @property
    def session_file(self) -> str | None:
        """The session's file; `None` for a session in memory."""
    @property
    def tokens(self) -> TokenTotals:
        """Tokens."""
    @property
    def cost(self) -> float:
        """US dollars."""
    @property
    def user_messages(self) -> int:
        """Messages of the user."""
    @property
    def assistant_messages(self) -> int:
        """Messages of the assistant."""
    @property
    def tool_calls(self) -> int:
        """Tool calls."""
    @property
    def tool_results(self) -> int:
        """Tool results."""
    @property
    def total_messages(self) -> int:
        """Messages of any role."""
    @property
    def context_usage(self) -> ContextUsage | None:
        """How full the context is; `None` without a model."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> SessionStats:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class TokenTotals:
    """Token totals."""
    __match_args__: ClassVar[tuple[Literal["input"], Literal["output"], Literal["cache_read"], Literal["cache_write"], Literal["total"]]]
    @property
    def input(self) -> int:
        """Input tokens outside the cache."""
    @property
    def output(self) -> int:
        """Output tokens."""
    @property
    def cache_read(self) -> int:
        """Tokens read from the cache."""
    @property
    def cache_write(self) -> int:
        """Tokens written to the cache."""
    @property
    def total(self) -> int:
        """The sum of the four."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> TokenTotals:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ContextUsage:
    """How full the context is."""
    __match_args__: ClassVar[tuple[Literal["tokens"], Literal["context_window"], Literal["percent"]]]
    @property
    def tokens(self) -> int | None:
        """Tokens of the context; `None` after a compaction until the next answer measures it."""
    @property
    def context_window(self) -> int:
        """The model's context window in tokens."""
    @property
    def percent(self) -> float | None:
        """`tokens` as a percentage of the window."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> ContextUsage:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class BashResult:
    """How a shell command ended."""
    __match_args__: ClassVar[tuple[Literal["output"], Literal["exit_code"], Literal["cancelled"], Literal["truncated"], Literal["full_output_path"]]]
    @property
    def output(self) -> str:
        """Stdout and stderr together, possibly cut."""
    @property
    def exit_code(self) -> int | None:
        """The exit code; `None` when the command was cancelled."""
    @property
    def cancelled(self) -> bool:
        """True when the command was stopped."""
    @property
    def truncated(self) -> bool:
        """True when `output` is not the whole output."""
    @property
    def full_output_path(self) -> str | None:
        """The file that has the whole output."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> BashResult:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class CycledModel:
    """The model that was chosen by cycling."""
    __match_args__: ClassVar[tuple[Literal["model"], Literal["thinking_level"], Literal["is_scoped"]]]
    @property
    def model(self) -> Model:
        """The model."""
    @property
    def thinking_level(self) -> ThinkingLevel:
        """The thinking level that is now in force."""
    @property
    def is_scoped(self) -> bool:
        """True when cycling is limited to the models of `--models`."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> CycledModel:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ClearedQueue:
    """The texts of the messages that were taken out of the queues."""
    __match_args__: ClassVar[tuple[Literal["steering"], Literal["follow_up"]]]
    @property
    def steering(self) -> tuple[str, ...]:
        """Steering messages, oldest first."""
    @property
    def follow_up(self) -> tuple[str, ...]:
        """Follow-up messages, oldest first."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> ClearedQueue:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ForkResult:
    """What became of a fork."""
    __match_args__: ClassVar[tuple[Literal["text"], Literal["cancelled"]]]
    @property
    def text(self) -> str | None:
        """The text of the message that was forked from; `None` when the fork was cancelled."""
    @property
    def cancelled(self) -> bool:
        """True when an extension prevented it."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> ForkResult:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ForkMessage:
    """A message that `fork` accepts."""
    __match_args__: ClassVar[tuple[Literal["entry_id"], Literal["text"]]]
    @property
    def entry_id(self) -> str:
        """Its entry."""
    @property
    def text(self) -> str:
        """Its text."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> ForkMessage:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Entries:
    """The session's entries."""
    __match_args__: ClassVar[tuple[Literal["entries"], Literal["leaf_id"]]]
    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries, in the order in which they were appended."""
    @property
    def leaf_id(self) -> str | None:
        """The entry at which the active branch ends; `None` in an empty session."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> Entries:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Navigated:
    """Where the session is after moving in its tree."""
    __match_args__: ClassVar[tuple[Literal["leaf_id"], Literal["editor_text"], Literal["summary"], Literal["cancelled"]]]
    @property
    def leaf_id(self) -> str | None:
        """The entry at which the active branch ends; `None` before the first one."""
    @property
    def editor_text(self) -> str | None:
        """The text of the user message that was moved to, to be edited and sent again."""
    @property
    def summary(self) -> Entry | None:
        """The summary of the branch that was left."""
    @property
    def cancelled(self) -> bool:
        """True when an extension prevented it."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> Navigated:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class SessionList:
    """Sessions on disk."""
    __match_args__: ClassVar[tuple[Literal["sessions"], Literal["next_cursor"]]]
    @property
    def sessions(self) -> tuple[ListedSession, ...]:
        """The sessions, the one that was appended to last first."""
    @property
    def next_cursor(self) -> str | None:
        """Gives the sessions that follow; `None` at the end."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> SessionList:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ListedSession:
    """One session on disk."""
    __match_args__: ClassVar[tuple[Literal["path"], Literal["id"], Literal["cwd"], Literal["name"], Literal["first_message"], Literal["created"], Literal["modified"], Literal["parent_session"]]]
    @property
    def path(self) -> str:
        """The session's file."""
    @property
    def id(self) -> str:
        """The session's id."""
    @property
    def cwd(self) -> str:
        """Its working directory; empty when an old file does not tell."""
    @property
    def name(self) -> str | None:
        """Its display name."""
    @property
    def first_message(self) -> str | None:
        """The text of the user's first message."""
    @property
    def created(self) -> str:
        """When it was made, ISO 8601."""
    @property
    def modified(self) -> int:
        """When it was last appended to, Unix milliseconds."""
    @property
    def parent_session(self) -> str | None:
        """The file of the session that it was made from."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> ListedSession:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class SlashCommand:
    """A command that a prompt can name with a slash."""
    __match_args__: ClassVar[tuple[Literal["name"], Literal["description"], Literal["source"], Literal["source_info"]]]
    @property
    def name(self) -> str:
        """The name without the slash."""
    @property
    def description(self) -> str | None:
        """What it does."""
    @property
    def source(self) -> Literal["extension", "prompt", "skill"]:
        """`extension`, `prompt` or `skill`."""
    @property
    def source_info(self) -> SourceInfo:
        """Where it comes from."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> SlashCommand:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class SourceInfo:
    """Where a resource comes from."""
    __match_args__: ClassVar[tuple[Literal["path"], Literal["source"], Literal["scope"], Literal["origin"], Literal["base_dir"]]]
    @property
    def path(self) -> str:
        """Its path."""
    @property
    def source(self) -> str:
        """How it was found, such as `auto`, `local` or `cli`."""
    @property
    def scope(self) -> str:
        """`user`, `project` or `temporary`."""
    @property
    def origin(self) -> str:
        """`top-level` or `package`."""
    @property
    def base_dir(self) -> str | None:
        """The folder that it belongs to."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> SourceInfo:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class RunOutcome:
    """What came of a prompt."""
    __match_args__: ClassVar[tuple[Literal["text"], Literal["stop_reason"], Literal["error"], Literal["aborted"], Literal["usage"], Literal["messages"], Literal["disposition"], Literal["ok"]]]
    @property
    def text(self) -> str:
        """The text of the last answer that has any."""
    @property
    def stop_reason(self) -> StopReason | None:
        """Why the last answer ended; `None` without an answer."""
    @property
    def error(self) -> str | None:
        """What went wrong: the last answer's error, or that a queued prompt was never delivered."""
    @property
    def aborted(self) -> bool:
        """True when the run was aborted."""
    @property
    def usage(self) -> Usage:
        """Tokens and cost of all answers, and of model work that tools did themselves."""
    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages that ended during the run, in order."""
    @property
    def disposition(self) -> Disposition:
        """What became of the prompt: `started`, `queued` or `handled`. With `handled` there was no run."""
    @property
    def ok(self) -> bool:
        """True when the run neither failed nor was aborted."""
    def raw(self) -> Any:
        """The value as the daemon writes it: plain dicts, lists and strings."""
    @staticmethod
    def from_raw(raw: Any) -> RunOutcome:
        """Makes the object of what `raw()` gives."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
@final
class SessionTree:
    """The session as a tree of entries."""
    def __len__(self) -> int: ...
    @property
    def leaf_id(self) -> str | None:
        """The id of the entry at which the active branch ends; `None` in an empty session."""
    @property
    def leaf(self) -> TreeNode | None:
        """The node at which the active branch ends; `None` in an empty session."""
    @property
    def nodes(self) -> tuple[TreeNode, ...]:
        """All nodes, each parent before its children."""
    @property
    def roots(self) -> tuple[TreeNode, ...]:
        """The nodes without a parent."""
    def find(self, entry_id: str) -> TreeNode | None:
        """The node of this entry; `None` when there is no such entry."""
    def raw(self) -> dict[str, Any]:
        """The tree as the daemon writes it, plain dicts and lists. For a long session these are nested deeper
        than `json.dumps` or `copy.deepcopy` can follow."""
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class TreeNode:
    """One node of a `SessionTree`."""
    __match_args__: ClassVar[tuple[Literal["entry"], Literal["label"]]]
    @property
    def entry(self) -> Entry:
        """The entry, decoded when it is asked for."""
    @property
    def label(self) -> str | None:
        """The user's mark on the entry."""
    @property
    def label_timestamp(self) -> str | None:
        """When the mark was set, ISO 8601."""
    @property
    def parent(self) -> TreeNode | None:
        """The node that this one continues; `None` at a root."""
    @property
    def children(self) -> tuple[TreeNode, ...]:
        """The nodes that continue this one."""
    @property
    def ancestors(self) -> tuple[TreeNode, ...]:
        """This node, its parent, and so on up to a root."""
    def raw(self) -> Any:
        """The entry as the daemon writes it."""
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class MessageAssembler:
    """Keeps the assistant message that is being streamed, from the events of a session.

    A reader that missed events is right again at the end of the block or message.
    """
    def __new__(cls) -> MessageAssembler: ...
    def apply(self, event: Event) -> bool:
        """Takes the next event. True when it changed the message."""
    @property
    def message(self) -> AssistantMessage | None:
        """The message as far as it is known; the last one when none is being streamed."""
    @property
    def is_streaming(self) -> bool:
        """True between the start and the end of a message."""
    def arguments_text(self, index: int) -> str | None:
        """What the model has written of the arguments of the tool call with this block index; `None` once the
        call is complete."""
