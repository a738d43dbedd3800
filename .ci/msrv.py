"""Reads `cargo metadata --all-features`; fails if a dependency of a published library, with any of its features, asks for a newer Rust than the
library. What says nothing is named: it is only known to build with the Rust that builds it here."""
import json
import sys

metadata = json.load(sys.stdin)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
# What is not published has `publish = []`.
libraries = [p for p in packages.values() if p["id"] in metadata["workspace_members"] and p["publish"] is None]


def version(text):
    return tuple(int(part) for part in (text + ".0.0").split(".")[:3])


too_new, silent, looked_at = set(), set(), set()
for library in libraries:
    waiting, seen = [library["id"]], set()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        for dependency in nodes[current]["deps"]:
            if any(kind["kind"] in (None, "build") for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    for package in (packages[identity] for identity in seen):
        declared = package["rust_version"]
        looked_at.add(package["id"])
        if not declared:
            silent.add(package["name"])
        if declared and version(declared) > version(library["rust_version"]):
            too_new.add(f'{package["name"]} {package["version"]} asks for Rust {declared} ({library["name"]})')

assert libraries and len(looked_at) > len(libraries), "the libraries have no dependencies: nothing was looked at"
print(f'{len(looked_at)} packages; these declare no Rust version: {", ".join(sorted(silent)) or "none"}')
print("\n".join(sorted(too_new)) or f"{len(libraries)} libraries: no dependency asks for a newer Rust")
sys.exit(bool(too_new))
