"""The package and the process that it is in: finding the daemon, signals, forks, the interpreter's end."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import sampi
from sampi import Client, ProcessError, find_daemon

TESTS = Path(__file__).parent


def python(code: str, *, timeout: float = 30) -> subprocess.CompletedProcess[str]:
    """Runs a program of its own."""
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )


def test_the_daemon_comes_with_the_package_and_is_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SAMPI_BIN", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    daemon = find_daemon()
    assert daemon.parent == Path(sys.executable).parent and os.access(daemon, os.X_OK)
    help_text = subprocess.run([daemon, "--help"], capture_output=True, text=True, check=True).stdout
    assert "rpc" in help_text
    with Client(provider="demo", session="memory") as pi:
        assert pi.get_state().message_count == 0


def test_sampi_bin_names_another_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\nexit 5\n")
    other.chmod(other.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("SAMPI_BIN", str(other))
    assert find_daemon() == other
    with Client() as pi, pytest.raises(ProcessError) as died:
        pi.get_state()
    assert died.value.exit_code == 5


def test_a_program_that_is_missing_is_a_process_error() -> None:
    with pytest.raises(ProcessError, match="/nowhere/pi") as missing:
        Client(program="/nowhere/pi")
    assert missing.value.exit_code is None


def test_the_environment_is_passed_on_and_taken_away(tmp_path: Path) -> None:
    with Client(provider="demo", session="memory", env={"SAMPI_TEST": "yes", "HOME": None}, cwd=tmp_path) as pi:
        assert pi.bash("echo $SAMPI_TEST ${HOME-none}; pwd").output == f"yes none\n{tmp_path}\n"


def test_ctrl_c_interrupts_a_call_that_waits() -> None:
    script = """
        import os, signal, sys, threading, time
        from conftest import FAKE
        from sampi import Client
        # Python leaves the signal ignored when it was started so, as shells start what runs in the background.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        pi = Client(program=sys.executable, program_args=[FAKE, "hangs"])
        def interrupt():
            while pi.pending_calls == 0:
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            pi.get_state()
        except KeyboardInterrupt:
            print("interrupted", pi.pending_calls, pi.get_commands(), pi.is_alive)
        def interrupt_read():
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt_read).start()
        try:
            next(iter(pi.events()))
        except KeyboardInterrupt:
            print("again")
    """
    done = python(script)
    assert done.stdout.splitlines() == ["interrupted 0 () True", "again"], done.stderr
    assert done.returncode == 0


def test_the_interpreter_ends_cleanly_whatever_is_going_on() -> None:
    script = """
        import asyncio, sys, threading
        from conftest import FAKE, script
        import sampi
        from sampi import Client, AsyncClient
        pi = Client(provider="demo", session="memory", ui_handler=lambda dialog: True, stderr=print)
        stream = pi.stream(script({"deltas": 2000, "delayMs": 1}))
        next(iter(stream))
        hung = Client(program=sys.executable, program_args=[FAKE, "hangs"])
        for _ in range(4):
            threading.Thread(target=hung.get_state, daemon=True).start()
        threading.excepthook = lambda *args: None
        async def main():
            client = AsyncClient(provider="demo", session="memory", ui_handler=lambda dialog: True)
            waiting = asyncio.ensure_future(client.run(script({"hang": True})))
            await client.get_state()
            waiting.cancel()
        asyncio.run(main())
        while hung.pending_calls < 4:
            pass
        print("ending")
    """
    for _ in range(5):
        done = python(script)
        assert (done.returncode, done.stdout) == (0, "ending\n"), done.stderr


def test_the_daemon_ends_with_the_program() -> None:
    done = python(
        """
        from sampi import Client
        pi = Client(provider="demo", session="memory")
        pi.get_state()
        print(pi.process_id)
        """
    )
    process = int(done.stdout)
    for _ in range(500):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        subprocess.run(["sleep", "0.01"], check=True)
    pytest.fail("the daemon lives on")


def test_a_client_that_is_forgotten_takes_its_daemon_with_it() -> None:
    pi = Client(provider="demo", session="memory")
    process = pi.process_id
    assert process is not None
    pi.get_state()
    del pi
    for _ in range(500):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        subprocess.run(["sleep", "0.01"], check=True)
    pytest.fail("the daemon lives on")


def test_after_a_fork_the_client_is_the_parents_and_the_child_makes_its_own() -> None:
    done = python(
        """
        import os
        from conftest import script
        from sampi import Client
        pi = Client(provider="demo", session="memory")
        pi.get_state()
        run = pi.stream(script({"text": "x"}))
        child = os.fork()
        if child == 0:
            for use in (pi.get_state, lambda: next(iter(run)), lambda: run.outcome(timeout=5), pi.close):
                try:
                    use()
                except RuntimeError as error:
                    assert "fork" in str(error), error
                else:
                    os._exit(1)
            del run
            own = Client(provider="demo", session="memory")
            assert own.run(script({"text": "child"})).text == "child"
            own.close()
            del pi
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        assert len(list(run)) > 5
        assert pi.run(script({"text": "parent"})).text == "parent"
        assert pi.close() == 0
        print("fine")
        """.replace("import os\n", "import os, warnings; warnings.simplefilter('ignore', DeprecationWarning)\n", 1)
    )
    assert done.stdout == "fine\n", done.stderr


def test_exceptions_are_one_tree_and_survive_pickling() -> None:
    import pickle

    errors: list[sampi.SampiError] = [
        sampi.ProcessError("gone", -9, "tail"),
        sampi.CommandError("prompt", "no", "busy"),
        sampi.TimeoutError("late"),
        sampi.ProtocolError("odd", "record"),
        sampi.SampiError("x"),
    ]
    for error in errors:
        copied = pickle.loads(pickle.dumps(error))
        assert (type(copied), str(copied), vars(copied)) == (type(error), str(error), vars(error))
    assert isinstance(errors[2], TimeoutError)


def test_the_commands_of_both_clients_are_the_same() -> None:
    subprocess.run([sys.executable, TESTS.parent / "tools" / "make_sync.py", "--check"], check=True)


def test_sigterm_is_left_to_the_program() -> None:
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
