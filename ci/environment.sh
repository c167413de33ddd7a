# Sourced by the scripts of this folder: strict mode, top of the tree, ccache where it is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs="$(nproc)"
export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$jobs}"
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

# Every C and C++ file of ours below the given folders whose name ends as asked, one a line.
# sources '.*\.h' core tiers
sources() {
  local pattern="$1"
  shift
  find "$@" -type f -regextype posix-extended -regex "$pattern" | sort
}
