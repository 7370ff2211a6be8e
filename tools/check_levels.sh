#!/usr/bin/env bash
# Checks that the kernels compile for every register width, because a machine builds only its own level: tools/check_levels.sh [LEVEL ...]
#   CXX, EIGEN, PYTHON   as in tools/sanitize.sh
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/eigen.sh
[ $# -gt 0 ] || set -- x86-64 x86-64-v3 x86-64-v4
status=0
# compile all kernels as one file, so that shared instantiations are checked only once
files=(cpp/kernels/{{tree,loop,derivative,simulation,variant}_batches,variant_simulation,{derivative,rate,contact,step}_kernels,shared_{many,variants,steps}}.cpp)
for level; do
  printf '#include "%s"\n' "${files[@]}" | "${CXX:-c++}" -std=c++17 -DNDEBUG -DEIGEN_DONT_VECTORIZE -isystem "$EIGEN" -march="$level" \
    "-DSARRUS_LEVEL=\"$level\"" -Wall -Wextra -Werror -fsyntax-only -I. -x c++ - || { echo "kernels do not compile for $level" >&2; status=1; }
done
exit $status
