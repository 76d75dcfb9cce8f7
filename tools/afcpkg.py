#!/usr/bin/env python3
"""Makes packages: zip archives of responses, for 'cachectl package install' and for AFCache.

    tools/afcpkg.py --folder site --base-url https://www.example.com --max-age 86400 -o site.zip
    tools/afcpkg.py --from-cache --url https://www.example.com/ -o site.zip --store /var/cache/larder

One file on the standard library alone; Python 3.8 or later. It has the options of 'cachectl package create', and
those of AFCache's afcpkg by their old names, and writes the same manifests, byte for byte. Encryption needs the module
pyzipper, --sign needs the program openssl (3.0 or later), and --from-cache needs cachectl.

docs/packages.md describes the formats.
"""

import argparse
import base64
import calendar
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unicodedata
import urllib.parse
import zipfile

MANIFEST = "manifest.afcache"
LIST = "larder.members"
SIGNATURE = "larder.signature"
USER_DATA = ".userdata/"
LONGEST_URL = 16384

# As in Sources/LarderPackages/Manifest/MediaTypes.swift.
MEDIA_TYPES = {
    "aac": "audio/aac", "apng": "image/apng", "atom": "application/atom+xml", "avi": "video/x-msvideo",
    "avif": "image/avif", "bin": "application/octet-stream", "bmp": "image/bmp", "bz2": "application/x-bzip2",
    "css": "text/css", "csv": "text/csv", "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "eot": "application/vnd.ms-fontobject", "epub": "application/epub+zip", "flac": "audio/flac",
    "geojson": "application/geo+json", "gif": "image/gif", "glb": "model/gltf-binary", "gltf": "model/gltf+json",
    "gz": "application/gzip", "heic": "image/heic", "htm": "text/html", "html": "text/html",
    "ico": "image/vnd.microsoft.icon", "ics": "text/calendar", "jpeg": "image/jpeg", "jpg": "image/jpeg",
    "js": "text/javascript", "json": "application/json", "jsonld": "application/ld+json",
    "jxl": "image/jxl", "kml": "application/vnd.google-earth.kml+xml", "m3u8": "application/vnd.apple.mpegurl",
    "m4a": "audio/mp4", "m4v": "video/mp4", "map": "application/json", "md": "text/markdown",
    "mid": "audio/midi", "mjs": "text/javascript", "mov": "video/quicktime", "mp3": "audio/mpeg",
    "mp4": "video/mp4", "mpeg": "video/mpeg", "mvt": "application/vnd.mapbox-vector-tile",
    "oga": "audio/ogg", "ogg": "audio/ogg", "ogv": "video/ogg", "opus": "audio/opus", "otf": "font/otf",
    "pbf": "application/x-protobuf", "pdf": "application/pdf", "png": "image/png",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "rss": "application/rss+xml", "rtf": "application/rtf", "svg": "image/svg+xml", "tar": "application/x-tar",
    "tif": "image/tiff", "tiff": "image/tiff", "ts": "video/mp2t", "ttf": "font/ttf", "txt": "text/plain",
    "usdz": "model/vnd.usdz+zip", "wasm": "application/wasm", "wav": "audio/wav", "weba": "audio/webm",
    "webm": "video/webm", "webmanifest": "application/manifest+json", "webp": "image/webp", "woff": "font/woff",
    "woff2": "font/woff2", "xhtml": "application/xhtml+xml", "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xml": "application/xml",
    "zip": "application/zip", "zst": "application/zstd",
}


class PackageError(Exception):
    """What the user can do something about."""


# Text


def http_date(seconds):
    """A date of RFC 1123, whatever the locale."""
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    date = time.gmtime(seconds)
    return "%s, %02d %s %04d %02d:%02d:%02d GMT" % (
        days[date.tm_wday], date.tm_mday, months[date.tm_mon - 1], date.tm_year, date.tm_hour, date.tm_min,
        date.tm_sec)


def parse_http_date(text):
    """Seconds since 1970; None for anything else."""
    match = re.fullmatch(r"\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT", text or "")
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    if not match or match[2] not in months:
        return None
    return calendar.timegm(
        (int(match[3]), months.index(match[2]) + 1, int(match[1]), int(match[4]), int(match[5]), int(match[6])))


def canonical(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def encoded_path(path):
    """A path as a part of a URL (RFC 3986 section 3.3)."""
    return urllib.parse.quote(path.encode("utf-8", "surrogateescape"), safe="/-._~!$&'()*+,;=:@")


def encoded_url(url):
    """A URL with what is not allowed in one percent-encoded. The brackets of an IPv6 address stay."""
    head, address, tail = url, "", ""
    match = re.search("://", url)
    literal = match and re.compile(r"\[[0-9A-Fa-f:.]*\]").match(url, match.end())
    if literal:
        head, address, tail = url[:match.end()], literal[0], url[literal.end():]
    return "".join(
        part if part is address else urllib.parse.quote(part.encode("utf-8"), safe="/-._~!$&'()*+,;=:@?#%")
        for part in (head, address, tail))


def host_and_path(url):
    """Host, without a port, and path; None for a URL without a host."""
    if "://" not in url:
        return None
    rest = re.split(r"[?#]", url.split("://", 1)[1], maxsplit=1)[0]
    authority, slash, path = rest.partition("/")
    colon = authority.rfind(":")
    if colon >= 0 and "]" not in authority[colon:]:
        authority = authority[:colon]
    return (authority, slash + path) if authority else None


def objection(name):
    """Why a name cannot be that of a member; None for one that can."""
    try:
        raw = name.encode("utf-8")
    except UnicodeEncodeError:
        return "the name is not UTF-8"
    if not raw:
        return "a member has no name"
    if len(raw) > 4096:
        return "the name has %d bytes; the most is 4096" % len(raw)
    if any(byte < 0x20 or byte == 0x7F for byte in raw):
        return "the name has a control character"
    if name.startswith("/"):
        return "the name is an absolute path"
    if "\\" in name:
        return "the name has a backslash"
    if len(raw) > 1 and raw[1:2] == b":" and 0x61 <= raw[0] | 0x20 <= 0x7A:
        return "the name starts with a drive"
    if ".." in name.split("/"):
        return "the name leads out of its directory"
    if "." in name.split("/"):
        return "the name has a part that means the directory itself"
    return None


def matches(pattern, path):
    """Whether a path matches a pattern: as PathPattern in Sources/LarderPackages/Create, whatever the system."""
    parts, place = [], 0
    while place < len(pattern):
        letter = pattern[place]
        place += 1
        if letter == "*":
            parts.append(None)
            continue
        if letter == "[":
            start = place + (pattern[place:place + 1] == "!")
            end = pattern.find("]", start + 1)
            if end >= 0:
                parts.append((letters_of(pattern[start:end]), start > place))
                place = end + 1
                continue
        parts.append(([("\0", "\U0010FFFF")] if letter == "?" else [(letter, letter)], False))
    part = index = 0
    again = None
    while index < len(path):
        if part < len(parts) and parts[part] is None:
            part += 1
            again = (part, index)
        elif part < len(parts) and any(a <= path[index] <= b for a, b in parts[part][0]) != parts[part][1]:
            part, index = part + 1, index + 1
        elif again:
            again = (again[0], again[1] + 1)
            part, index = again
        else:
            return False
    return all(rest is None for rest in parts[part:])


def letters_of(text):
    """The ranges of a set of characters, such as a-c_."""
    ranges, place = [], 0
    while place < len(text):
        if text[place + 1:place + 2] == "-" and place + 2 < len(text):
            ranges.append((text[place], text[place + 2]))
            place += 3
        else:
            ranges.append((text[place], text[place]))
            place += 1
    return ranges


def package_name(text):
    name = re.sub(r"[^A-Za-z0-9._+-]", "-", text.encode("utf-8", "replace").decode("ascii", "replace"))
    return name[:128].lstrip(".") or "package"


# Members


class Member:
    """A response to pack."""

    def __init__(self, url, path, file, fields, status=200, last_modified=None, expires=None, media_type=None):
        self.url, self.path, self.file, self.fields, self.status = url, path, file, fields, status
        self.last_modified, self.expires, self.media_type = last_modified, expires, media_type
        self.digest, self.size = digest_of(file)


def digest_of(path):
    """SHA-256 and length of a file."""
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while True:
            piece = file.read(1 << 18)
            if not piece:
                return digest.hexdigest(), size
            digest.update(piece)
            size += len(piece)


def skip(skipped, what, why):
    """Records what is left out, the first 1,000."""
    if len(skipped) < 1000:
        skipped[what] = why


def walk(root, options, skipped, is_data=False):
    """Files below a folder, as (name, path, status), in the order of the bytes of their names."""
    found, folders = [], [""]
    while folders:
        folder = folders.pop()
        path = os.path.join(root, folder) if folder else root
        try:
            names = os.listdir(path)
        except OSError as error:
            raise PackageError("the folder %s cannot be read: %s" % (path, error.strerror)) from None
        for name in names:
            text = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            relative = folder + "/" + text if folder else text
            if text != name:
                skip(skipped, relative, "the name is not UTF-8")
                continue
            if name.startswith(".") and not options.all:
                skip(skipped, relative, "hidden")
                continue
            status = os.lstat(os.path.join(root, relative))
            if stat.S_ISDIR(status.st_mode):
                folders.append(relative)
                continue
            if not stat.S_ISREG(status.st_mode):
                skip(skipped, relative, "neither a file nor a folder")
                continue
            if not is_data and options.max_item_size is not None and status.st_size > options.max_item_size:
                skip(skipped, relative, "more than %d bytes" % options.max_item_size)
                continue
            pattern = next((p for p in options.exclude if matches(p, relative)), None)
            if not is_data and pattern is not None:
                skip(skipped, relative, "excluded by " + pattern)
                continue
            why = objection(relative)
            if why:
                skip(skipped, relative, why)
                continue
            found.append((relative, os.path.join(root, relative), status))
    return sorted(found, key=lambda file: file[0].encode("utf-8"))


def media_types(options):
    types = dict(MEDIA_TYPES)
    if options.mime_map:
        with open(options.mime_map, "rb") as file:
            for line in file.read().split(b"\n"):
                words = [word for word in re.split(rb"[ \t\r]", line.split(b"#", 1)[0]) if word]
                # A type has to fit in a header field.
                if words and all(0x21 <= byte <= 0x7E for byte in words[0]):
                    for extension in words[1:]:
                        if extension.isascii():
                            types[extension.lower().decode("ascii")] = words[0].decode("ascii")
    return types


def type_of(name, types):
    last = name.rsplit("/", 1)[-1]
    dot = last.rfind(".")
    return types.get(last[dot + 1:].lower()) if dot > 0 and last[dot + 1:].isascii() else None


def base_of(options):
    """The base URL without a slash at its end, its host without a port, and its path."""
    given = options.base_url
    base = encoded_url(given[:-1] if given.endswith("/") else given)
    match = re.fullmatch(
        r"https?://(\[[0-9a-f:.]*\]|[a-z0-9_~!$&'()*+;=%-][a-z0-9._~!$&'()*+;=%-]*)(?::([0-9]*))?(?:/[^?#]*)?", base,
        re.IGNORECASE | re.ASCII)
    place = host_and_path(base)
    if not match or place is None or int(match[2] or 0) > 65535 or len(base) > 2000:
        raise PackageError(
            "the base URL '%s' is not an HTTP URL without a query, a fragment and a user name" % given)
    return base, place


def member_name(place, name):
    """HOST/PATH without escapes, as an installation looks for it; None if it has to be another."""
    try:
        member = place[0] + urllib.parse.unquote_to_bytes(place[1]).decode("utf-8") + "/" + name
    except UnicodeDecodeError:
        return None
    # What separates the fields of a manifest cannot be in one.
    return None if " ; " in member + " " or objection(member) else member


def folder_members(options, created, skipped):
    base, place = base_of(options)
    types = media_types(options)
    offset = options.last_modified_plus or -(options.last_modified_minus or 0)
    for name, path, status in walk(options.folder, options, skipped):
        url = base + "/" + encoded_path(name)
        if len(url) > LONGEST_URL:
            skip(skipped, name, "the URL has more than %d bytes" % LONGEST_URL)
            continue
        modified = (status.st_mtime_ns // 1_000_000_000 if options.last_modified_file else created) + offset
        expires = None if options.max_age is None else modified + options.max_age
        dates = (modified, modified if expires is None else expires)
        if not all(-62135596800 <= moment <= 253402300799 for moment in dates):
            raise PackageError("%s: its Last-Modified or Expires is not between the years 1 and 9999" % name)
        media_type = type_of(name, types) if options.mime else None
        fields = [["Content-Type", media_type]] if media_type else []
        fields.append(["Last-Modified", http_date(modified)])
        if expires is not None:
            fields.append(["Expires", http_date(expires)])
        yield Member(url, member_name(place, name), path, fields, 200, modified, expires, media_type)


def cache_members(options, folder, skipped):
    """Responses that cachectl fetches through the cache."""
    urls = list(options.url)
    if options.url_list:
        with (sys.stdin if options.url_list == "-" else open(options.url_list, encoding="utf-8")) as file:
            urls += [line.strip() for line in file if line.strip() and not line.startswith("#")]
    command = shutil.which(options.cachectl)
    if command is None:
        raise PackageError("--from-cache needs cachectl: set --cachectl to its path")
    for number, url in enumerate(sorted(set(urls))):
        body = os.path.join(folder, str(number))
        call = [command, "fetch", "--json", "--output", body]
        if options.store:
            call += ["--store", options.store]
        done = subprocess.run(call + [url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            text = done.stderr.decode("utf-8", "replace").strip()
            try:
                text = json.loads(text)["error"]["message"]
            except (ValueError, KeyError):
                pass
            skipped[url] = text or "cachectl: %d" % done.returncode
            continue
        answer = json.loads(done.stdout)
        if not answer["isStored"] and answer["source"] == "network":
            skipped[url] = "not stored"
            continue
        if answer["status"] in (206, 304, 401, 407, 412, 416):
            skipped[url] = "status %d" % answer["status"]
            continue
        directives = {
            word.split("=")[0].strip().lower()
            for name, value in answer["fields"] if name.lower() == "cache-control" for word in value.split(",")}
        if directives & {"no-store", "private"}:
            skipped[url] = "for one user only"
            continue
        own = {"set-cookie", "content-length", "age", "cache-status", "content-range"}
        fields = [field for field in answer["fields"] if field[0].lower() not in own]
        if any(field[0].lower() == "vary" for field in fields):
            skipped[url] = "one of several variants of its URL"
            continue
        values = {name.lower(): value for name, value in fields}
        modified, expires = parse_http_date(values.get("last-modified")), parse_http_date(values.get("expires"))
        age = re.search(r"(?:^|,)\s*max-age=\"?(\d+)", values.get("cache-control", ""))
        date = parse_http_date(values.get("date"))
        if age and date is not None:
            expires = date + int(age[1])
        yield Member(
            url, place_of(url), body, fields, answer["status"], modified, expires, values.get("content-type"))


def place_of(url):
    """HOST/PATH, where that is the name of a file that every system can have."""
    place = host_and_path(url)
    if place is None or "?" in url or place[1].endswith("/"):
        return None
    parts = place[1][1:].split("/")
    if any(not part or len(part) > 200 or part in (".", "..") for part in parts) or len(place[1]) >= 2000:
        return None
    return None if objection(place[0] + place[1]) else place[0] + place[1]


# The archive


class Archive:
    """The names that are taken, and what goes into the archive."""

    def __init__(self, options, created):
        self.options, self.created = options, created
        self.form = options.form or (4 if options.mime else 3)
        self.files, self.folders = set(), set()
        self.entries, self.lines, self.written = [], [], []
        self.base = read_base(options) if options.base else None
        self.unchanged = self.bytes = 0

    def place(self, member):
        path = member.path
        parents = [path[:i] for i, letter in enumerate(path) if letter == "/"] if path else []
        if not path or path in self.files or path in self.folders or any(p in self.files for p in parents):
            place = host_and_path(member.url)
            digest = hashlib.sha256(member.url.encode("utf-8")).hexdigest()[:32]
            path = (place[0] if place else "localhost") + "/.larder/" + digest
            parents = [path[:i] for i, letter in enumerate(path) if letter == "/"]
            self.form = 5
        self.files.add(path)
        self.folders.update(parents)
        return path

    def add(self, member):
        path = self.place(member)
        if member.status == 200 and ("?" not in member.url or self.form == 5):
            self.entries.append((member, path))
        line = {"url": member.url, "path": path, "sha256": member.digest, "size": member.size}
        if self.is_unchanged(member.url, member.digest):
            del line["path"]
            self.unchanged += 1
        else:
            modified = self.created if member.last_modified is None else member.last_modified
            self.written.append((path, member.file, modified, member))
            self.bytes += member.size
        if member.status != 200:
            line["status"] = member.status
        line["fields"] = member.fields
        self.lines.append(line)

    def add_data(self, name, path, status):
        digest, size = digest_of(path)
        line = {"data": name, "path": USER_DATA + name, "sha256": digest, "size": size}
        if self.is_unchanged("data " + name, digest):
            del line["path"]
        else:
            self.written.append((USER_DATA + name, path, int(status.st_mtime), None))
        self.lines.append(line)

    def is_unchanged(self, key, digest):
        return self.base is not None and self.base["lines"].get(key) == digest

    def manifest(self):
        end = "+00:00" if self.options.zone_offset else ""
        none = "NULL" if self.form == 5 else ""
        lines = []
        if self.form == 5 and self.options.folder:
            lines.append("baseURL = " + base_of(self.options)[0])
        for member, path in self.entries:
            parts = [member.url]
            for moment in (member.last_modified, member.expires):
                parts.append(none if moment is None else http_date(moment) + end)
            if self.form != 3:
                parts.append(member.media_type or none)
            if self.form == 5:
                parts.append(path)
            lines.append(" ; ".join(parts))
        return "\n".join(lines).encode("utf-8")

    def list(self, name):
        header = {
            "larder": 1, "name": name, "version": self.options.package_version,
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.created))}
        if self.base:
            header["base"] = self.base["header"]
        header["members"] = len(self.lines)
        return "".join(canonical(line) + "\n" for line in [header] + self.lines).encode("utf-8")


def read_base(options):
    with open_zip(options.base, "r", password_of(options)) as archive:
        try:
            text = archive.read(LIST)
        except KeyError:
            raise PackageError("%s has no list of members" % options.base) from None
    lines = [json.loads(line) for line in text.decode("utf-8").split("\n") if line]
    digests = {line.get("url") or "data " + line["data"]: line["sha256"] for line in lines[1:]}
    return {
        "header": {"version": lines[0]["version"], "list": hashlib.sha256(text).hexdigest()}, "lines": digests}


def password_of(options):
    if options.password_file:
        with open(options.password_file, "rb") as file:
            line = file.read(4096).split(b"\n", 1)[0]
        try:
            password = (line[:-1] if line.endswith(b"\r") else line).decode("utf-8")
        except UnicodeDecodeError:
            password = ""
        if not password:
            raise PackageError("%s has no password in its first line" % options.password_file)
        return password
    return os.environ.get("LARDER_PACKAGE_PASSWORD") or None


def open_zip(path, mode, password):
    if password is None:
        return zipfile.ZipFile(path, mode, zipfile.ZIP_DEFLATED)
    try:
        import pyzipper
    except ImportError:
        raise PackageError("encryption needs the module pyzipper: pip install pyzipper") from None
    archive = pyzipper.AESZipFile(
        path, mode, compression=pyzipper.ZIP_DEFLATED, encryption=pyzipper.WZ_AES if mode == "w" else None)
    archive.setpassword(password.encode("utf-8"))
    if mode == "w":
        # AE-1: libzip 1.7 compares the CRC-32, which AE-2 leaves out.
        archive.setencryption(pyzipper.WZ_AES, nbits=256, force_wz_aes_version=1)
    return archive


def write(archive, name, path, password):
    """Writes beside the path and renames, so that an archive is there whole or not at all."""
    temporary = "%s.%d.part" % (path, os.getpid())
    try:
        with open_zip(temporary, "w", password) as target:
            def put(member, data, modified):
                # Archives have local time, from 1980 to 2107, in steps of two seconds.
                date = time.localtime(min(max(modified, 315619200), 4354732800))[:6]
                info = zipfile.ZipInfo(member, date)
                if password is not None:
                    import pyzipper
                    info = pyzipper.zipfile_aes.AESZipInfo(member, date)
                info.external_attr = (stat.S_IFREG | 0o644) << 16
                info.compress_type = zipfile.ZIP_DEFLATED
                if isinstance(data, bytes):
                    target.writestr(info, data)
                    return
                with open(data, "rb") as source, target.open(info, "w", force_zip64=True) as sink:
                    shutil.copyfileobj(source, sink, 1 << 18)
            for member, file, modified, _ in archive.written:
                put(member, file, modified)
            put(MANIFEST, archive.manifest(), archive.created)
            if archive.options.list:
                members = archive.list(name)
                put(LIST, members, archive.created)
                if archive.options.sign:
                    put(SIGNATURE, signature(members, archive.options.sign), archive.created)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def signature(members, key):
    """The member that signs the list: Ed25519 by openssl."""
    message = "larder.members sha256:%s\n" % hashlib.sha256(members).hexdigest()
    try:
        with tempfile.NamedTemporaryFile() as file:
            file.write(message.encode("ascii"))
            file.flush()
            signed = subprocess.run(
                ["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", file.name], check=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout
        public = subprocess.run(
            ["openssl", "pkey", "-in", key, "-pubout", "-outform", "DER"], check=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE).stdout
    except FileNotFoundError:
        raise PackageError("--sign needs the program openssl, 3.0 or later") from None
    except subprocess.CalledProcessError as error:
        raise PackageError("openssl cannot sign with %s: %s" % (key, error.stderr.decode().strip())) from None
    # RFC 8410: 12 bytes that say that 32 bytes of an Ed25519 key follow.
    if len(public) != 44 or public[:12] != bytes.fromhex("302a300506032b6570032100"):
        raise PackageError("%s is not an Ed25519 key: openssl genpkey -algorithm ed25519" % key)
    public = public[12:]
    return (canonical({
        "algorithm": "Ed25519", "key": base64.b64encode(public).decode("ascii"),
        "signature": base64.b64encode(signed).decode("ascii")}) + "\n").encode("ascii")


# The command line


def number(text):
    """A whole number, as cachectl reads it."""
    if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        raise ValueError(text)
    return int(text)


def parser():
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description="Makes a package: a zip archive of responses.",
        epilog="The options are those of 'cachectl package create'; docs/packages.md describes the formats.")
    add = parser.add_argument
    add("--folder", help="the folder with the files")
    add("--base-url", "--baseurl", default="http://localhost", metavar="URL", help="the URL of the folder")
    add("--max-age", "--maxage", type=number, metavar="SECONDS", help="seconds from Last-Modified to Expires")
    add("--last-modified-file", "--lastmodifiedfile", action="store_true", help="take Last-Modified from each file")
    add("--last-modified-plus", "--lastmodifiedplus", type=number, metavar="SECONDS", help="add to Last-Modified")
    add("--last-modified-minus", "--lastmodifiedminus", type=number, metavar="SECONDS",
        help="subtract from Last-Modified")
    add("--max-item-size", "--maxItemFileSize", type=number, metavar="BYTES", help="leave out files with more bytes")
    add("-a", "--all", action="store_true", help="also pack files and folders that begin with a dot")
    add("--exclude", action="append", default=[], metavar="PATTERN", help="leave out files whose path matches")
    add("--mime", action="store_true", default=True, help="write media types (the default)")
    add("--no-mime", dest="mime", action="store_false", help="write no media types")
    add("--mime-map", metavar="FILE", help="media types by extension, in the form of mime.types")
    add("--user-data", "--userdata", metavar="FOLDER", help="a folder of user data")
    add("--user-data-key", "--userdatakey", metavar="KEY", help="the first part of the names of user data")
    add("--from-cache", action="store_true", help="fetch the URLs through the cache")
    add("--url", action="append", default=[], help="with --from-cache: a URL")
    add("--url-list", metavar="FILE", help="with --from-cache: a file with a URL on each line; - is standard input")
    add("--store", metavar="PATH", help="with --from-cache: the store")
    add("--cachectl", default="cachectl", metavar="PATH", help="with --from-cache: the program")
    add("-o", "--output", "--outfile", default="afcache-archive.zip", metavar="FILE", help="the archive")
    add("--name", help="the name of the package; default: that of the file")
    add("--package-version", default="", metavar="TEXT", help="the version of the package")
    add("--created", type=number, metavar="SECONDS", help="when the package is made, since 1970; default: now")
    add("--form", type=int, choices=(3, 4, 5), help="fields of AFCache's manifest")
    add("--zone-offset", action="store_true", help="end dates of the manifest with GMT+00:00")
    add("--list", action="store_true", default=True, help="write the list of members with digests (the default)")
    add("--no-list", dest="list", action="store_false", help="write no list of members")
    add("--base", metavar="ARCHIVE", help="make an increment of an earlier version")
    add("--sign", metavar="FILE", help="sign with the Ed25519 key in this file (PEM)")
    add("--password-file", metavar="FILE", help="encrypt with the password in the first line of this file")
    add("--json", action="store_true", help="print what was packed as JSON")
    return parser


def check(options, parser):
    for argument in sys.argv[1:]:
        try:
            argument.encode("utf-8")
        except UnicodeEncodeError:
            parser.error("%a is not UTF-8" % argument)
    for name in ("max_age", "last_modified_plus", "last_modified_minus", "max_item_size"):
        if not 0 <= (getattr(options, name) or 0) <= 100_000_000_000:
            parser.error("--%s is out of range: use 0 ... 100000000000" % name.replace("_", "-"))
    if not 0 <= (options.created or 0) <= 253402300799:
        parser.error("--created is out of range: use 0 ... 253402300799")
    version = options.package_version
    if len(version.encode("utf-8")) > 200 or any(unicodedata.category(letter) == "Cc" for letter in version):
        parser.error("--package-version has 200 bytes at most, and no control characters")
    key = options.user_data_key
    if key and objection(key + "/x"):
        parser.error("--user-data-key cannot be used: " + objection(key + "/x"))
    if options.from_cache == (options.folder is not None):
        parser.error("give either --folder or --from-cache")
    if options.from_cache and not options.url and not options.url_list:
        parser.error("--from-cache needs --url or --url-list")
    if not options.from_cache and (options.url or options.url_list):
        parser.error("--url and --url-list need --from-cache")
    if options.last_modified_plus is not None and options.last_modified_minus is not None:
        parser.error("give either --last-modified-plus or --last-modified-minus")
    if not options.list and (options.sign or options.base):
        parser.error("a package without a list of members cannot be signed or be an increment")
    if options.name is not None and not re.fullmatch(r"[A-Za-z0-9_+-][A-Za-z0-9._+-]{0,127}", options.name):
        parser.error("'%s' is not the name of a package" % options.name)


def stem(path):
    """The name of a file without its extension."""
    name = os.path.basename(path)
    dot = name.rfind(".")
    return name[:dot] if dot > 0 else name


def create(options):
    created = int(time.time()) if options.created is None else options.created
    name = options.name or package_name(stem(options.output))
    password, skipped = password_of(options), {}
    archive, data = Archive(options, created), 0
    with tempfile.TemporaryDirectory() as folder:
        if options.from_cache:
            members = cache_members(options, folder, skipped)
        else:
            members = folder_members(options, created, skipped)
        for member in members:
            archive.add(member)
        if options.user_data:
            for relative, path, status in walk(options.user_data, options, skipped, is_data=True):
                key = options.user_data_key + "/" if options.user_data_key else ""
                why = objection(USER_DATA + key + relative)
                if why:
                    skip(skipped, key + relative, why)
                    continue
                archive.add_data(key + relative, path, status)
                data += 1
        if options.from_cache and not archive.lines:
            raise PackageError("nothing was packed: " + "; ".join("%s: %s" % item for item in sorted(skipped.items())))
        write(archive, name, options.output, password)
    return {
        "archive": options.output, "name": name, "members": len(archive.lines) - data,
        "unchanged": archive.unchanged, "bytes": archive.bytes, "dataFiles": data, "skipped": skipped,
        "resources": [
            {
                "url": member.url, "lastModified": member.last_modified, "expires": member.expires,
                "mimetype": member.media_type, "filename": path,
            }
            for member, path in archive.entries
        ]}


def main():
    options = parser().parse_args()
    check(options, parser())
    try:
        summary = create(options)
    except PackageError as error:
        sys.exit("afcpkg: %s" % error)
    except OSError as error:
        sys.exit("afcpkg: %s: %s" % (error.filename, error.strerror))
    try:
        if options.json:
            print(json.dumps(summary, indent=2, sort_keys=True, ensure_ascii=False))
        else:
            print("%(archive)s: %(members)d responses of package %(name)s, %(bytes)d bytes" % summary)
            for what, why in sorted(summary["skipped"].items()):
                print("  left out: %s: %s" % (what, why))
        sys.stdout.flush()
    except BrokenPipeError:
        # The archive is whole; only no one reads about it. Python would complain at its end, too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


if __name__ == "__main__":
    main()
