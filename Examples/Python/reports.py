"""Reports that are expensive to make: remembered, made again before they expire, and removed when their data changes.

Takes the directory of the cache. Ends with status 1 if something is not as the comments say.
"""

import sys

from larder import Cache, Lock


def main(directory: str) -> int:
    made = []
    with Cache(directory, size_limit=64 << 20) as cache:

        @cache.memoize_stampede(expire=3600, tag="sales")
        def report(year: int, region: str = "all") -> dict:
            made.append(year)
            return {"year": year, "region": region, "total": year * 3}

        print(report(2024), report(2024), report(2025, region="north"))
        print("made", made)
        if made != [2024, 2025]:
            return 1

        # New figures: every report that depends on them is gone at once.
        print("removed", cache.evict("sales"))
        report(2024)

        # A counter that no process loses an update of, and several changes that become visible together.
        cache.incr("visits")
        with cache.transact():
            cache.incr("visits", 2)
            cache["latest"] = "2025"
        with Lock(cache, "nightly", expire=60):
            cache.set("archive", bytes(1_000_000), tag="archive")

        # A megabyte without a copy: the pages of the file.
        view = cache.view("archive")
        print(len(view), "bytes,", cache.volume(), "on disk, hits and misses", cache.stats())
        return 0 if made == [2024, 2025, 2024] and cache["visits"] == 3 and len(view) == 1_000_000 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
