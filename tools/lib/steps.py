"""Compares the table of steps with the targets of the package.

    steps.py STEPS PACKAGE.json PARTS

STEPS is .ci/steps, PACKAGE.json what 'swift package dump-package' prints, and PARTS has a line for each part of tools/test: its
name, its test targets, '/' and the programs that they start.
"""

import json
import sys

steps_path, package_path, parts_path = sys.argv[1:4]
lists, steps = {}, {}


def expand(words):
    return [path for word in words for path in (lists[word[1:]] if word.startswith("@") else [word])]


for line in open(steps_path):
    if line.startswith("paths "):
        name, words = line[len("paths "):].split("=")
        lists[name.strip()] = expand(words.split())
    elif line.startswith(("step ", "pair ")):
        name, _, words = (field.strip() for field in line[len("step "):].split("|"))
        steps[name] = expand(words.split())

targets = {target["name"]: target for target in json.load(open(package_path))["targets"]}


def folder(target):
    return target.get("path") or f"{'Tests' if target['type'] == 'test' else 'Sources'}/{target['name']}"


def closure(names):
    seen, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name in seen or name not in targets:
            continue
        seen.add(name)
        for dependency in targets[name]["dependencies"]:
            (kind, value), = dependency.items()
            if kind != "product":
                waiting.append(value[0])
    return seen


faults, placed = [], []
for line in open(parts_path):
    part, *words = line.split()
    split = words.index("/")
    placed += words[:split]
    for unknown in [name for name in words[:split] + words[split + 1:] if name not in targets]:
        faults.append(f"tools/lib/suite: {part} has the target {unknown}, which does not exist")
    for name in sorted(closure(words[:split] + words[split + 1:])):
        path = folder(targets[name])
        if not any(path == known or path.startswith(known + "/") for known in steps.get(part, [])):
            faults.append(f".ci/steps: the step {part} needs {path}, and does not list it")
for name, target in targets.items():
    if target["type"] == "test" and placed.count(name) != 1:
        faults.append(f"tools/lib/suite: {name} is in {placed.count(name)} parts, not in one")

for fault in faults:
    print(fault, file=sys.stderr)
if not faults:
    print(f"check-steps: {len(steps)} steps, {len(placed)} test targets")
sys.exit(1 if faults else 0)
