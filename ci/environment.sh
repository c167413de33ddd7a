# Sourced by the scripts of this folder: strict mode, top of the tree, ccache where it is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs="$(nproc)"
export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$jobs}"
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  # Paths below the tree are relative, so that another clone hits. Tests contain the path of the tree, and hit only in a
  # clone at the same path. ccache requires the sloppiness for precompiled headers.
  export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=true
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
fi

# Prints the files below the given folders whose path matches a pattern, one a line:
# sources '.*\.h' core tiers
sources() {
  local pattern="$1"
  shift
  find "$@" -type f -regextype posix-extended -regex "$pattern" | sort
}
