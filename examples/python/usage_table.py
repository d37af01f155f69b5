"""A table of tokens and cost over the sessions of a folder, with pandas.

    python usage_table.py SESSION_FOLDER [--csv usage.csv]

The folder is where session files are kept, `~/.pi/agent/sessions` for instance. No model is asked.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from sampi import AssistantMessage, Client, MessageEntry


def rows(folder: Path) -> Iterator[dict[str, object]]:
    """One row for each session and model."""
    with Client(session="memory") as pi:
        for path in sorted(folder.rglob("*.jsonl")):
            if not pi.switch_session(path):
                continue
            name = pi.get_state().session_name or path.stem
            for entry in pi.get_entries().entries:
                match entry:
                    case MessageEntry(message=AssistantMessage(provider=provider, model=model, usage=usage)):
                        yield {
                            "session": name,
                            "model": f"{provider}/{model}",
                            "day": entry.timestamp[:10],
                            "input": usage.input,
                            "cached": usage.cache_read,
                            "output": usage.output,
                            "cost": usage.cost.total,
                        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    answers = pd.DataFrame(rows(options.folder))
    if answers.empty:
        print("no answers")
        return 1
    numbers = ["input", "cached", "output", "cost"]
    table = answers.groupby(["session", "model"])[numbers].sum()
    table.insert(0, "answers", answers.groupby(["session", "model"]).size())
    print(table.to_string())
    print(f"\nin all: {answers['output'].sum()} output tokens, ${answers['cost'].sum():.4f}")
    if options.csv:
        table.to_csv(options.csv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
