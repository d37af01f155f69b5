"""Has the agent review a repository and prints what it found.

    python review_repository.py [FOLDER] [--provider demo] [--focus "error handling"]
"""

from __future__ import annotations

import argparse
import sys

from sampi import Client, TextDelta, ToolExecutionEnd, ToolExecutionStart

PROMPT = """Review the code in this folder as a senior engineer would review a pull request.
Look at {focus}. Read before you judge, and change nothing.
Name the three findings that matter most, each with its file and line, and say how you would fix it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=".")
    parser.add_argument("--provider")
    parser.add_argument("--model")
    parser.add_argument("--focus", default="correctness, error handling and tests")
    parser.add_argument("--prompt", help="a prompt of your own")
    options = parser.parse_args()

    with Client(
        cwd=options.folder,
        provider=options.provider,
        model=options.model,
        session="memory",
        # The agent may look, but it gets no tool to write with.
        args=["--tools", "read,grep,find,ls"],
    ) as pi:
        run = pi.stream(options.prompt or PROMPT.format(focus=options.focus))
        for event in run:
            match event:
                case ToolExecutionStart(tool_name=name, args=args):
                    print(f"[{name} {args.get('path') or args.get('pattern') or ''}]", file=sys.stderr)
                case ToolExecutionEnd(tool_name=name, is_error=True, result=result):
                    print(f"[{name} failed: {result.text.strip()}]", file=sys.stderr)
                case TextDelta(text=text):
                    print(text, end="", flush=True)
        outcome = run.outcome()
        print()
        if outcome.error:
            print(outcome.error, file=sys.stderr)
        print(f"{outcome.usage.total_tokens} tokens, ${outcome.usage.cost.total:.4f}", file=sys.stderr)
        return 0 if outcome.ok else 1


if __name__ == "__main__":
    sys.exit(main())
