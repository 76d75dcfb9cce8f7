"""A certificate for the servers under test, made once."""

from __future__ import annotations

import functools
import os
import pathlib
import subprocess
import tempfile

from system.failure import Failure


@functools.cache
def certificate(directory: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Certificate and key, for 127.0.0.1, in files of `directory`."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tls-", dir=directory))
    chain, key = folder / "chain.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(key), "-out", str(chain), "-days", "30", "-subj", "/CN=127.0.0.1"]
    done = subprocess.run(
        [*command, "-addext", "subjectAltName=IP:127.0.0.1"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Failure(f"openssl made no certificate:\n{done.stderr}")
    os.chmod(key, 0o600)
    return chain, key
