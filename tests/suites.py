"""What `tests/servers run` runs on each server."""

import os
import re
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def tests(program, *arguments, **environment):
    """A program of tests with these arguments, in this environment."""
    return ["test", "-p", "quorlock-tests", "--test", program, "--", *arguments], environment


# Two of a suite's threads for each core: they wait for servers most of the time.
SCENARIOS = ["scenarios", "--test-threads", "4", "blocking::"]

# What is run on each server, and for how long each program may take.
SUITES = {
    "scenarios": ([tests(*SCENARIOS)], 900),
    "clusters": ([tests(*SCENARIOS, QUORLOCK_TEST_CLUSTERS="1"), tests("command", "clusters::")], 900),
    "differential": ([tests("differential")], 600),
    "doctor": ([tests("command", "doctor::")], 300),
    "failovers": ([tests("failover")], 600),
    "TLS": ([tests(*SCENARIOS, QUORLOCK_TEST_TLS="1"), tests("tls"), tests("command", "doctor_tls::")], 900),
}
# A server that was built without TLS has no place in it.
NEEDS_TLS = {"TLS"}


def has_tls(server):
    """Whether a server was built with TLS: without a certificate it says that it lacks one, or else that it knows no such port."""
    words = [str(server), "--port", "0", "--tls-port", "1", "--save", ""]
    done = subprocess.run(words, capture_output=True, text=True, timeout=15)
    return "tls-cert-file" in done.stdout + done.stderr


def run(name, server, loudly):
    """Runs a suite on a server: its results in words, and whether all passed. What went wrong is told loudly."""
    if name in NEEDS_TLS and not has_tls(server):
        loudly("BUILT WITHOUT TLS: it is left out")
        return {"text": "built without TLS", "is_well": True}
    programs, limit = SUITES[name]
    began, counts, is_well = time.monotonic(), [0, 0, 0], True
    for words, more in programs:
        environment = {**os.environ, **more, "QUORLOCK_TEST_SERVER": str(server)}
        try:
            done = subprocess.run(["cargo", *words], cwd=HERE.parent, env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit)
            said, code = done.stdout, done.returncode
        except subprocess.TimeoutExpired as late:
            said, code = (late.stdout or b"").decode(errors="replace"), None
        found = re.findall(r"(\d+) passed; (\d+) failed; (\d+) ignored", said)
        counts = [sum(int(one[place]) for one in found) + counts[place] for place in range(3)]
        if code != 0 or not found:
            loudly("\n".join(said.splitlines()[-40:]))
            is_well = False
        if not found:
            text = "no result" if code is not None else f"not over in {limit} s"
            return {"text": f"{words[4]}: {text}", "is_well": False}
    passed, failed, skipped = counts
    took = time.monotonic() - began
    return {"text": f"{passed} passed, {failed} failed, {skipped} skipped, {took:.0f} s", "is_well": is_well}
