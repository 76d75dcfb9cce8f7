"""Runs tests one at a time and records the wall and processor time of each.

    times.py OUTPUT.tsv BUNDLE [ARGUMENT...]       appends a line for each test: wall, processor seconds, name

The processor time is that of the test's process and of all processes that it started, in steps of 10 ms. Linux.
"""

import json
import os
import subprocess
import sys
import tempfile

output, *command = sys.argv[1:]
tick = os.sysconf("SC_CLK_TCK")


def processor_time(root):
    """Seconds that a process, its living descendants and those that have ended took."""
    parents, times = {}, {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            fields = open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(name)] = int(fields[1])
        times[int(name)] = sum(int(field) for field in fields[11:15])
    total, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        total += times.get(process, 0)
        waiting += [child for child, parent in parents.items() if parent == process]
    return total / tick


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "events")
    os.mkfifo(path)
    environment = dict(os.environ, SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH="1", NO_COLOR="1")
    environment.pop("SWIFT_DETERMINISTIC_HASHING", None)
    arguments = command + [
        "--testing-library", "swift-testing", "--no-parallel",
        "--event-stream-output-path", path, "--event-stream-version", "0"]
    process = subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL)
    functions, started, lines = set(), {}, []
    for text in open(path):
        record = json.loads(text)
        if record["kind"] == "test":
            if record["payload"]["kind"] == "function":
                functions.add(record["payload"]["id"])
            continue
        event = record["payload"]
        test = event.get("testID")
        if test not in functions:
            continue
        if event["kind"] == "testStarted":
            started[test] = (event["instant"]["absolute"], processor_time(process.pid))
        elif event["kind"] == "testEnded" and test in started:
            wall, spent = started.pop(test)
            wall, spent = event["instant"]["absolute"] - wall, processor_time(process.pid) - spent
            lines.append(f"{wall:.3f}\t{spent:.2f}\t{test.rsplit('/', 1)[0]}\n")
    status = process.wait()

with open(output, "a") as file:
    file.writelines(lines)
sys.exit(1 if status else 0)
