"""What every measure works with."""

from __future__ import annotations

import contextlib
import pathlib
import re
import sys
from dataclasses import dataclass, field

from load.wrk import LoadResult, run_h2load, run_wrk
from servers.bodies import Body
from servers.origin import Origin
from servers.server import Kind, Server
from system.cores import Cores
from system.failure import Failure


@dataclass
class Bench:
    directory: pathlib.Path
    origin: Origin
    cores: Cores | None
    kinds: list[Kind]
    rounds: int
    seconds: int
    """Of each run of wrk."""
    described: dict[str, str] = field(default_factory=dict)
    """Name of a server to its configuration and command line, of those that were started."""
    starts: int = 0

    def kinds_named(self, *names: str) -> list[Kind]:
        return [kind for kind in self.kinds if kind.name in names]

    @contextlib.contextmanager
    def running(self, kinds: list[Kind]):
        """One server of each kind, on a new store."""
        with contextlib.ExitStack() as stack:
            servers: list[Server] = []
            for kind in kinds:
                self.starts += 1
                name = re.sub(r"\W+", "-", kind.name.lower())
                directory = self.directory / f"{name}-{self.starts}"
                server = kind.start(directory, self.origin.port, self.cores)
                stack.enter_context(server.process)
                self.described.setdefault(kind.name, server.described)
                servers.append(server)
            yield servers

    def hits(
        self,
        server: Server,
        body: Body,
        connections: int,
        seconds: int,
        script: str = "counts.lua",
        protocol: str = "HTTP/1.1",
    ) -> LoadResult:
        """Fails when a request reached the origin: then not all were hits.

        `protocol` is HTTP/1.1, TLS (HTTP/1.1 over it) or HTTP/2.
        """
        before = self.origin.file_requests()
        if protocol == "HTTP/2":
            result = run_h2load(server, body, seconds, cores=self.cores)
        else:
            result = run_wrk(
                server, body, connections, seconds, cores=self.cores, script=script, is_secure=protocol == "TLS"
            )
        asked = self.origin.file_requests() - before
        if asked:
            raise Failure(f"{server.name}: {asked} of {result.requests} requests for {body.label} were no hits")
        return result


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def turned(items: list, by: int) -> list:
    """Another one first in each round, so that no server always comes after the same other."""
    by %= len(items)
    return items[by:] + items[:by]
