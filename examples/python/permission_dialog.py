"""Asks in the terminal when an extension of the agent wants a permission.

    python permission_dialog.py "Tidy up this folder" [--provider demo] [--extension gate.ts]
"""

from __future__ import annotations

import argparse
import sys

from sampi import Answer, Client, ConfirmDialog, Dialog, EditorDialog, InputDialog, Notify, SelectDialog, TextDelta


def ask(dialog: Dialog) -> Answer:
    """Answers a dialog. It runs in a thread of its own, so it may block on `input`."""
    try:
        match dialog:
            case ConfirmDialog(title=title, message=message):
                return input(f"\n{title}\n{message} [y/N] ").strip().lower() in ("y", "yes")
            case SelectDialog(title=title, options=options):
                print(f"\n{title}")
                for number, option in enumerate(options, start=1):
                    print(f"  {number}. {option}")
                choice = input("? ").strip()
                return options[int(choice) - 1] if choice.isdigit() and 0 < int(choice) <= len(options) else None
            case InputDialog(title=title, placeholder=placeholder):
                return input(f"\n{title} [{placeholder or ''}] ") or placeholder
            case EditorDialog(title=title, prefill=prefill):
                print(f"\n{title} (end with an empty line)\n{prefill or ''}")
                return "\n".join(iter(input, ""))
    except EOFError:
        pass
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prompt")
    parser.add_argument("--provider")
    parser.add_argument("--extension", action="append", default=[])
    options = parser.parse_args()
    extensions = [arg for path in options.extension for arg in ("--extension", path)]

    with Client(provider=options.provider, session="memory", args=extensions, ui_handler=ask) as pi:
        run = pi.stream(options.prompt)
        for event in run:
            match event:
                case TextDelta(text=text):
                    print(text, end="", flush=True)
                case Notify(message=message, level=level):
                    print(f"\n({level}) {message}")
        print()
        return 0 if run.outcome().ok else 1


if __name__ == "__main__":
    sys.exit(main())
