"""Python's diskcache as a peer: its own timed loop, so that nothing but the cache is measured.

    python diskcache_peer.py DIRECTORY BODY_BYTES COUNT

Prints {"put": ops/s, "get": ops/s, "version": "..."}. Keys and bodies are made before the clock starts. Defaults of
diskcache.Cache: SQLite for the index and small bodies, files for those over 32 KiB, no size limit reached here.
"""

import json
import os
import random
import sys
import time

import diskcache

directory, size, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
keys = ["https://www.example.com/item%010d" % index for index in range(count)]
bodies = [os.urandom(size) for _ in range(count)]
order = [random.randrange(count) for _ in range(max(count, 2000))]

with diskcache.Cache(directory, size_limit=1 << 40) as cache:
    start = time.perf_counter()
    for key, body in zip(keys, bodies):
        cache.set(key, body)
    put = count / (time.perf_counter() - start)
    start = time.perf_counter()
    for index in order:
        if len(cache.get(keys[index])) != size:
            sys.exit("a body came back with another length")
    get = len(order) / (time.perf_counter() - start)

print(json.dumps({"put": put, "get": get, "version": diskcache.__version__}))
