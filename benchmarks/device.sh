#!/bin/sh
# Measure sarrus.cuda on a machine with a GPU of NVIDIA: agreement of GPU, processor and core, throughput, and training; at most eight minutes, without network.
# Usage: benchmarks/device.sh [RESULTS.json]. It needs an installed sarrus, cuda-bindings, nvidia-cuda-nvrtc and a C++ compiler; for the training, torch. To prepare a machine without
# network, download the wheels of the last two on another one: pip download --no-deps --dest wheels cuda-bindings cuda-pathfinder nvidia-cuda-nvrtc
set -e
cd "$(dirname "$0")/.."
if ! command -v nvidia-smi >/dev/null; then
  echo "device.sh: no nvidia-smi; expected a driver of NVIDIA. Without a GPU: python3 -m benchmarks.device --device cpu --worlds 1024" >&2
  exit 1
fi
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
exec timeout 480 "${PYTHON:-python3}" -m benchmarks.device "$@"
