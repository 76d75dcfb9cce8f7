"""Enough file descriptors for thousands of connections; children inherit the limit."""

from __future__ import annotations

import resource

from system.failure import Failure

WANTED = 32768
NEEDED = 4096


def raise_limit() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if limit < NEEDED:
        raise Failure(
            f"only {hard} file descriptors are allowed, {NEEDED} are needed: raise the hard limit (ulimit -Hn)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit, soft), hard))
    return limit
