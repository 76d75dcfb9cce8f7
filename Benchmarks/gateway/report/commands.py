"""Configurations and command lines as the report shows them: without what is another in every run."""

from __future__ import annotations

import pathlib
import re

from load.wrk import h2load_command, wrk_command
from measures import hit_rates, slow_miss_latency
from servers.bodies import SMALL


def neutral(text: str) -> str:
    """DIR for the directory of the run, PORT for every port."""
    text = re.sub(r"/\S*?/larder-gateway-\w+", "DIR", text)
    return re.sub(r"(127\.0\.0\.1:|\.port = \")\d{2,}", r"\1PORT", text)


def load_commands(seconds: int, root: pathlib.Path) -> list[str]:
    url = f"http://127.0.0.1:PORT{SMALL.path}"
    commands = [
        wrk_command(url, hit_rates.CONNECTIONS, seconds, "counts.lua"),
        h2load_command(url.replace("http:", "https:"), seconds),
        wrk_command(url, slow_miss_latency.CONNECTIONS, seconds, slow_miss_latency.SCRIPT),
    ]
    return [" ".join(command).replace(f"{root}/", "") for command in commands]
