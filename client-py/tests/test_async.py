"""The asyncio client."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time

import pytest
from conftest import async_fake, script

import sampi
from sampi import (
    AgentSettled,
    AssistantMessage,
    AsyncClient,
    CommandError,
    ExtensionError,
    Lagged,
    MessageEnd,
    ProcessError,
    ProtocolError,
    SessionDiagnostic,
    TextDelta,
    approve_when,
)


async def test_run_gives_the_outcome() -> None:
    async with AsyncClient(provider="demo", session="memory") as pi:
        outcome = await pi.run(script({"text": "Hi there."}))
        assert outcome.ok and outcome.text == "Hi there."
        assert (await pi.get_state()).message_count == len(outcome.messages)
    assert pi.exit_code == 0


async def test_stream_gives_typed_events_of_the_whole_run() -> None:
    async with AsyncClient(provider="demo", session="memory") as pi:
        text, last = "", None
        async for event in pi.stream(script({"text": "All done.", "deltas": 1000, "deltaSize": 3})):
            last = event
            match event:
                case TextDelta(text=piece):
                    text += piece
        assert isinstance(last, AgentSettled)
        assert text.startswith("All done.") and len(text) >= 3000


async def test_a_run_is_steered_aborted_and_asked_for_its_outcome() -> None:
    async with AsyncClient(provider="demo", session="memory") as pi:
        async with pi.stream(script({"text": "Never ", "hang": True})) as run:
            assert run.disposition == "started"
            assert await run.steer("left") == "queued"
            async for event in run:
                if isinstance(event, TextDelta):
                    break
        outcome = await run.outcome()
        assert outcome.aborted
        with pytest.raises(CommandError):
            await pi.set_model("nobody", "nothing")
        assert (await pi.stream(script({"text": "x"})).outcome()).text == "x"


async def test_ten_clients_work_side_by_side() -> None:
    async def one(number: int) -> str:
        async with AsyncClient(provider="demo", session="memory") as pi:
            return (await pi.run(script({"text": f"I am {number}."}))).text

    assert await asyncio.gather(*map(one, range(10))) == [f"I am {number}." for number in range(10)]


async def test_commands_are_sent_in_the_order_in_which_they_are_called() -> None:
    async with async_fake("order") as pi:
        await asyncio.gather(*(pi.steer(str(number)) for number in range(500)))
        assert await pi.get_last_assistant_text() == ",".join(map(str, range(500)))


async def test_cancelling_a_task_abandons_only_its_wait() -> None:
    async with async_fake("hangs") as pi:
        waiting = asyncio.create_task(pi.get_state())
        while pi.pending_calls == 0:
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        while pi.pending_calls:
            await asyncio.sleep(0.001)
        assert await pi.get_commands() == ()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(pi.get_state(), 0.01)
        with pytest.raises(sampi.TimeoutError, match="get_state was not answered within 0.01 s"):
            await pi.get_state(timeout=0.01)
        assert pi.is_alive
        await pi.close(sampi.StopDelays(after_close=0.2))


async def test_a_waiting_task_does_not_block_the_loop() -> None:
    async with AsyncClient(provider="demo", session="memory") as pi:
        run = await pi.stream(script({"text": "x", "hang": True})).start()
        reading = asyncio.create_task(_read(run))
        ticks = 0
        while not (await pi.get_state()).is_streaming or ticks < 10:
            ticks += 1
            await asyncio.sleep(0)
        await run.abort()
        assert isinstance((await reading)[-1], AgentSettled)


async def _read(events: sampi.AsyncEvents | sampi.AsyncRun) -> list[sampi.Event]:
    return [event async for event in events]


async def test_a_flood_leaves_other_tasks_their_turn() -> None:
    async with async_fake("flood") as pi:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        deltas = sum([isinstance(event, TextDelta) async for event in pi.stream("20000")])
        task.cancel()
        assert deltas == 20_000
        assert turns > 50


async def test_events_end_when_the_daemon_is_stopped_and_lag_is_told() -> None:
    async with AsyncClient(provider="demo", session="memory") as pi:
        events, few = pi.events(), pi.events(capacity=5)
        await pi.run(script({"deltas": 100}))
        await pi.close()
        assert isinstance((await _read(events))[-1], AgentSettled)
        assert isinstance((await _read(few))[0], Lagged)
        assert await _read(events) == []


async def test_a_daemon_that_dies_fails_calls_and_streams() -> None:
    pi = async_fake("killed")
    events = pi.events()
    calls = await asyncio.gather(*(pi.get_state() for _ in range(5)), return_exceptions=True)
    assert [type(call) for call in calls] == [ProcessError] * 5
    assert pi.exit_code == -9
    with pytest.raises(ProcessError):
        await _read(events)
    with pytest.raises(ProcessError):
        await pi.stream("x").start()
    await pi.close()


async def test_a_malformed_event_is_raised_and_the_stream_goes_on() -> None:
    async with async_fake("malformed") as pi:
        run = await pi.stream("x").start()
        seen: list[sampi.Event] = []
        with pytest.raises(ProtocolError, match="aborted"):
            async for event in run:
                seen.append(event)
        seen += await _read(run)
        assert any(isinstance(event, TextDelta) for event in seen)
        assert isinstance(seen[-1], AgentSettled)


async def test_an_async_handler_runs_on_the_loop_and_a_plain_one_beside_it() -> None:
    loop = asyncio.get_running_loop()

    async def on_the_loop(dialog: sampi.Dialog) -> bool:
        assert asyncio.get_running_loop() is loop
        await asyncio.sleep(0)
        return True

    def beside(dialog: sampi.Dialog) -> bool:
        time.sleep(0.01)
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return False

    ask = '[{"method":"confirm","title":"t","message":"m"}]'
    async with async_fake("dialogs", ui_handler=on_the_loop) as pi:
        assert '"confirmed": true' in (await pi.run(ask)).text
    async with async_fake("dialogs", ui_handler=beside) as pi:
        assert '"confirmed": false' in (await pi.run(ask)).text


async def test_lines_of_stderr_reach_a_function() -> None:
    lines: list[str] = []
    async with async_fake("talks_on_stderr", stderr=lines.append) as pi:
        await pi.run("x")
        while len(lines) < 2:
            await asyncio.sleep(0.001)
    assert lines == ["one", "two"]


async def test_restart_starts_anew() -> None:
    async with AsyncClient(provider="demo", session="memory") as pi:
        first = pi.process_id
        await pi.restart()
        assert pi.process_id != first
        assert (await pi.run(script({"text": "again"}))).text == "again"


def test_one_client_serves_one_loop_after_the_other() -> None:
    pi = AsyncClient(provider="demo", session="memory", ui_handler=sampi.approve_when(lambda dialog: True))

    async def ask() -> int:
        return (await pi.get_state()).message_count

    for _ in range(3):
        assert asyncio.run(ask()) == 0
    assert asyncio.run(pi.close()) == 0
    gc.collect()


def test_loops_go_away() -> None:
    from sampi import _bridge

    async def ask() -> None:
        async with AsyncClient(provider="demo", session="memory") as pi:
            await pi.get_state()

    asyncio.run(ask())
    gc.collect()
    assert len(_bridge._bridges) == 0


async def test_leaving_the_block_of_a_run_that_is_over_leaves_the_next_run_alone() -> None:
    async with AsyncClient(provider="demo", session="memory") as pi:
        async with pi.stream(script({"text": "First."})) as run:
            assert (await run.outcome()).text == "First."
            following = await pi.stream(script({"text": "Never ", "hang": True})).start()
        assert (await pi.get_state()).is_streaming
        await following.abort()
        assert (await following.outcome()).aborted


def test_whoever_uses_a_client_that_was_made_outside_of_a_loop_has_its_functions_asked() -> None:
    lines: list[str] = []

    def asking() -> AsyncClient:
        return async_fake("asks_at_once", ui_handler=approve_when(lambda dialog: True), stderr=lines.append)

    async def first(events: sampi.AsyncEvents) -> sampi.Event:
        return await asyncio.wait_for(events.__anext__(), 20)

    async def wait(pi: AsyncClient) -> None:
        await pi.wait_for_idle(timeout=20)

    async def stream(pi: AsyncClient) -> list[sampi.Event]:
        return await asyncio.wait_for(_read(pi.stream('[{"method":"confirm","title":"t","message":"m"}]')), 20)

    told = asyncio.run(first(asking().events()))
    assert isinstance(told, ExtensionError) and '"confirmed": true' in told.error
    asyncio.run(wait(asking()))
    assert lines == ["asking"] * 2
    events = asyncio.run(stream(async_fake("dialogs", ui_handler=approve_when(lambda dialog: True))))
    answers = [event.message for event in events if isinstance(event, MessageEnd)]
    assert isinstance(answers[-1], AssistantMessage) and '"confirmed": true' in answers[-1].text


async def test_a_stream_is_read_by_one_task_at_a_time() -> None:
    async with AsyncClient(provider="demo", session="memory") as pi:
        run = pi.stream(script({"text": "x", "hang": True}))
        for stream in (pi.events(), run):
            first = asyncio.ensure_future(stream.__anext__())
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="another task is reading"):
                await stream.__anext__()
            if stream is not run:
                first.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await first
                first = asyncio.ensure_future(stream.__anext__())
                await pi.bash("echo x")
            assert isinstance(await first, sampi.Event)
        await run.abort()
        assert isinstance((await _read(run))[-1], AgentSettled)


async def test_plain_handlers_wait_side_by_side_however_many() -> None:
    together = threading.Barrier(40)

    def handler(dialog: sampi.Dialog) -> str:
        together.wait(20)
        return "x"

    asked = [{"method": "input", "title": str(number)} for number in range(40)]
    async with async_fake("dialogs", ui_handler=handler) as pi:
        answers = json.loads((await pi.run(json.dumps(asked))).text)
    assert [answer.get("value") for answer in answers] == ["x"] * 40


async def test_a_plain_handler_that_fails_dismisses_its_dialog_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def handler(dialog: sampi.Dialog) -> bool:
        raise StopIteration("no idea")

    async with async_fake("dialogs", ui_handler=handler) as pi:
        assert '"cancelled": true' in (await pi.run('[{"method":"confirm","title":"t","message":"m"}]')).text
    assert "no idea" in caplog.text


async def test_a_function_hears_everything_from_the_first_record_on() -> None:
    heard: list[sampi.Event] = []
    async with async_fake("announces", on_event=heard.append) as pi:
        for _ in range(2):
            while not heard:
                await asyncio.sleep(0.001)
            assert isinstance(heard.pop(0), SessionDiagnostic)
            await pi.run("x")
            while not (heard and isinstance(heard[-1], AgentSettled)):
                await asyncio.sleep(0.001)
            heard.clear()
            await pi.restart()
