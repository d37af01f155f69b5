"""Makes `_commands.py`, the commands of the synchronous client, from `_async_commands.py`.

With `--check` it only says whether the file is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "python" / "sampi"
HEADER = '''"""Every command of the protocol as a method.

Made from `_async_commands.py` by `python client-py/tools/make_sync.py`: edit that file instead.
"""
'''


def make() -> str:
    """The text of the synchronous file."""
    text = (PACKAGE / "_async_commands.py").read_text()
    body = text.split('"""', 2)[2].lstrip("\n")
    for old, new in (("async def ", "def "), ("await ", ""), ("AsyncCommands", "Commands")):
        body = body.replace(old, new)
    return HEADER + "\n" + body


def main() -> int:
    """Writes the file, or checks it."""
    target = PACKAGE / "_commands.py"
    text = make()
    if "--check" in sys.argv[1:]:
        current = target.exists() and target.read_text() == text
        print("up to date" if current else f"{target} is out of date")
        return 0 if current else 1
    target.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
