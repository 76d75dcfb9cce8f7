"""Python's diskcache in one of several processes: the latency of its sets.

    python diskcache_sets.py DIRECTORY KEYS OPERATIONS SEED

Prints {"count": ..., "median": ns, "p99": ns, "highest": ns}. 90 % gets, 9 % sets, 1 % deletes, as in diskcache's own
benchmark; defaults of diskcache.Cache.
"""

import json
import random
import sys
import time

import diskcache

directory, keys, operations, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
random.seed(seed)
names = ["https://www.example.com/item%010d" % index for index in range(keys)]
sets = []

with diskcache.Cache(directory, size_limit=1 << 40, timeout=60) as cache:
    for _ in range(operations):
        name = random.choice(names)
        choice = random.randrange(100)
        if choice < 90:
            cache.get(name)
        elif choice < 99:
            body = random.randbytes(8)
            start = time.perf_counter_ns()
            cache.set(name, body, retry=True)
            sets.append(time.perf_counter_ns() - start)
        else:
            cache.delete(name, retry=True)

sets.sort()
print(
    json.dumps(
        {
            "count": len(sets),
            "median": sets[len(sets) // 2],
            "p99": sets[len(sets) * 99 // 100],
            "highest": sets[-1],
        }
    )
)
