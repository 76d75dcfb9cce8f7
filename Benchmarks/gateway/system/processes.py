"""Child processes, none of which outlives the run: also after an error, Ctrl-C or SIGTERM."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import time

from system.failure import Failure

STOP_SECONDS = 5

_started: list[Process] = []


def stop_all() -> None:
    """Those started last first. Stopping one twice does nothing."""
    while _started:
        _started.pop().stop()


class Process:
    """One child. What it writes goes to a file: no full pipe can block it."""

    def __init__(self, name: str, command: list[str], directory: pathlib.Path):
        self.name = name
        self.command = command
        self.log = directory / f"{name.replace(' ', '-')}.log"
        with open(self.log, "wb") as log:
            try:
                # A process group of its own: Ctrl-C reaches us only, and we stop children in order. No session of its
                # own: the kernel shares a core between sessions first (sched(7), "The autogroup feature"), and one
                # that yields would only do so within its session.
                self.popen = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=os.setpgrp
                )
            except OSError as error:
                raise Failure(f"cannot start {name}: {error}") from error
        _started.append(self)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self.popen.pid

    def expect_running(self) -> None:
        if self.popen.poll() is not None:
            raise Failure(f"{self.name} ended with status {self.popen.returncode}\n{self.log_tail()}")

    def wait_for(self, pattern: str, seconds: float = 20) -> str:
        """The first group of `pattern` in what the process prints."""
        deadline = time.monotonic() + seconds
        while True:
            match = re.search(pattern, self.log.read_text(errors="replace"))
            if match:
                return match.group(1)
            self.expect_running()
            if time.monotonic() > deadline:
                raise Failure(f"{self.name} does not print '{pattern}' within {seconds:.0f} s\n{self.log_tail()}")
            time.sleep(0.02)

    def log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-15:]
        return "\n".join(f"    {line}" for line in [" ".join(self.command), *lines])

    def stop(self) -> None:
        """SIGTERM, which every server here takes as an order to stop its workers, too; then SIGKILL to its group."""
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self.popen.pid, signal.SIGKILL)
                self.popen.wait()


def process_tree(pid: int) -> list[int]:
    """`pid` and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = stat_fields(int(entry))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry))
    tree = [pid]
    for member in tree:
        tree.extend(children.get(member, []))
    return tree


def stat_fields(pid: int) -> list[str]:
    """Those of proc(5) /proc/PID/stat from `state` on; none when the process has ended."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    # The second field is the name in brackets and may hold blanks and brackets.
    return text.rpartition(")")[2].split()
