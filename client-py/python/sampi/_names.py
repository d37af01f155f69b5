"""Names that are strings on the wire."""

from typing import Literal

__all__ = ["CompactionReason", "Disposition", "QueueMode", "StopReason", "StreamingBehavior", "ThinkingLevel"]

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much the model should think."""

QueueMode = Literal["all", "one-at-a-time"]
"""How many queued messages are delivered at once."""

StreamingBehavior = Literal["steer", "followUp"]
"""How a prompt is queued while a run is under way."""

Disposition = Literal["started", "queued", "handled"]
"""What became of a prompt: a run was started for it, it waits in a queue, or an extension consumed it."""

CompactionReason = Literal["manual", "threshold", "overflow"]
"""Why a compaction runs."""

StopReason = str
"""Why an answer ended: `pending`, `stop`, `length`, `toolUse`, `error`, `aborted`, `deferred`, or what a later
version says."""
