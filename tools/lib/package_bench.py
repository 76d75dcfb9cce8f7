"""The measurements of tools/package-bench."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import zipfile


def write_archive(path, members, version):
    """Of version 2 every hundredth member has other content."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        lines = []
        for number in range(members):
            name = f"a.example/{number % 100}/{number}"
            changed = version if number % 100 == 0 else 1
            archive.writestr(name, (f"{number} of version {changed} " * 40)[:512])
            lines.append(f"http://{name} ; Tue, {changed:02} Feb 2022 00:00:00 GMT ; NULL ; text/plain")
        archive.writestr("manifest.afcache", "\n".join(lines))


def measure(command):
    """Seconds of wall time, and MiB of anonymous memory at most, looked at every 10 ms."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as status:
                most = max([most] + [int(line.split()[1]) for line in status if line.startswith("RssAnon:")])
        except OSError:
            pass
        time.sleep(0.01)
    if process.returncode != 0:
        sys.exit(f"package-bench: {command[1:3]} ended with {process.returncode}")
    return time.monotonic() - start, most / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cachectl", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--members", type=int, required=True)
    arguments = parser.parse_args()
    archives = [os.path.join(arguments.work, f"{version}.zip") for version in (1, 2)]
    for version, path in zip((1, 2), archives):
        write_archive(path, arguments.members, version)
    store = os.path.join(arguments.work, "store")
    package = [arguments.cachectl, "package"]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        steps = [
            ("unzip to a tmpfs", ["unzip", "-qq", archives[0], "-d", memory]),
            ("install", package + ["install", archives[0], "--name", "p", "--store", store]),
            ("install the same", package + ["install", archives[0], "--name", "p", "--store", store]),
            ("verify", package + ["verify", "p", "--store", store]),
            ("upgrade by 1 %", package + ["install", archives[1], "--name", "p", "--store", store]),
            ("verify --deep", package + ["verify", "p", "--deep", "--store", store]),
            ("remove", package + ["remove", "p", "--store", store]),
        ]
        base = None
        print(f"{arguments.members} members{'s':>18}{'x unzip':>10}{'MiB':>8}")
        for name, command in steps:
            seconds, most = measure(command)
            base = base or seconds
            print(f"{name:18}{seconds:14.2f}{seconds / base:10.2f}{most:8.1f}", flush=True)


main()
