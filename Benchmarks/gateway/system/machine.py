"""The machine and the programs, as the report names them."""

from __future__ import annotations

import os
import pathlib
import platform
import re
import subprocess


def machine_rows(stores: pathlib.Path) -> list[tuple[str, str]]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return [
        ("processor", f"{_processor()}, {os.cpu_count()} cores"),
        ("memory", f"{memory / (1 << 30):.0f} GiB"),
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
        ("file system of the stores", file_system(stores)),
        ("load before the run", f"{os.getloadavg()[0]:.2f}"),
    ]


def program_rows() -> list[tuple[str, str]]:
    return [
        ("nginx", _version(["nginx", "-v"], r"nginx/(\S+)")),
        ("Varnish", _version(["varnishd", "-V"], r"varnish-(\S+)")),
        ("wrk", _version(["wrk", "-v"], r"wrk (\S+)")),
        ("Python (load and slow origin)", platform.python_version()),
    ]


def file_system(path: pathlib.Path) -> str:
    """The type of the mount that `path` lies on."""
    path = path.resolve()
    best, kind = pathlib.Path("/"), "unknown"
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, mount, this_kind, *_ = line.split()
        mount_path = pathlib.Path(mount.encode().decode("unicode_escape"))
        if (mount_path == path or mount_path in path.parents) and len(mount_path.parts) >= len(best.parts):
            best, kind = mount_path, this_kind
    return kind


def _processor() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _version(command: list[str], pattern: str) -> str:
    # wrk prints its version and exits with 1; nginx and varnishd print it on the error output.
    printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
    match = re.search(pattern, printed)
    return match.group(1) if match else "unknown"
