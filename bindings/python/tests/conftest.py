import http.server
import threading

import pytest

from larder import Cache


@pytest.fixture
def cache(tmp_path):
    """A cache, which is checked when its test is over."""
    with Cache(tmp_path / "cache") as cache:
        yield cache
        if not cache._is_closed:
            assert cache.check() == []


@pytest.fixture
def server():
    """A server on this machine that counts its requests, and lets their answers be stored for a minute."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        requests = 0

        def do_GET(self):
            type(self).requests += 1
            body = b"x" * 200_000 if self.path == "/large" else b"answer %d" % self.requests
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "max-age=60")
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        server.handler = Handler
        server.url = "http://127.0.0.1:%d" % server.server_port
        yield server
        server.shutdown()
        thread.join()
