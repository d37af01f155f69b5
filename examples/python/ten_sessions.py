"""Ten agents at once, each with a session and a daemon of its own.

    python ten_sessions.py [--provider demo] [--count 10] [QUESTION ...]
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from sampi import AsyncClient, RunOutcome

QUESTIONS = ["What does this project do?", "Where are its tests?", "Which file is the longest?"]


async def one(number: int, question: str, provider: str | None) -> RunOutcome:
    async with AsyncClient(provider=provider, session="memory", session_name=f"number {number}") as pi:
        outcome = await pi.run(question)
    print(f"{number:>2}. {question[:40]!r}: {outcome.text[:60]!r}")
    return outcome


async def run(questions: list[str], provider: str | None) -> int:
    outcomes = await asyncio.gather(
        *(one(number, question, provider) for number, question in enumerate(questions, start=1))
    )
    tokens = sum(outcome.usage.total_tokens for outcome in outcomes)
    cost = sum(outcome.usage.cost.total for outcome in outcomes)
    print(f"{len(outcomes)} sessions, {tokens} tokens, ${cost:.4f}")
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", nargs="*", default=QUESTIONS)
    parser.add_argument("--provider")
    parser.add_argument("--count", type=int, default=10)
    options = parser.parse_args()
    questions = [options.questions[index % len(options.questions)] for index in range(options.count)]
    return asyncio.run(run(questions, options.provider))


if __name__ == "__main__":
    sys.exit(main())
