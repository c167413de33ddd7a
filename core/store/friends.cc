#include "core/store/friends.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/store/file.h"
#include "core/store/json_fields.h"

namespace tierd {
namespace {

constexpr uint64_t kMostFriendBytes = uint64_t{128} << 20;  // of a file: some million neurons

}  // namespace

std::string fault_of_friends(std::span<const uint32_t> friends, uint32_t neurons) {
  if (friends.size() != neurons) return fmt::format("has {} friends, expected {}", friends.size(), neurons);
  for (uint32_t i = 0; i < neurons; ++i) {
    if (friends[i] >= neurons) return fmt::format("names neuron {} of {}", friends[i], neurons);
    if (friends[i] == i) return fmt::format("names neuron {} as its own friend", i);
  }
  return {};
}

Result<FriendTables> read_friends(const std::string& path) {
  TIERD_ASSIGN(const std::string text, read_text_file(path, kMostFriendBytes));
  TIERD_ASSIGN(const nlohmann::json parsed, parse_json(text, path));
  TIERD_ASSIGN(const JsonFields fields, JsonFields::of(parsed, path));
  FriendTables tables;
  for (const auto& [site, list] : parsed.items()) {
    if (!list.is_array()) return fields.error(Code::corrupt, site.c_str(), "is no list of neurons");
    TIERD_ASSIGN(tables[site], fields.u32_list(site.c_str()));
  }
  if (tables.empty()) return Error{Code::corrupt, path, "holds no site with a list of neurons"};
  return tables;
}

std::string friends_text(const FriendTables& tables) {
  std::string text;
  for (const auto& [site, friends] : tables) {
    text += fmt::format("{}\n{}: [{}]", text.empty() ? "{" : ",", nlohmann::json(site).dump(),
                        fmt::join(friends, ","));
  }
  return text + "\n}\n";
}

}  // namespace tierd
