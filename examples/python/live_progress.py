"""Shows a run as it happens, with rich: what the agent says, which tools run, how many tokens it took.

    python live_progress.py "What is in this folder?" [--provider demo]
"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console, Group
from rich.live import Live
from rich.markdown import Markdown
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from sampi import (
    AssistantMessage,
    Client,
    MessageAssembler,
    MessageEnd,
    ToolExecutionEnd,
    ToolExecutionStart,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prompt")
    parser.add_argument("--provider")
    parser.add_argument("--model")
    options = parser.parse_args()

    console = Console()
    progress = Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console)
    tools: dict[str, TaskID] = {}
    assembler = MessageAssembler()
    tokens = 0

    with (
        Client(provider=options.provider, model=options.model, session="memory") as pi,
        Live(progress, console=console, refresh_per_second=10) as live,
    ):
        with pi.stream(options.prompt) as run:
            for event in run:
                # Puts the message together from its deltas, and is right again at the end of each block.
                assembler.apply(event)
                match event:
                    case ToolExecutionStart(tool_name=name, tool_call_id=call, args=args):
                        tools[call] = progress.add_task(f"[bold]{name}[/] {next(iter(args.values()), '')}", total=1)
                    case ToolExecutionEnd(tool_call_id=call):
                        progress.update(tools[call], completed=1)
                    case MessageEnd(message=AssistantMessage(usage=usage)):
                        tokens += usage.total_tokens
                text = assembler.message.text if assembler.message else ""
                live.update(Group(progress, Markdown(text)))
            outcome = run.outcome()
    console.print(f"{len(tools)} tool calls, {tokens} tokens, {outcome.stop_reason}", style="dim")
    return 0 if outcome.ok else 1


if __name__ == "__main__":
    sys.exit(main())
