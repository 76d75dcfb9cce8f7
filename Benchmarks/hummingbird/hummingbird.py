"""Measures the routes of hummingbird-bench: as they are, and behind the cache, in turns.

    tools/bench hummingbird [--seconds 4] [--rounds 3] [--connections 32] --program PROGRAM

Prints a table for docs/hummingbird.md: medians of the rounds, and their ratio.
"""
import argparse
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request

ROUTES = [
    ("text", "a line of text"),
    ("list", "100 items as JSON, 8 KB"),
    ("slow", "the same after 5 ms"),
]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, server):
    for _ in range(200):
        if server.poll() is not None:
            raise SystemExit(f"bench: the server ended with status {server.returncode}")
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
    raise SystemExit("bench: the server does not listen")


def rate(url, arguments):
    output = subprocess.run(
        ["wrk", "-t1", f"-c{arguments.connections}", f"-d{arguments.seconds}s", url],
        check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in output:
        raise SystemExit(f"bench: {url} did not answer with 200:\n{output}")
    return float(re.search(r"Requests/sec:\s+([\d.]+)", output).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    arguments = parser.parse_args()
    store = tempfile.mkdtemp(prefix="larder-bench.")
    port = free_port()
    server = subprocess.Popen([arguments.program, f"{store}/store", str(port)])
    try:
        wait_for(port, server)
        print("| handler | requests/s | with the cache | ratio |\n|---|---|---|---|")
        for route, what in ROUTES:
            urls = [f"http://127.0.0.1:{port}/{kind}/{route}" for kind in ("plain", "cached")]
            contents = [urllib.request.urlopen(url).read() for url in urls]
            if sorted(contents[0]) != sorted(contents[1]):
                raise SystemExit(f"bench: {route} differs")
            rates = [[], []]
            for _ in range(arguments.rounds):
                for place, url in enumerate(urls):
                    rates[place].append(rate(url, arguments))
            plain, cached = (statistics.median(values) for values in rates)
            print(f"| {what} | {plain:,.0f} | {cached:,.0f} | {cached / plain:.2f} |")
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(store)


main()
