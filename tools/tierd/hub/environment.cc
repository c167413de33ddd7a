#include "tools/tierd/hub/environment.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "core/base/file.h"

namespace tierd {
namespace {

constexpr uint64_t kLongestToken = 4096;  // bytes

Result<std::string> checked_token(std::string token, const std::string& origin) {
  const auto blank = [](unsigned char c) { return std::isspace(c) != 0; };
  while (!token.empty() && blank(static_cast<unsigned char>(token.back()))) token.pop_back();
  const size_t begin = static_cast<size_t>(std::ranges::find_if_not(token, blank) - token.begin());
  token.erase(0, begin);
  const bool printable = std::ranges::all_of(token, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (printable && token.size() <= kLongestToken) return token;
  return Error{
      Code::invalid_argument, origin,
      "this is no access token: up to 4096 letters, digits and marks, without spaces, were expected"};
}

}  // namespace

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<std::string> path_variable(const char* name) {
  auto path = variable(name);
  const auto home = variable("HOME");
  if (path && home && path->starts_with("~/")) path = *home + path->substr(1);
  return path;
}

Result<std::string> hub_home() {
  if (auto home = path_variable("HF_HOME")) return *home;
  if (const auto cache = path_variable("XDG_CACHE_HOME")) return *cache + "/huggingface";
  if (const auto home = variable("HOME")) return *home + "/.cache/huggingface";
  return Error{Code::not_found, "the cache of models", "set HF_HOME to the folder that holds it"};
}

Result<std::string> hub_endpoint() {
  std::string endpoint = variable("HF_ENDPOINT").value_or("https://huggingface.co");
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const bool plain = endpoint.find_first_of(" ?#@\r\n\t") == std::string::npos;
  if (plain && (endpoint.starts_with("https://") || endpoint.starts_with("http://"))) return endpoint;
  return Error{Code::invalid_argument, "HF_ENDPOINT",
               "an http or https URL without a user, a query or a fragment was expected, such as "
               "https://huggingface.co"};
}

Result<std::string> hub_token(const std::string& given) {
  if (!given.empty()) return checked_token(given, "--hf-token");
  for (const char* const name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (auto token = variable(name)) return checked_token(std::move(*token), name);
  }
  std::string path = path_variable("HF_TOKEN_PATH").value_or("");
  if (path.empty()) {
    TIERD_ASSIGN(const std::string home, hub_home());
    path = home + "/token";
  }
  if (!file_exists(path)) return std::string();
  TIERD_ASSIGN(std::string token, read_whole_file(path, kLongestToken));
  return checked_token(std::move(token), path);
}

bool hub_offline() {
  for (const char* const name : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}) {
    std::string value = variable(name).value_or("");
    std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::toupper(c); });
    if (value == "1" || value == "TRUE" || value == "YES" || value == "ON") return true;
  }
  return false;
}

}  // namespace tierd
