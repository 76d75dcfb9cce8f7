"""The rounds of tools/package-kills."""

import argparse
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile

MEMBERS = 120
MODES = ["members", "pin", "whole"]


def write_archive(path, version, base):
    """All members of a version differ from those of another, but for every tenth."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        lines = []
        for number in range(MEMBERS):
            content = f"{version} {number} " * (40_000 if number == 7 else 60)
            archive.writestr(f"a.example/{number}", content)
            lines.append(f"{base}/{number} ; Tue, {version:02} Feb 2022 00:00:00 GMT ; "
                         f"Fri, 01 Jan 2100 00:00:00 GMT ; text/plain ; a.example/{number}")
        archive.writestr("manifest.afcache", "\n".join(lines))


class Gateway:
    """A gateway over the store, as another process. Its origin refuses connections."""

    def __init__(self, cachectl, store):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            [cachectl, "serve", "--origin", "http://127.0.0.1:9", "--listen", f"127.0.0.1:{self.port}",
             "--store", store], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.connection = None
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        sys.exit("package-kills: the gateway does not answer")

    def version(self, number):
        """The version of a member; None if it is not found."""
        for _ in range(2):
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
                self.connection.request("GET", f"/{number}", headers={"Host": "a.example"})
                answer = self.connection.getresponse()
                body = answer.read()
                if answer.status != 200:
                    return None
                version, found = body.split(b" ")[:2]
                if int(found) != number:
                    sys.exit(f"package-kills: {number} has the content of {found}")
                return int(version)
            except (http.client.HTTPException, OSError):
                self.connection = None
        sys.exit("package-kills: the gateway does not answer any more")

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cachectl", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    store = os.path.join(arguments.work, "store")
    archives = {}
    for version in (1, 2, 3):
        archives[version] = os.path.join(arguments.work, f"{version}.zip")
        write_archive(archives[version], version, "http://a.example")

    def run(*command, allowed=(0,)):
        done = subprocess.run([arguments.cachectl, *command, "--store", store], capture_output=True, text=True)
        if done.returncode not in allowed:
            fail(f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def fail(message):
        kept = f"{arguments.work}-failed"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(store, kept)
        sys.exit(f"package-kills: seed {arguments.seed}, round {round}: {message}\nthe store is in {kept}")

    round = 0
    run("budget", "--bytes", "64MB")
    gateway = Gateway(arguments.cachectl, store)
    state = None
    kills = done = 0
    # About how long a command takes.
    usual = 0.3
    start = time.monotonic()
    try:
        while round < arguments.rounds if arguments.rounds else time.monotonic() - start < arguments.seconds:
            round += 1
            target = chance.choice([1, 2, 3, None] if state else [1, 2, 3])
            if target is None:
                command = ["package", "remove", "p"]
            else:
                command = ["package", "install", archives[target], "--name", "p", "--mode", chance.choice(MODES),
                           "--restore"]
                if chance.random() < 0.3:
                    command += ["--conflicts", "replace"]
            begun = time.monotonic()
            process = subprocess.Popen([arguments.cachectl, *command, "--store", store], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            moment = begun + chance.random() * usual * 1.2
            has_changed = target == state
            while process.poll() is None and time.monotonic() < moment:
                found = gateway.version(chance.randrange(MEMBERS))
                if found != state and found != target or has_changed and found != target:
                    fail(f"{found} while {command[1]} went from {state} to {target}")
                has_changed = has_changed or found == target
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
            else:
                done += 1
                usual = 0.8 * usual + 0.2 * (time.monotonic() - begun)
            process.wait()
            found = {gateway.version(number) for number in range(MEMBERS)}
            if len(found) != 1 or not found <= {state, target} or has_changed and found != {target}:
                fail(f"{found} after {command[1]} from {state} to {target}")
            state = found.pop()
            if round % 5 == 0:
                run("gc")
                run("verify")
                keys = [entry["key"] for entry in json.loads(run("ls", "--all", "--json"))]
                generations = {key.split(" ")[1] for key in keys if key.startswith("larder:p ")}
                if len(generations) != (0 if state is None else 1):
                    fail(f"{len(generations)} generations are left, with version {state}")
            if state is not None and round % 5 == 1:
                run("package", "verify", "p", "--deep")
    finally:
        gateway.stop()
    print(f"package-kills: {round} rounds, {kills} kills, {done} commands that ended, seed {arguments.seed}, "
          f"{time.monotonic() - start:.0f} s")


main()
