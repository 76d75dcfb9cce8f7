"""GET and PUT of an object server beside nginx with dav_methods, in turns in one run, and what else a build asks of it.

    tools/bench objects [--program PATH] [--seconds N] [--rounds N] [--objects N] [--parts PART ...]

Prints a table in Markdown: rates of both, the median of the rounds, and their ratio.
"""

from __future__ import annotations

import argparse
import hashlib
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
SIZES = {"1 KiB": 1 << 10, "64 KiB": 1 << 16, "4 MiB": 1 << 22}
# Objects that are there before GET, and names for PUT: enough that none is put twice in the time.
STORED = {1 << 10: 2_000, 1 << 16: 1_000, 1 << 22: 50}
NAMES = {1 << 10: 400_000, 1 << 16: 60_000, 1 << 22: 2_000}

# A core for the server, with all of its threads, and one for the client: what else runs on two cores changes the figures by
# more than the servers differ.
SERVER = ["taskset", "-c", "0"]
CLIENT = ["taskset", "-c", "1"]

NGINX = """
worker_processes 1;
error_log ROOT/error.log;
pid ROOT/pid;
events { worker_connections 1024; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_requests 100000000;
    open_file_cache max=10000 inactive=300s;
    client_max_body_size 0;
    client_body_temp_path ROOT/body;
    proxy_temp_path ROOT/t1; fastcgi_temp_path ROOT/t2; uwsgi_temp_path ROOT/t3; scgi_temp_path ROOT/t4;
    server {
        listen 127.0.0.1:PORT;
        location / { root ROOT/files; dav_methods PUT DELETE; create_full_put_path on; }
    }
}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nothing listens on port {port}")


class Nginx:
    name = "nginx"

    def __init__(self, root: pathlib.Path) -> None:
        self.port = free_port()
        for folder in ("files", "body"):
            (root / folder).mkdir(parents=True)
        # Its workers run as another user.
        for path in (root, root / "files", root / "body"):
            path.chmod(0o777)
        (root / "conf").write_text(NGINX.replace("ROOT", str(root)).replace("PORT", str(self.port)))
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        self.process = subprocess.Popen([*SERVER, program, "-c", str(root / "conf"), "-g", "daemon off;"])
        wait_for(self.port)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Larder:
    name = "Larder"

    def __init__(self, root: pathlib.Path, program: str, *flags: str) -> None:
        self.port = free_port()
        self.calls = free_port()
        command = [*SERVER, program, "objects", "--threads", "1", "--listen", f"127.0.0.1:{self.port}", "--grpc-listen", f"127.0.0.1:{self.calls}"]
        self.process = subprocess.Popen(
            [*command, "--store", str(root), "--budget", "20GB", *flags], stdout=subprocess.DEVNULL)
        wait_for(self.port)
        wait_for(self.calls)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def memory(self) -> int:
        """Resident, in KiB."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1])


def wrk(port: int, script: str, seconds: int, *arguments: str) -> tuple[float, int]:
    """Requests a second, and requests that failed."""
    command = [*CLIENT, "wrk", "-t1", "-c16", f"-d{seconds}", "--timeout", "10", "-s", str(HERE / script)]
    output = subprocess.run(
        [*command, f"http://127.0.0.1:{port}", "--", *arguments], check=True, capture_output=True, text=True).stdout
    failed = sum(int(count) for count in re.findall(r"(?:Non-2xx or 3xx responses:|read|write|timeout|connect) (\d+)", output))
    return float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1]), failed


def write_names(path: pathlib.Path, length: int, count: int) -> None:
    payload = b"x" * (length - 16)
    with path.open("w") as file:
        for number in range(count):
            file.write(f"/cas/{hashlib.sha256(b'%016d' % number + payload).hexdigest()}\n")


def rates(work: pathlib.Path, program: str, seconds: int, rounds: int) -> None:
    print("| request | Larder, per second | nginx, per second | ratio |\n|---|---|---|---|")
    for label, length in SIZES.items():
        names, stored = work / f"names-{length}", work / f"stored-{length}"
        write_names(names, length, NAMES[length])
        stored.write_text("".join(names.open().readlines()[: STORED[length]]))
        servers = [Larder(work / f"larder-{length}", program), Nginx(work / f"nginx-{length}")]
        try:
            for server in servers:
                payload = b"x" * (length - 16)
                for number, name in enumerate(stored.read_text().split()):
                    url = f"http://127.0.0.1:{server.port}{name}"
                    urllib.request.urlopen(urllib.request.Request(url, b"%016d" % number + payload, method="PUT"))
            next_number = {server.name: STORED[length] for server in servers}
            for method, script in (("GET", "get.lua"), ("PUT", "put.lua")):
                found: dict[str, list[float]] = {server.name: [] for server in servers}
                for round_number in range(rounds):
                    for server in servers if round_number % 2 == 0 else servers[::-1]:
                        if method == "GET":
                            rate, failed = wrk(server.port, script, seconds, str(stored))
                        else:
                            first = next_number[server.name]
                            rate, failed = wrk(server.port, script, seconds, str(names), str(length), str(first))
                            # wrk makes some requests that it does not send.
                            next_number[server.name] += int(rate * seconds * 1.2) + 100
                            if next_number[server.name] > NAMES[length]:
                                raise SystemExit("not enough names for this many PUTs: raise NAMES")
                        if failed:
                            raise SystemExit(f"{server.name}: {failed} requests failed")
                        found[server.name].append(rate)
                middle = {name: statistics.median(values) for name, values in found.items()}
                ratio = middle["Larder"] / middle["nginx"]
                print(f"| {method} {label} | {middle['Larder']:,.0f} | {middle['nginx']:,.0f} | {ratio:.2f} |", flush=True)
        finally:
            for server in servers:
                server.stop()
        for server in servers:
            shutil.rmtree(work / f"{server.name.lower()}-{length}", ignore_errors=True)


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, content: bytes) -> bytes:
    """A field of a message: https://protobuf.dev/programming-guides/encoding/"""
    return varint(number << 3 | 2) + varint(len(content)) + content


def digest_of(content: bytes) -> bytes:
    return field(1, hashlib.sha256(content).hexdigest().encode()) + varint(2 << 3) + varint(len(content))


def h2load(work: pathlib.Path, port: int, method: str, message: bytes, count: int, clients: int) -> float:
    """Calls a second, each with the same message."""
    (work / "message").write_bytes(b"\0" + len(message).to_bytes(4, "big") + message)
    output = subprocess.run(
        [*CLIENT, "h2load", f"-n{count}", f"-c{clients}", "-m4", "-d", str(work / "message"), "-H", "te: trailers",
         "-H", "content-type: application/grpc", f"http://127.0.0.1:{port}/build.bazel.remote.execution.v2.{method}"],
        check=True, capture_output=True, text=True).stdout
    if f"{count} succeeded" not in output:
        raise SystemExit(output)
    return float(re.search(r"([\d.]+) req/s", output)[1])


def calls(work: pathlib.Path, program: str) -> None:
    """What builds ask over gRPC, and what it costs to be there."""
    server = Larder(work / "calls", program)
    service = "ContentAddressableStorage"
    print("\n| call | messages | per second |\n|---|---|---|")
    try:
        blobs = [b"%016d" % number + b"x" * 1008 for number in range(10_000)]
        missing = b"".join(field(2, digest_of(blob)) for blob in blobs)
        rate = h2load(work, server.calls, service + "/FindMissingBlobs", missing, 50, 1)
        print(f"| FindMissingBlobs, 10,000 digests, none there | 50 | {rate:,.1f} |")
        began = time.monotonic()
        for start in range(0, len(blobs), 2_000):
            update = b"".join(field(2, field(1, digest_of(b)) + field(2, b)) for b in blobs[start : start + 2_000])
            h2load(work, server.calls, service + "/BatchUpdateBlobs", update, 1, 1)
        print(f"| BatchUpdateBlobs, 2,000 blobs of 1 KiB | 5 | {5 / (time.monotonic() - began):,.1f} |")
        rate = h2load(work, server.calls, service + "/FindMissingBlobs", missing, 50, 1)
        print(f"| FindMissingBlobs, 10,000 digests, all there | 50 | {rate:,.1f} |")
        one = field(2, digest_of(blobs[0]))
        rate = h2load(work, server.calls, service + "/FindMissingBlobs", one, 50_000, 4)
        print(f"| FindMissingBlobs, one digest | 50,000 | {rate:,.0f} |")
        rate = h2load(work, server.calls, service + "/BatchReadBlobs", one, 50_000, 4)
        print(f"| BatchReadBlobs, one blob of 1 KiB | 50,000 | {rate:,.0f} |")
        large = b"x" * (64 << 10)
        update = field(2, field(1, digest_of(large)) + field(2, large))
        rate = h2load(work, server.calls, service + "/BatchUpdateBlobs", update, 2_000, 4)
        print(f"| BatchUpdateBlobs, the same blob of 64 KiB | 2,000 | {rate:,.0f} |")
        rate = h2load(work, server.calls, service + "/BatchReadBlobs", field(2, digest_of(large)), 10_000, 4)
        print(f"| BatchReadBlobs, one blob of 64 KiB | 10,000 | {rate:,.0f} |")
        for name, port, count in (("HTTP", server.port, 900), ("gRPC", server.calls, 900)):
            before = server.memory()
            idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
            for connection in idle:
                if port == server.calls:
                    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5))
                else:
                    connection.sendall(b"GET /cas/ HTTP/1.1\r\nHost: x\r\n\r\n")
                connection.recv(64)
            print(f"| memory of an idle connection, {name} | {count} | {(server.memory() - before) / count:.1f} KiB |")
            for connection in idle:
                connection.close()
    finally:
        server.stop()


def reopening(work: pathlib.Path, program: str, count: int) -> None:
    """From SIGKILL to the first answer."""
    server = Larder(work / "large", program)
    service = "ContentAddressableStorage"
    blob = None
    for start in range(0, count, 20_000):
        blobs = [b"object %d" % number for number in range(start, start + 20_000)]
        blob = blobs[0]
        update = b"".join(field(2, field(1, digest_of(b)) + field(2, b)) for b in blobs)
        h2load(work, server.calls, service + "/BatchUpdateBlobs", update, 1, 1)
    server.process.kill()
    server.process.wait()
    began = time.monotonic()
    server = Larder(work / "large", program)
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/cas/{hashlib.sha256(blob).hexdigest()}") as answer:
        assert answer.read() == blob
    print(f"\n{count:,} objects: from the start after SIGKILL to the first answer {time.monotonic() - began:.2f} s")
    server.stop()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", nargs="+", default=["rates", "calls", "reopening"])
    parser.add_argument("--objects", type=int, default=1_000_000)
    options = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="larder-objects-bench."))
    work.chmod(0o755)
    try:
        if "rates" in options.parts:
            rates(work, options.program, options.seconds, options.rounds)
        if "calls" in options.parts:
            calls(work, options.program)
        if "reopening" in options.parts:
            reopening(work, options.program, options.objects)
    finally:
        shutil.rmtree(work, ignore_errors=True)


main()
