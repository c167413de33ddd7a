#include "core/model/text/merge_table.h"

#include <fmt/format.h>

#include <optional>

namespace tierd {
namespace {

uint64_t pair_key(uint32_t left, uint32_t right) {
  return uint64_t{left} << 32 | right;
}

}  // namespace

Result<MergeTable> merge_table(const std::vector<std::string>& merges,
                               const std::unordered_map<std::string_view, uint32_t>& tokens,
                               std::string_view origin) {
  MergeTable table;
  table.reserve(merges.size());
  for (uint32_t rank = 0; rank < merges.size(); ++rank) {
    const std::string& merge = merges[rank];
    const auto fail = [&](const std::string& what) {
      return Error{Code::corrupt, std::string(origin),
                   fmt::format("merge {} (\"{}\") {}", rank, merge, what)};
    };
    const size_t space = merge.find(' ', 1);
    if (space == std::string::npos || space + 1 == merge.size())
      return fail("is not two pieces separated by a space");
    const std::string parts[3] = {merge.substr(0, space), merge.substr(space + 1),
                                  merge.substr(0, space) + merge.substr(space + 1)};
    uint32_t found[3] = {};
    for (int i = 0; i < 3; ++i) {
      const auto it = tokens.find(parts[i]);
      if (it == tokens.end())
        return fail(fmt::format("needs \"{}\", which is not in the vocabulary", parts[i]));
      found[i] = it->second;
    }
    table.try_emplace(pair_key(found[0], found[1]), Merged{rank, found[2]});
  }
  return table;
}

void merge_by_rank(std::vector<MergeSymbol>& symbols, const MergeTable& merges) {
  merge_symbols(symbols, [&](const MergeSymbol& left, const MergeSymbol& right) -> std::optional<Merged> {
    const auto it = merges.find(pair_key(left.token, right.token));
    if (it == merges.end()) return std::nullopt;
    return it->second;
  });
}

}  // namespace tierd
