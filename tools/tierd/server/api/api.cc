#include "tools/tierd/server/api/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/base/log.h"
#include "core/model/text/text_stream.h"

namespace tierd {
namespace {

constexpr std::string_view kTiers = "/v1/tiers/";
constexpr std::string_view kOfATier = "/capacity";

// Constant time: the duration does not depend on the length of the common prefix.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned char differs = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    differs |= static_cast<unsigned char>(a[i] ^ (b.empty() ? 0 : b[i % b.size()]));
  return differs == 0;
}

// Returns KEY of "Bearer KEY". The scheme may be in letters of either case.
std::string_view without_scheme(std::string_view credentials) {
  constexpr std::string_view kBearer = "bearer ";
  const bool has_scheme = credentials.size() >= kBearer.size() &&
                          std::equal(kBearer.begin(), kBearer.end(), credentials.begin(), [](char a, char b) {
                            return a == std::tolower(static_cast<unsigned char>(b));
                          });
  if (!has_scheme) return credentials;
  const size_t begin = credentials.find_first_not_of(' ', kBearer.size());
  return begin == std::string_view::npos ? "" : credentials.substr(begin);
}

}  // namespace

std::string_view Api::tier_in(std::string_view path) {
  const bool fits =
      path.starts_with(kTiers) && path.ends_with(kOfATier) && path.size() > kTiers.size() + kOfATier.size();
  return fits ? path.substr(kTiers.size(), path.size() - kTiers.size() - kOfATier.size()) : "";
}

Api::Api(Options options, const Tokenizer& tokenizer, WorkDesk& desk)
    : options_(std::move(options)),
      metrics_(options_.sites),
      tokenizer_(tokenizer),
      bound_(tokenizer),
      desk_(desk),
      random_(std::random_device()()) {
  options_.defaults.bound = &bound_;
  state_.tiers = std::move(options_.tiers);
}

void Api::set_state(ServiceState state) {
  const std::lock_guard lock(mutex_);
  state_ = std::move(state);
}

ServiceState Api::state() {
  const std::lock_guard lock(mutex_);
  return state_;
}

bool Api::authorized(const HttpRequest& request) const {
  if (options_.keys.empty()) return true;
  const std::string_view given =
      without_scheme(request.api_key.empty() ? request.authorization : request.api_key);
  bool found = false;
  for (const std::string& key : options_.keys) found |= same_secret(given, key);
  return found;
}

struct Api::Entry {
  const char* path;
  const char* method;
  Route route;
  bool open = false;  // needs no key
  bool while_loading = false;

  bool takes(std::string_view of) const {
    return of == path || (route == &Api::tier_capacity && !tier_in(of).empty());
  }
};

std::span<const Api::Entry> Api::entries() {
  static constexpr Entry kEntries[] = {
      {"/health", "GET", &Api::health, true, true},
      {"/v1/health", "GET", &Api::health, true, true},
      {"/v1/models", "GET", &Api::models, true, true},
      {"/models", "GET", &Api::models, true, true},
      {"/props", "GET", &Api::props},
      {"/slots", "GET", &Api::slots},
      {"/metrics", "GET", &Api::metrics},
      {"/v1/tiers", "GET", &Api::tiers},
      {"/v1/tiers/{tier}/capacity", "POST", &Api::tier_capacity},
      {"/tokenize", "POST", &Api::tokenize, false, true},
      {"/detokenize", "POST", &Api::detokenize, false, true},
      {"/v1/embeddings", "POST", &Api::embeddings},
      {"/embeddings", "POST", &Api::embeddings},
      {"/embedding", "POST", &Api::embeddings},
      {"/v1/completions", "POST", &Api::completions},
      {"/completions", "POST", &Api::native_completions},
      {"/completion", "POST", &Api::native_completions},
      {"/v1/chat/completions", "POST", &Api::chat_completions},
      {"/chat/completions", "POST", &Api::chat_completions},
      {"/apply-template", "POST", &Api::apply_template, false, true},
  };
  return kEntries;
}

const Api::Entry* Api::entry_for(const HttpRequest& request) {
  // HEAD has the same routes as GET. The server leaves the body out.
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  for (const Entry& entry : entries()) {
    if (entry.takes(request.path) && method == entry.method) return &entry;
  }
  return nullptr;
}

bool Api::admit(const HttpRequest& head, HttpReply& reply) {
  const auto refuse = [&](unsigned status, std::string why) {
    send(reply, api_error(status, std::move(why)));
    return false;
  };
  if (auto stranger = options_.origins.refusal(head)) return refuse(403, std::move(*stranger));
  // A browser sends OPTIONS before a request (CORS preflight), always without a key.
  if (head.method == "OPTIONS") {
    reply.send(204, {}, {}, {{"Allow", "GET, HEAD, POST, OPTIONS"}});
    return false;
  }
  const Entry* const entry = entry_for(head);
  if (entry == nullptr) {
    const bool known = std::any_of(entries().begin(), entries().end(),
                                   [&](const Entry& other) { return other.takes(head.path); });
    return known ? refuse(405, fmt::format("{} does not take {}", head.path, head.method))
                 : refuse(404, fmt::format("there is no {}", well_formed(head.path.substr(0, 200))));
  }
  if (!entry->open && !authorized(head)) return refuse(401, "the API key is missing or wrong");
  if (!is_json(head)) return refuse(415, "the body's type is not application/json (curl --json)");
  if (!entry->while_loading && batcher_.load() == nullptr) return refuse(503, "Loading model");
  return true;
}

void Api::handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
  (this->*entry_for(request)->route)(request, reply);
}

void Api::answered(const HttpRecord& record) {
  const bool asks_how_it_is =
      record.status == 200 && (record.path.ends_with("/health") || record.path == "/metrics");
  if (options_.quiet || asks_how_it_is) return;
  const double ms = std::chrono::duration<double, std::milli>(record.took).count();
  const std::string path = well_formed(record.path.substr(0, 200));
  const std::string what = record.method.empty() ? "no HTTP" : record.method + " " + path;
  const LogField fields[] = {{"request", record.id},
                             {"method", record.method},
                             {"path", path},
                             {"status", uint64_t{record.status}},
                             {"ms", ms}};
  say(fmt::format("{} {} in {:.1f} ms{} [{}]", what, record.status, ms,
                  record.heard ? "" : ", the client left before its end", record.id),
      fields);
}

std::string Api::error_body(unsigned status, const std::string& message) const {
  return api_error(status, message).body();
}

}  // namespace tierd
