"""Keeps a number of misses in flight, each for a URL of its own, which the origin answers after two seconds.

    python slow_misses.py PORT IN-FLIGHT PREFIX

The first requests are spread over two seconds, and so are all after them. Prints `in flight` when the number is
reached; at SIGTERM `DONE {"answers": n, "median_seconds": s, "failure": text or null}`.
"""

from __future__ import annotations

import asyncio
import json
import signal
import statistics
import sys
import time

SPREAD_SECONDS = 2.0
BODY = b"slow" * 256


class SlowMisses:
    def __init__(self, port: int, prefix: str):
        self.port = port
        self.prefix = prefix
        self.count = 0
        self.durations: list[float] = []
        self.failure: str | None = None

    async def keep_asking(self, delay: float) -> None:
        await asyncio.sleep(delay)
        while self.failure is None:
            self.count += 1
            path = f"/slow/{self.prefix}/{self.count}"
            start = time.monotonic()
            try:
                answer = await self.get(path)
            except OSError as error:
                self.failure = f"{path}: {error!r}"
                return
            self.durations.append(time.monotonic() - start)
            if not answer.startswith(b"HTTP/1.1 200 ") or not answer.endswith(BODY):
                self.failure = f"{path}: {answer[:200]!r}"

    async def get(self, path: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nConnection: close\r\n\r\n".encode())
            return await reader.read()
        finally:
            writer.close()


async def main() -> None:
    port, in_flight, prefix = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    misses = SlowMisses(port, prefix)
    clients = [
        asyncio.ensure_future(misses.keep_asking(SPREAD_SECONDS * index / in_flight)) for index in range(in_flight)
    ]
    await asyncio.sleep(SPREAD_SECONDS)
    print("in flight", flush=True)
    await stopped.wait()
    for client in clients:
        client.cancel()
    median = statistics.median(misses.durations) if misses.durations else 0
    print("DONE", json.dumps({"answers": len(misses.durations), "median_seconds": median, "failure": misses.failure}))


if __name__ == "__main__":
    asyncio.run(main())
