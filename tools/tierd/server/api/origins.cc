#include "tools/tierd/server/api/origins.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cctype>

#include "core/model/text/text_stream.h"
#include "core/system/host_facts.h"

namespace tierd {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

constexpr size_t kMostShown = 200;

// Returns "name" of "name:8080", "::1" of "[::1]:8080".
std::string without_port(std::string_view host) {
  if (host.starts_with("[")) return lower(host.substr(1, host.find(']') - 1));
  const size_t colon = host.find(':');
  if (colon != std::string_view::npos && host.find(':', colon + 1) != std::string_view::npos)
    return lower(host);
  return lower(host.substr(0, colon));
}

bool is_address(const std::string& name) {
  boost::system::error_code none;
  (void)boost::asio::ip::make_address(name, none);
  return !none;
}

bool only_asks(const HttpRequest& head) {
  return head.method == "GET" || head.method == "HEAD";
}

bool lists(const std::vector<std::string>& list, const std::string& name) {
  return std::ranges::any_of(list, [&](const std::string& each) { return each == "*" || each == name; });
}

}  // namespace

Origins::Origins(std::string bound, std::vector<std::string> hosts, std::vector<std::string> pages)
    : hosts_(std::move(hosts)), pages_(std::move(pages)) {
  if (!bound.empty()) hosts_.push_back(std::move(bound));
  hosts_.emplace_back("localhost");
  hosts_.push_back(read_host_facts().name);
  for (std::string& name : hosts_) name = lower(name);
  for (std::string& page : pages_) page = lower(page);
}

std::optional<std::string> Origins::refusal(const HttpRequest& head) const {
  if (!is_called(head.host)) {
    return fmt::format("'{}' is not a name of this server; allow it with --allowed-host",
                       well_formed(head.host.substr(0, kMostShown)));
  }
  if (only_asks(head) || may_send(head.origin, head.host)) return std::nullopt;
  return fmt::format("pages of '{}' may not send this request; allow them with --cors-origins",
                     well_formed(head.origin.substr(0, kMostShown)));
}

HttpHeaders Origins::headers(const HttpRequest& head) const {
  if (!may_read(head.origin)) return {};
  return {{"Access-Control-Allow-Origin", head.origin},
          {"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
          // "*" covers every header except Authorization.
          {"Access-Control-Allow-Headers", "Content-Type, Authorization, X-Api-Key, X-Request-Id, *"},
          {"Access-Control-Max-Age", "600"},
          {"Vary", "Origin"}};
}

bool Origins::is_called(std::string_view host) const {
  const std::string name = without_port(host);
  return host.empty() || is_address(name) || lists(hosts_, name);
}

bool Origins::may_send(std::string_view origin, std::string_view host) const {
  if (origin.empty() || may_read(origin)) return true;
  const size_t scheme = origin.find("://");
  return scheme != std::string_view::npos && lower(origin.substr(scheme + 3)) == lower(host);
}

bool Origins::may_read(std::string_view origin) const {
  return !origin.empty() && lists(pages_, lower(origin));
}

bool is_json(const HttpRequest& head) {
  if (only_asks(head)) return true;
  std::string type = lower(std::string_view(head.content_type).substr(0, head.content_type.find(';')));
  while (type.ends_with(' ')) type.pop_back();
  return type.empty() || type == "application/json" ||
         (type.starts_with("application/") && type.ends_with("+json"));
}

}  // namespace tierd
