"""Checks that the traits which a package of a user enables bring all that its modules need.

    traits.py ROOT.json USER.json       what 'swift package dump-package' prints of this package, and of the user's

A product of another package that a module imports may depend on traits (`.when(traits:)`). A build with all traits does not
notice a module that lacks one: the user's would.
"""

import json
import sys

root, user = (json.load(open(path)) for path in sys.argv[1:3])
name = user["name"]

# The traits that are on: those of the user, and what they enable.
implied = {trait["name"]: trait["enabledTraits"] for trait in root["traits"]}
own = [d["fileSystem"][0] for d in user["dependencies"] if "fileSystem" in d]
enabled = set()
waiting = [trait["name"] for dependency in own for trait in dependency["traits"] or []]
while waiting:
    trait = waiting.pop()
    if trait not in implied:
        sys.exit(f"traits: {name} enables the trait '{trait}', which does not exist")
    if trait not in enabled:
        enabled.add(trait)
        waiting += implied[trait]

products = {product["name"]: product["targets"] for product in root["products"]}
targets = {target["name"]: target for target in root["targets"]}


def is_on(condition):
    return not condition or not condition.get("traits") or bool(enabled & set(condition["traits"]))


faults = []
waiting = [
    target
    for used in user["targets"]
    for dependency in used["dependencies"]
    if "product" in dependency and dependency["product"][1] == "larder"
    for target in products[dependency["product"][0]]
]
seen = set()
while waiting:
    target = waiting.pop()
    if target in seen:
        continue
    seen.add(target)
    for dependency in targets[target]["dependencies"]:
        (kind, value), = dependency.items()
        if kind == "product":
            if not is_on(value[3]):
                faults.append(f"{target} needs {value[0]} of {value[1]}, for one of {', '.join(value[3]['traits'])}")
        elif is_on(value[1]):
            waiting.append(value[0])

for fault in faults:
    print(f"traits: {name} enables {', '.join(sorted(enabled)) or 'none'}: {fault}", file=sys.stderr)
if not seen:
    sys.exit(f"traits: {name} uses no product of this package")
sys.exit(1 if faults else 0)
