"""Measures how late the event loop of a Python program runs, since a late client reports its own delay as the server's.

Imported by every Python process whose PYTHONPATH has this folder. Appends to a file a process in CLIENT_LAG_DIR: a line
for each look at the clock, every 10 ms, with the Unix time and how late the look was, both in ms. lag.mjs reads it.
"""

import asyncio
import multiprocessing
import os
import time

RESOLUTION_S = 0.01
WRITE_EACH = 100


async def _measure(folder):
    name = multiprocessing.current_process().name
    looks = []
    with open(os.path.join(folder, f"{name}.{os.getpid()}"), "a", encoding="utf-8") as file:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(RESOLUTION_S)
            late_ms = max(0.0, time.perf_counter() - began - RESOLUTION_S) * 1000
            looks.append(f"{time.time() * 1000:.0f} {late_ms:.3f}\n")
            if len(looks) == WRITE_EACH:
                file.write("".join(looks))
                file.flush()
                looks.clear()


def _measured_run(folder, plain_run):
    def run(runner, main, **options):
        async def measured():
            task = asyncio.get_running_loop().create_task(_measure(folder))
            try:
                return await main
            finally:
                task.cancel()

        return plain_run(runner, measured(), **options)

    return run


if "CLIENT_LAG_DIR" in os.environ:
    asyncio.Runner.run = _measured_run(os.environ["CLIENT_LAG_DIR"], asyncio.Runner.run)
