"""Measures LarderHummingbird and LarderAsyncHTTPClient beside what they take the place of, in turns.

    tools/bench adapters [--only server|client|persist] [--seconds 4] [--rounds 5] [--connections 32]

server   handlers of a Hummingbird server as they are, and behind the cache, asked by wrk
client   HTTPClient, and hits of CachingHTTPClient, both asking that server on this machine
persist  MemoryPersistDriver, and LarderPersistDriver

Prints tables for docs/hummingbird.md and docs/asynchttpclient.md: medians of the rounds, and their ratio.
"""
import argparse
import contextlib
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request

ROUTES = {
    "text": "a line of text",
    "list": "100 items as JSON, 7 KB",
    "database": "the same after 1 ms",
    "large": "1 MiB",
}


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


@contextlib.contextmanager
def serving(program, directory):
    port = free_port()
    server = subprocess.Popen([program, "serve", f"{directory}/server", str(port)])
    try:
        wait_for(port, server)
        yield port
    finally:
        server.terminate()
        server.wait()


def wrk_rate(url, arguments):
    output = subprocess.run(
        ["wrk", "-t1", f"-c{arguments.connections}", f"-d{arguments.seconds}s", url],
        check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in output or "Socket errors" in output:
        raise SystemExit(f"bench: {url} did not answer with 200:\n{output}")
    return float(re.search(r"Requests/sec:\s+([\d.]+)", output).group(1))


def print_header(*columns):
    print(f"\n| {' | '.join(columns)} | ratio |\n|{'---|' * (len(columns) + 1)}", flush=True)


def print_row(what, without, with_):
    print(f"| {what} | {without:,.0f} | {with_:,.0f} | {with_ / without:.2g} |", flush=True)


def measure_server(arguments, directory):
    print_header("handler", "requests/s", "behind the cache")
    with serving(arguments.program, directory) as port:
        for route, what in ROUTES.items():
            urls = [f"http://127.0.0.1:{port}/{kind}/{route}" for kind in ("plain", "cached")]
            contents = [urllib.request.urlopen(url).read() for url in urls]
            # The encoder writes the members of an object in any order.
            if sorted(contents[0]) != sorted(contents[1]):
                raise SystemExit(f"bench: {route} differs")
            rates = [[], []]
            for _ in range(arguments.rounds):
                for place, url in enumerate(urls):
                    rates[place].append(wrk_rate(url, arguments))
            print_row(what, *(statistics.median(values) for values in rates))


def print_rows(command, names):
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            what, without, with_ = line.rstrip("\n").split("\t")
            print_row(names.get(what, what), float(without), float(with_))
    if process.returncode != 0:
        raise SystemExit(f"bench: {command[1]} ended with status {process.returncode}")


def measure_client(arguments, directory):
    print_header("answer", "`HTTPClient`, requests/s", "hits of `CachingHTTPClient`")
    with serving(arguments.program, directory) as port:
        print_rows(
            [arguments.program, "client", f"{directory}/client", str(port), str(arguments.seconds),
             str(arguments.rounds)], ROUTES)


def measure_persist(arguments, directory):
    print_header("call", "`MemoryPersistDriver`, calls/s", "`LarderPersistDriver`")
    print_rows(
        [arguments.program, "persist", f"{directory}/persist", str(arguments.seconds), str(arguments.rounds)], {})


def main():
    parts = {"server": measure_server, "client": measure_client, "persist": measure_persist}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--only", choices=parts)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=32)
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="larder-bench.")
    try:
        for name, measure in parts.items():
            if arguments.only in (None, name):
                measure(arguments, directory)
    finally:
        shutil.rmtree(directory)


main()
