"""A lock of a Python client, obeying a line for each command: `lock RESOURCE TTL`, `unlock`.

python redlock_clients.py redlock-py|pottery HOST:PORT...
"""

import importlib.metadata
import platform
import sys

import redis


class RedlockPy:
    def __init__(self, masters):
        from redlock import Redlock

        # One attempt, like `try_lock`; everything else as it comes.
        self.redlock = Redlock(masters, retry_count=1)
        self.held = None

    def lock(self, resource, ttl):
        held = self.redlock.lock(resource, ttl)
        if not held:
            return "refused without a reason"
        self.held = held
        return f"held {held.key.decode()}"

    def unlock(self):
        # It does not tell what came of it.
        self.redlock.unlock(self.held)
        return "released"


class Pottery:
    def __init__(self, masters):
        self.masters = set(masters)
        self.held = None

    def lock(self, resource, ttl):
        from pottery import Redlock

        # It puts `redlock:` before the key.
        lock = Redlock(key=resource.removeprefix("redlock:"), masters=self.masters, auto_release_time=ttl / 1000)
        if not lock.acquire(blocking=False):
            return "refused without a reason"
        self.held = lock
        return f"held {lock._uuid}"

    def unlock(self):
        from pottery import ReleaseUnlockedLock

        try:
            self.held.release()
        except ReleaseUnlockedLock as error:
            return f"refused {type(error).__name__}"
        return "released"


def main():
    name, *addresses = sys.argv[1:]
    masters = [redis.Redis(host=host, port=int(port)) for host, port in (a.split(":") for a in addresses)]
    client = {"redlock-py": RedlockPy, "pottery": Pottery}[name](masters)
    versions = importlib.metadata.version
    print(f"{name} {versions(name)} with redis {versions('redis')} on Python {platform.python_version()}", flush=True)
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "lock":
            print(client.lock(arguments[0], int(arguments[1])), flush=True)
        else:
            print(client.unlock(), flush=True)


main()
