"""Called by tools/packagers, which says what this does."""

import argparse
import contextlib
import importlib.util
import io
import json
import os
import random
import shutil
import subprocess
import sys
import time
import unicodedata
import zipfile

# Names that have gone wrong somewhere, or may: two forms of one letter, accents that begin a name, what URLs, archives,
# patterns and JSON write in their own way, names of the archive's own files.
NAMES = [
    "a", "b", "index.html", "style.css", "A.HTML", "é.txt", "e\u0301.txt", "\u0301x", "x\u0301", "ü ö",
    "日本.html", "😀", "a b", "a%20b", "a%", "q?x", "h#y", "semi ; colon", ";", "&=+$,", "'", '"quote"', "[x]",
    "{x}", "~", "!", "*", "^", "back\\slash", "tab\there", "line\nfeed", "del\x7f", "c1\x85", "\u2028", "\u200b",
    "a:b", "c:", "noext.", ".hidden", ".\u0301", "..x", "x..", "manifest.afcache", "larder.members", ".userdata",
    ".larder", "x.tar.gz", "x.É", "x.own", "NUL", "-", "--", "a|b", "<a>", "`", "@", "localhost", "\ufeffbom",
    "\u00a0", "K", "\u212a", "x.\u212aml", "x ;",
]
BASES = [
    "http://localhost", "http://a.example", "https://A.example:8443/x%20y/", "HTTP://a.example/ü",
    "http://a.example/x/", "http://[::1]", "http://[::1]:80/x", "http://[2001:DB8::1]/p", "http://[::1",
    "http://[::1]x", "http://[]/", "http://[::ffff:1.2.3.4]/", "http://a.example/#f", "http://a.example/?q",
    "http://a.example/a?b#c", "ftp://a.example", "a.example", "http://", "http:///x", "https://u@a.example",
    "http://a.example/u@x", "http://a.example:80", "http://a.example:", "http://a.example:65536",
    "http://a.example:0080/", "http://a.example:x", "http://a b/", "http://é.example/", "http://..", "http://.a/",
    "http://a.example/../x", "http://a.example/./x", "http://a.example//", "http://a.example/a\\b", "http://a,b/",
    "http://a.example/100%", "http://a.example/\u0301", "", "http", "://", "/", "http://a.example/[x]",
    "http://%41.example/", "afcpkg://localhost", "http://a_b/", "http://a.example/x/\u0301",
    "http://a.example/%FF", "http://a.example/%+5/%2F",
]
PATTERNS = [
    "*", "*.html", "?", "a*", "*a*", "[a-c]*", "[!a]*", "[^a]*", "*é*", "??x", "*/", "*/*", "[", "[]", "[]]",
    "[!]", "\\*", "x[c-a]", "*[-a]", "*\u0301*", "", "*.{html,css}", "[[:alpha:]]*", "a\\b",
]
VERSIONS = [
    "", "1", "ü \"1\"", "a\\b", "\u2028", "1\n2", "\x85", "v" * 200, "v" * 201, "é" * 100, "é" * 101, "\u200b",
]
KEYS = ["", "k", "a/b", "ü", "..", ".", "a/../b", "/a", "a\\b", "c:", "\u0301", "a/", "k\n"]
NUMBERS = [
    "0", "1", "3600", "86400", "31536000", "100000000000", "100000000001", "-1", "-86400", "+5", "1e3", "1_0", " 1",
    "x", "",
]
TYPES = [
    "own/type own html\n", "# none\n", "x/y\tCSS  txt # more\r\nz/z html", "t\u00e9/x html\n", "a/b É é\n",
    "one\n\n", "",
]


def random_name(rng):
    if rng.random() < 0.75:
        return rng.choice(NAMES)
    letters = "ab.é\u0301/ %;?#[]\\\u00df\u0130日"
    return "".join(rng.choice(letters) for _ in range(rng.randint(1, 6))).replace("/", "")


def make_tree(rng, root):
    os.makedirs(root)
    folders = [root]
    for _ in range(rng.randint(0, 9)):
        place = rng.choice(folders)
        name = random_name(rng)
        path = os.path.join(place, name)
        if name in ("", ".", "..") or len(name.encode()) > 250 or os.path.lexists(path):
            continue
        kind = rng.random()
        if kind < 0.2:
            os.mkdir(path)
            folders.append(path)
            continue
        if kind < 0.23:
            os.symlink("x", path)
            continue
        if kind < 0.25:
            path = os.path.join(os.fsencode(place), b"bad\xff" + os.fsencode(name)[:200])
        with open(path, "wb") as file:
            file.write(bytes([65 + rng.randrange(3)]) * rng.choice([0, 1, 10, 60, 1000]))
        moment = rng.choice([0, 1, 1700000000, 1700000000.9, 315532799, -1, -86400.5, 4102444800, 5000000000])
        os.utime(path, (moment, moment))


def given(name, value):
    """An option with its value: as one word if the value looks like an option, else as two."""
    return [name + "=" + value] if value.startswith("-") else [name, value]


def random_options(rng, folder):
    options = ["--folder", os.path.join(folder, "tree")]

    def maybe(chance, *words):
        if rng.random() < chance:
            options.extend(words)

    def number(chance, good):
        return rng.choice(NUMBERS) if rng.random() < chance else rng.choice(good)

    created = "1700000000"
    if rng.random() < 0.1:
        created = rng.choice(["0", "253402300799", "1", "253402300800", "-1"])
    options += given("--created", created)
    maybe(0.6, *given(rng.choice(["--base-url", "--baseurl"]), rng.choice(BASES)))
    maybe(0.4, *given(rng.choice(["--max-age", "--maxage"]), number(0.3, NUMBERS[:5])))
    shift = rng.choice(["--last-modified-plus", "--lastmodifiedminus", "--last-modified-minus"])
    maybe(0.2, *given(shift, number(0.2, NUMBERS[:5])))
    maybe(0.3, rng.choice(["--last-modified-file", "--lastmodifiedfile"]))
    maybe(0.2, *given(rng.choice(["--max-item-size", "--maxItemFileSize"]), number(0.2, ["10", "59", "60"])))
    maybe(0.3, rng.choice(["-a", "--all"]))
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        options += given("--exclude", rng.choice(PATTERNS))
    maybe(0.2, "--no-mime")
    if rng.random() < 0.2:
        path = os.path.join(folder, "types")
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write("".join(rng.choice(TYPES) for _ in range(2)))
        options += ["--mime-map", path]
    if rng.random() < 0.35:
        options += ["--user-data", os.path.join(folder, rng.choice(["data", "tree"]))]
        maybe(0.6, *given("--user-data-key", rng.choice(KEYS)))
    maybe(0.3, *given("--package-version", rng.choice(VERSIONS)))
    maybe(0.4, "--form", rng.choice(["3", "4", "5"] if rng.random() < 0.95 else ["2", "6"]))
    maybe(0.2, "--zone-offset")
    maybe(0.2, "--no-list")
    maybe(0.1, *given("--name", rng.choice(["p", "a.b", ".x", "ü", "x y", "n" * 128, "n" * 129, "-x", ""])))
    return options


class Failure(Exception):
    pass


def run_tool(tool, arguments):
    """Runs afcpkg.py in this process: starting Python takes longer than all that it does."""
    output, errors = io.StringIO(), io.StringIO()
    before = sys.argv
    sys.argv = ["afcpkg.py"] + arguments
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                tool.main()
                status = 0
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
                if not isinstance(end.code, int):
                    errors.write(str(end.code))
    finally:
        sys.argv = before
    return status, output.getvalue(), errors.getvalue()


def contents(path):
    with zipfile.ZipFile(path) as archive:
        if archive.testzip() is not None:
            raise Failure("%s is damaged" % path)
        names = archive.namelist()
        return {name: archive.read(name) for name in names}, names


def compared(first, second):
    """The values of two summaries that have to be the same. Names in 'skipped' that differ only in the form of a letter
    are one to Swift, which keeps one of them: the reasons of such names are not compared."""
    forms = [unicodedata.normalize("NFD", name) for name in second["skipped"]]
    for summary in (first, second):
        del summary["archive"]
        summary["skipped"] = {
            form: why if forms.count(form) == 1 else ""
            for name, why in summary["skipped"].items() for form in [unicodedata.normalize("NFD", name)]}
    return first, second


def round_of(rng, folder, settings, tool):
    make_tree(rng, os.path.join(folder, "tree"))
    make_tree(rng, os.path.join(folder, "data"))
    options = random_options(rng, folder)
    out = rng.choice(["p.zip", "a.b.zip", ".zip", "noext", "ü.zip", "x y.zip", "-.zip", "e\u0301.zip"])
    places = [os.path.join(folder, name) for name in ("1", "2")]
    for place in places:
        os.mkdir(place)
    paths = [os.path.join(place, out) for place in places]
    with_base = rng.random() < 0.15 and "--no-list" not in options
    rounds = [options]
    if with_base:
        rounds.append(options + ["--base"])
    for number, words in enumerate(rounds):
        said = []
        if number:
            with open(os.path.join(folder, "tree", "added"), "wb") as file:
                file.write(b"new")
        for index, path in enumerate(paths):
            end = [path + ".base"] if words[-1] == "--base" else []
            call = words + end + ["--json", "-o", path]
            if index == 0:
                done = subprocess.run(
                    [settings.cachectl, "package", "create"] + call, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    check=False)
                said.append((done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")))
            else:
                said.append(run_tool(tool, call))
        (one, first, why), (two, second, other) = said
        if (one == 0) != (two == 0):
            raise Failure("cachectl ends with %d: %s\nafcpkg.py ends with %d: %s" % (one, why, two, other))
        if one not in (0, 1, 64, 65) or two not in (0, 1, 2) or "Traceback" in other:
            raise Failure("ends with %d: %s\nand %d: %s" % (one, why, two, other))
        if one != 0:
            if any(os.path.exists(path) for path in paths) and not number:
                raise Failure("an archive in spite of an error")
            return False
        (left, order), (right, other_order) = contents(paths[0]), contents(paths[1])
        if order != other_order:
            raise Failure("members in another order: %r\n%r" % (order, other_order))
        for name in left:
            if left[name] != right[name]:
                raise Failure("%s differs:\n%r\n%r" % (name, left[name], right[name]))
        summaries = compared(json.loads(first), json.loads(second))
        if summaries[0] != summaries[1]:
            raise Failure("other values:\n%r\n%r" % summaries)
        if with_base and not number:
            for path in paths:
                shutil.copy(path, path + ".base")
    if rng.random() < settings.installs:
        store = os.path.join(folder, "store")
        for path in ([paths[0] + ".base"] if with_base else []) + [paths[0]]:
            done = subprocess.run(
                [settings.cachectl, "package", "install", path, "--store", store, "--name", "p"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            if done.returncode != 0:
                raise Failure("what was made is not installed: " + done.stderr.decode("utf-8"))
    return True


def main():
    parser = argparse.ArgumentParser(prog="tools/packagers")
    parser.add_argument("--cachectl", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--tool", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--work", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, help="default: as many as fit in 45 seconds")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    parser.add_argument("--keep", help="leave what a round that fails has made in this folder")
    parser.add_argument("--installs", type=float, default=0.1, help="the part of the packages that is installed")
    settings = parser.parse_args()

    spec = importlib.util.spec_from_file_location("afcpkg", settings.tool)
    tool = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(tool)
    os.environ.pop("LARDER_PACKAGE_PASSWORD", None)

    print("packagers: seed %d" % settings.seed, flush=True)
    began = time.monotonic()
    number, made = settings.first, 0
    while True:
        if settings.rounds is None:
            if time.monotonic() - began > 45:
                break
        elif number >= settings.first + settings.rounds:
            break
        folder = os.path.join(settings.work, "round")
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        try:
            made += round_of(random.Random("%d %d" % (settings.seed, number)), folder, settings, tool)
        except Failure as failure:
            print("packagers: round %d of seed %d: %s" % (number, settings.seed, failure))
            if settings.keep:
                shutil.copytree(folder, settings.keep, symlinks=True, dirs_exist_ok=True)
            sys.exit(1)
        number += 1
    rounds = number - settings.first
    print("packagers: %d rounds, %d packages, the same by both programs" % (rounds, made))
    if not made and rounds > 20:
        sys.exit("packagers: no round made a package")


if __name__ == "__main__":
    main()
