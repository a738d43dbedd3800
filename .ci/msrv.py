"""Reads `cargo metadata`; fails if a dependency of a published library asks for a newer Rust than the library."""
import json
import sys

metadata = json.load(sys.stdin)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
libraries = [p for p in packages.values() if p["id"] in metadata["workspace_members"] and p["name"] != "quorlock-tests"]


def version(text):
    return tuple(int(part) for part in (text + ".0.0").split(".")[:3])


too_new = set()
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
        if declared and version(declared) > version(library["rust_version"]):
            too_new.add(f'{package["name"]} {package["version"]} asks for Rust {declared} ({library["name"]})')

print("\n".join(sorted(too_new)) or f"{len(libraries)} libraries: no dependency asks for a newer Rust")
sys.exit(bool(too_new))
