"""Configurations and command lines as the report shows them: without what is another in every run."""

from __future__ import annotations

import pathlib
import re

from load.mixed import HTTP2_CLIENTS, HTTP2_STREAMS
from load.wrk import h2load_command, h2load_list_command, wrk_command
from measures import hit_rates, mixed, slow_miss_latency
from servers.bodies import SMALL


def neutral(text: str) -> str:
    """DIR for the directory of the run, PORT for every port."""
    text = re.sub(r"/\S*?/larder-gateway-\w+", "DIR", text)
    return re.sub(r"(127\.0\.0\.1:|\.port = \")\d{2,}", r"\1PORT", text)


def load_commands(seconds: int, root: pathlib.Path) -> list[str]:
    lists = pathlib.Path("DIR/mixed")
    url = f"http://127.0.0.1:PORT{SMALL.path}"
    commands = [
        wrk_command(url, hit_rates.CONNECTIONS, seconds, "counts.lua"),
        h2load_command(url.replace("http:", "https:"), seconds),
        wrk_command(url, slow_miss_latency.CONNECTIONS, seconds, slow_miss_latency.SCRIPT),
        wrk_command(
            "http://127.0.0.1:PORT/files/0.bin", mixed.CONNECTIONS, seconds, "listed.lua", arguments=[str(lists / "http1")]
        ),
        *(
            h2load_list_command(lists / f"http2-{client}", HTTP2_STREAMS, seconds)
            for client in range(HTTP2_CLIENTS)
        ),
    ]
    return [" ".join(command).replace(f"{root}/", "") for command in commands]
