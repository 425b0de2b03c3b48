"""Lets vLLM's processes sleep for 20 us where they would spin on sched_yield while they wait for each other.

Engine and worker would keep two cores busy, and Linux lets whoever shares a core with such a spinner wait for up to
0.7 s (seen with 6.18): on a small machine clients, proxies and the engine itself then stand still together.
"""

import os
import time

os.sched_yield = lambda: time.sleep(20e-6)
