"""`python -m simops.sim.worker LINK FILE`: a worker process of an engine, started by the engine itself."""

from __future__ import annotations

import signal
import socket
import sys

from simops.sim.parallel import serve

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides when it ends
    with socket.socket(fileno=int(sys.argv[1])) as link:
        serve(link, int(sys.argv[2]))
