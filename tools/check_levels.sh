#!/usr/bin/env bash
# Do the kernels compile for registers of every width? A machine builds its own level, and the baseline for one state only; what other levels make
# of the same files is only looked at here:  tools/check_levels.sh [LEVEL ...]
#   CXX, EIGEN, PYTHON   as in tools/sanitize.sh
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/eigen.sh
[ $# -gt 0 ] || set -- x86-64 x86-64-v3 x86-64-v4
status=0
for level; do
  for file in cpp/kernels/{*_batches,variant_simulation,shared_{many,variants},{derivative,rate,contact,step}_kernels,shared_steps}.cpp; do
    "${CXX:-c++}" -std=c++17 -DNDEBUG -DEIGEN_DONT_VECTORIZE -isystem "$EIGEN" -march="$level" "-DSARRUS_LEVEL=\"$level\"" -Wall -Wextra -Werror \
      -fsyntax-only "$file" || { echo "$file does not compile for $level" >&2; status=1; }
  done
done
exit $status
