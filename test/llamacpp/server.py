"""Runs llama.cpp's server on loopback until it is told to stop: python server.py MODEL PORT SLOTS METRICS(0|1)."""

import signal
import sys

import xllamacpp

model, port, slots, metrics = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "1"
params = xllamacpp.CommonParams()
params.model.path = model
params.model_alias = {"tiny"}
params.hostnames = ["127.0.0.1"]
params.port = port
params.n_parallel = slots
params.n_ctx = 4096 * slots
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.n_threads_http = 16
params.endpoint_metrics = metrics
params.endpoint_slots = True
params.warmup = False
params.offline = True
params.ui = False
server = xllamacpp.Server(params)
print("serving", server.listening_address, flush=True)
signal.sigwait({signal.SIGTERM, signal.SIGINT})
