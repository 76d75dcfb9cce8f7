"""Draws the plots of docs/benchmarks.md from the figures that larder-bench wrote.

    python plot.py FIGURES.json DIRECTORY

Writes rate-by-size.svg, rate-by-entries.svg and displacement.svg. The same figures give the same bytes: no date, and a fixed salt
for the names inside the SVG. A question without figures, as in a quick run, gives no plot.
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update(
    {
        "svg.hashsalt": "larder",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "figure.facecolor": "white",
    }
)

import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)

# A colour and a mark for each peer, the same in every plot; the mark tells them apart without colour, too.
STYLES = {
    "larder": ("Larder, get", "#0072b2", "o"),
    "larder-span": ("Larder, withBody", "#56b4e9", "s"),
    "files": ("plain files", "#d55e00", "^"),
    "sqlite": ("SQLite (GRDB)", "#009e73", "D"),
    "directory": ("directory cache", "#cc79a7", "v"),
    "lmdb": ("raw LMDB, no hash", "#888888", "x"),
}


def line(axes, peer, xs, ys, suffix="", **more):
    label, colour, mark = STYLES[peer]
    axes.plot(xs, ys, label=label + suffix, color=colour, marker=mark, markersize=4, linewidth=1.4, **more)


def legend(axes, **place):
    # Beside the plot unless said otherwise: inside, it would lie on the figures.
    axes.legend(fontsize=8, **(place or {"loc": "upper left", "bbox_to_anchor": (1.02, 1)}))


def save(figure, path):
    figure.savefig(path, format="svg", metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
    print(path.name)


def by_size(points, path):
    figure, both = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axes, operation, title in zip(both, ("put", "hit"), ("puts a second", "hits a second")):
        # A mix of lengths has no place on the axis; the report's table has it.
        of_kind = [point for point in points if point["operation"] == operation and point["bodySize"] != "web"]
        for peer in STYLES:
            # withBody is a way to read; its puts are those of Larder.
            if peer == "larder-span" and operation == "put":
                continue
            own = sorted((point["bodyBytes"], point["rate"]) for point in of_kind if point["peer"] == peer)
            if own:
                line(axes, peer, *zip(*own))
        sizes = sorted({(point["bodyBytes"], point["bodySize"]) for point in of_kind})
        axes.set(xscale="log", yscale="log", xlabel="length of the bodies", title=title)
        axes.set_xticks([size for size, _ in sizes], [text for _, text in sizes], rotation=30)
        axes.minorticks_off()
    legend(both[1])
    save(figure, path)


def by_entries(points, path):
    figure, (rates, latency) = plt.subplots(1, 2, figsize=(10, 4))
    for peer in ("larder", "lmdb"):
        own = sorted((point for point in points if point["peer"] == peer), key=lambda point: point["entries"])
        if not own:
            continue
        entries = [point["entries"] for point in own]
        line(rates, peer, entries, [point["getRate"] for point in own], ": hits")
        line(rates, peer, entries, [point["putRate"] for point in own], ": puts", linestyle="--")
        line(latency, peer, entries, [point["getP99"] / 1000 for point in own])
    rates.set(xscale="log", yscale="log", xlabel="entries", title="operations a second")
    latency.set(xscale="log", yscale="log", xlabel="entries", title="99th percentile of hits, microseconds")
    legend(rates, loc="best")
    latency.legend(fontsize=8)
    save(figure, path)


def displacement(windows, path):
    figure, axes = plt.subplots(figsize=(10, 4))
    for series, colour in (("full budget", "#d55e00"), ("room to spare", "#0072b2")):
        own = sorted((window for window in windows if window["series"] == series), key=lambda window: window["time"])
        times = [window["time"] for window in own]
        for field, mark, shade in (("max", "^", 0.35), ("p99", "o", 1.0), ("p50", ".", 0.6)):
            axes.plot(
                times,
                [max(window[field], 1) / 1e6 for window in own],
                mark,
                color=colour,
                alpha=shade,
                markersize=3.5,
                label=f"{series}: {field}",
            )
    axes.set(yscale="log", xlabel="seconds of puts", ylabel="milliseconds a put", title="puts of 16 KiB, windows of 0.1 s")
    legend(axes)
    save(figure, path)


def main():
    figures = json.loads(pathlib.Path(sys.argv[1]).read_text())["curves"]
    directory = pathlib.Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    for draw, name, file in (
        (by_size, "sizes", "rate-by-size.svg"),
        (by_entries, "growth", "rate-by-entries.svg"),
        (displacement, "displacement", "displacement.svg"),
    ):
        if figures[name]:
            draw(figures[name], directory / file)


if __name__ == "__main__":
    main()
