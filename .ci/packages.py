"""Packages every published crate, and looks into the archives.

Fails if cargo warns, or if an archive lacks what its users need: the texts of the licences as they are in the root, and a README. With
--build, which takes minutes, cargo also builds each crate from its archive alone, as its users do: with the features that are on by default,
and with the other archives in place of the folders of the workspace.
"""
import json
import subprocess
import sys
import tarfile
from pathlib import Path

LICENCES = ["LICENSE-APACHE", "LICENSE-MIT"]
NEEDED = ["Cargo.toml", "README.md", *LICENCES]

metadata = json.loads(subprocess.check_output(["cargo", "metadata", "--format-version", "1", "--locked", "--no-deps"]))
# What is not published has `publish = []`.
published = [package for package in metadata["packages"] if package["publish"] is None]
assert published, "nothing is published: nothing was looked at"
names = [argument for package in published for argument in ("--package", package["name"])]
# The working tree may have changes that are not committed: it is what is looked at.
builds = sys.argv[1:] == ["--build"]
assert builds or not sys.argv[1:], "the only option is --build"
command = ["cargo", "package", "--locked", "--allow-dirty", *([] if builds else ["--no-verify"]), *names]
faults, built = [], 0
with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as cargo:
    for line in cargo.stderr:
        print(line, end="", flush=True)
        built += line.strip().startswith("Verifying ")
        if line.startswith("warning"):
            faults.append(f"cargo warns: {line.strip()}")
if cargo.returncode:
    sys.exit(f"{' '.join(command)} failed: {cargo.returncode}")
if builds and built != len(published):
    faults.append(f"cargo built {built} of {len(published)} packages: cargo 1.90 and later build all of them")

for package in published:
    root = f'{package["name"]}-{package["version"]}'
    with tarfile.open(Path(metadata["target_directory"], "package", f"{root}.crate")) as archive:
        files = {member.name.removeprefix(root + "/"): member for member in archive.getmembers()}
        faults += [f"{root} lacks {name}" for name in NEEDED if name not in files]
        for name in LICENCES:
            text = Path(metadata["workspace_root"], name).read_bytes()
            if name in files and archive.extractfile(files[name]).read() != text:
                faults.append(f"{root}: {name} is not the text of the root")
alone = ", and each builds alone" if builds else ""
print("\n".join(faults) or f"{len(published)} packages: no warnings, they have their licences and READMEs{alone}")
sys.exit(bool(faults))
