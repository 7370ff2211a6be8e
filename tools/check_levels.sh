#!/usr/bin/env bash
# Do the kernels compile for registers of every width? A machine builds its own level; what other levels make of the same files is only looked at
# here:  tools/check_levels.sh [LEVEL ...]
#   CXX, EIGEN, PYTHON   as in tools/sanitize.sh
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/eigen.sh
[ $# -gt 0 ] || set -- x86-64 x86-64-v3 x86-64-v4
status=0
# as one file: what several of them instantiate is looked at once
files=(cpp/kernels/{{tree,loop,derivative,simulation,variant}_batches,variant_simulation,{derivative,rate,contact,step}_kernels,shared_{many,variants,steps}}.cpp)
for level; do
  printf '#include "%s"\n' "${files[@]}" | "${CXX:-c++}" -std=c++17 -DNDEBUG -DEIGEN_DONT_VECTORIZE -isystem "$EIGEN" -march="$level" \
    "-DSARRUS_LEVEL=\"$level\"" -Wall -Wextra -Werror -fsyntax-only -I. -x c++ - || { echo "kernels do not compile for $level" >&2; status=1; }
done
exit $status
