"""Reads `cargo metadata --all-features`; looks at what the published libraries bring into another program, with all their features.

Fails if a dependency has a licence that is not listed here, comes from anywhere but the registry, or comes in two versions. Tests,
examples and benchmarks may depend on what they like: they are not published.
"""
import json
import re
import subprocess
import sys
from collections import defaultdict

# Each allows to link the code into a program under any licence. Of `A OR B` one must be listed, of `A AND B` both.
ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT",
    "MIT-0", "Unicode-3.0", "Unlicense", "Zlib",
}
# Packages that may come in several versions, each with the reason.
TWICE = {
    "getrandom": "ring wants 0.2",
    "windows-sys": "ring wants an older one; on Windows only",
}

metadata = json.load(sys.stdin)
packages = {package["id"]: package for package in metadata["packages"]}
by_name = {(package["name"], package["version"]): package for package in packages.values()}
# What is not published has `publish = []`.
libraries = [p for p in packages.values() if p["id"] in metadata["workspace_members"] and p["publish"] is None]
faults = set()


def is_allowed(expression):
    """Whether an SPDX expression can be satisfied with what is listed. The old `A/B` is `A OR B`."""
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))
    # `X WITH Y` is one licence.
    joined = []
    for word in words:
        if joined and (word == "WITH" or joined[-1].endswith(" WITH")):
            joined[-1] += " " + word
        else:
            joined.append(word)
    place = 0

    def any_of():
        nonlocal place
        value = all_of()
        while place < len(joined) and joined[place] == "OR":
            place += 1
            value = all_of() or value
        return value

    def all_of():
        nonlocal place
        value = one()
        while place < len(joined) and joined[place] == "AND":
            place += 1
            value = one() and value
        return value

    def one():
        nonlocal place
        word = joined[place]
        place += 1
        if word != "(":
            return word in ALLOWED
        value = any_of()
        place += 1
        return value

    return any_of()


def tree(library):
    """What is linked into a program that depends on it with all its features, and what builds that, on any system."""
    arguments = "--locked --all-features --edges normal,build --target all --prefix none --no-dedupe --format {p}"
    listed = subprocess.run(
        ["cargo", "tree", "--package", library["name"], *arguments.split()], check=True, text=True, stdout=subprocess.PIPE
    )
    return [by_name[line.split()[0], line.split()[1].removeprefix("v")] for line in set(listed.stdout.splitlines())]


assert is_allowed("MIT/Apache-2.0") and is_allowed("(MIT OR GPL-3.0) AND Unicode-3.0") and not is_allowed("MIT AND GPL-3.0")
assert is_allowed("Apache-2.0 WITH LLVM-exception OR GPL-2.0") and not is_allowed("GPL-3.0-only WITH X")

licences, everything = defaultdict(set), set()
for library in libraries:
    versions = defaultdict(set)
    for package in tree(library):
        named = f'{package["name"]} {package["version"]}'
        everything.add(package["id"])
        versions[package["name"]].add(package["version"])
        licences[package["license"] or "none"].add(package["name"])
        if not package["license"] or not is_allowed(package["license"]):
            faults.add(f'{named} has the licence {package["license"]} ({library["name"]})')
        source = package["source"]
        if package["id"] not in metadata["workspace_members"] and not (source or "").startswith("registry+"):
            faults.add(f'{named} comes from {source or "a path"} ({library["name"]})')
    for name, found in versions.items():
        if len(found) > 1 and name not in TWICE:
            faults.add(f'{name} comes in the versions {", ".join(sorted(found))} ({library["name"]})')

assert libraries and len(everything) > len(libraries), "the libraries have no dependencies: nothing was looked at"
for licence, names in sorted(licences.items()):
    print(f'{licence}: {", ".join(sorted(names))}')
print("\n".join(sorted(faults)) or f"{len(libraries)} libraries, {len(everything)} packages: licences, sources and versions are right")
sys.exit(bool(faults))
