#include "tools/tierd/hub/web_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "core/base/check.h"
#include "tools/tierd/hub/curl_library.h"
#include "tools/tierd/hub/environment.h"

namespace tierd {
namespace {

constexpr int kMostRedirects = 8;
constexpr size_t kLongestHead = 256 * 1024;      // bytes of headers, those of answers 100 included
constexpr long kAtOnce = 512 * 1024;             // bytes that a sink gets in one call, at most
constexpr long kSlowest = 1000;                  // bytes a second; a slower connection counts as idle
constexpr uint64_t kMostThrownAway = 64 * 1024;  // bytes of a body that is not used

// The scheme, host and port of a URL, in lower case where case has no meaning.
struct Origin {
  std::string scheme;
  std::string host;
  std::string port;
  bool operator==(const Origin&) const = default;
};
std::optional<Origin> origin_of(const CurlLibrary& curl, const std::string& url) {
  CURLU* const parsed = curl.url();
  Origin origin;
  const auto part = [&](CURLUPart which, std::string& out) {
    char* text = nullptr;
    if (curl.url_get(parsed, which, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return false;
    out = text;
    curl.free(text);
    std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
    return true;
  };
  const bool read = curl.url_set(parsed, CURLUPART_URL, url.c_str(), 0) == CURLUE_OK &&
                    part(CURLUPART_SCHEME, origin.scheme) && part(CURLUPART_HOST, origin.host) &&
                    part(CURLUPART_PORT, origin.port);
  curl.url_cleanup(parsed);
  if (!read || !may_lead("http", origin.scheme)) return std::nullopt;
  return origin;
}

bool is_redirect(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}
bool is_wanted(long status) {
  return status == 200 || status == 206;
}

bool is_unreachable(CURLcode code) {
  return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
         code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT;
}
// Another try would fail as well.
bool is_certificate_fault(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_SSL_ISSUER_ERROR;
}

}  // namespace

// The state that the callbacks of one request share.
struct WebClient::Transfer {
  const WebSink& sink;
  WebReply reply = {};
  size_t head_bytes = 0;
  bool head_whole = false;  // the empty line after the headers has arrived
  bool begun = false;
  uint64_t thrown_away = 0;
  std::optional<Error> failed = {};

  Status begin() {
    if (begun) return {};
    begun = true;
    return sink.begin(reply);
  }

  static size_t header(char* data, size_t, size_t bytes, void* self) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    WebReply& reply = transfer.reply;
    transfer.head_bytes += bytes;
    if (transfer.head_bytes > kLongestHead) {
      transfer.failed =
          Error{Code::corrupt, reply.url, fmt::format("the headers are longer than {} bytes", kLongestHead)};
      return 0;
    }
    std::string_view line(data, bytes);
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
    if (line.starts_with("HTTP/")) {
      reply.headers.clear();  // those of an earlier answer 100
      transfer.head_whole = false;
      const size_t status = std::min(line.find(' '), line.size() - 1) + 1;
      std::from_chars(line.data() + status, line.data() + line.size(), reply.status);
      return bytes;
    }
    if (line.empty()) transfer.head_whole = true;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return bytes;
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    const size_t value = std::min(line.find_first_not_of(" \t", colon + 1), line.size());
    reply.headers[std::move(name)] = line.substr(value);
    return bytes;
  }

  static size_t body(char* data, size_t, size_t bytes, void* self) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    if (!is_wanted(transfer.reply.status)) {
      transfer.thrown_away += bytes;
      return transfer.thrown_away <= kMostThrownAway ? bytes : 0;
    }
    Status taken = transfer.begin();
    if (taken.ok()) taken = transfer.sink.bytes(std::as_bytes(std::span(data, bytes)));
    if (taken.ok()) return bytes;
    transfer.failed = taken.error();
    return 0;
  }
};

const std::string& WebReply::header(const std::string& name) const {
  static const std::string kNone;
  const auto found = headers.find(name);
  return found != headers.end() ? found->second : kNone;
}

WebClient::WebClient(WebPatience patience) : patience_(patience) {}

WebClient::~WebClient() {
  if (handle_ != nullptr) (*curl_library())->easy_cleanup(handle_);
}

Result<WebReply> WebClient::hop(const CurlLibrary& curl, const WebRequest& request, bool trusted,
                                const WebSink& sink, std::string& redirect) {
  CURL* const handle = handle_;
  curl.easy_reset(handle);
  Transfer transfer{sink};
  transfer.reply.url = shown_url(request.url);
  curl_slist* headers = nullptr;
  const auto add = [&](const std::string& line) { headers = curl.slist_append(headers, line.c_str()); };
  if (trusted && !request.token.empty()) add("Authorization: Bearer " + request.token);
  if (request.from > 0) add(fmt::format("Range: bytes={}-", request.from));
  if (request.from > 0 && !request.if_range.empty()) add("If-Range: " + request.if_range);
  curl.easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl.easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  curl.easy_setopt(handle, CURLOPT_USERAGENT, "tierd/" TIERD_VERSION);
  curl.easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl.easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  curl.easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  // The variables of curl and of OpenSSL, for users with a certificate authority of their own.
  std::optional<std::string> authorities = variable("CURL_CA_BUNDLE");
  if (!authorities) authorities = variable("SSL_CERT_FILE");
  if (authorities) curl.easy_setopt(handle, CURLOPT_CAINFO, authorities->c_str());
  curl.easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, patience_.connect_seconds);
  curl.easy_setopt(handle, CURLOPT_BUFFERSIZE, kAtOnce);
  curl.easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, kSlowest);
  curl.easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, patience_.idle_seconds);
  curl.easy_setopt(handle, CURLOPT_HEADERFUNCTION, &Transfer::header);
  curl.easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  curl.easy_setopt(handle, CURLOPT_WRITEFUNCTION, &Transfer::body);
  curl.easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  const CURLcode code = curl.easy_perform(handle);
  curl.slist_free_all(headers);

  WebReply& reply = transfer.reply;
  double connected = 0;
  curl.easy_getinfo(handle, CURLINFO_CONNECT_TIME, &connected);
  reply.reached = reply.status != 0 || connected > 0 || !is_unreachable(code);
  if (transfer.failed) return *transfer.failed;
  const bool enough = code == CURLE_WRITE_ERROR && transfer.thrown_away > kMostThrownAway;
  if (is_certificate_fault(code)) {
    return Error{Code::unsupported, reply.url,
                 fmt::format("the server's certificate is not to be trusted: {}", curl.easy_strerror(code))};
  }
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
    return Error{Code::invalid_argument, reply.url, curl.easy_strerror(code)};
  if (code != CURLE_OK && !enough) {
    reply.broken = curl.easy_strerror(code);
  } else if (!transfer.head_whole) {
    reply.broken = "the connection ended within the headers";
  } else if (is_wanted(reply.status)) {
    TIERD_TRY(transfer.begin());  // an empty file
  } else if (is_redirect(reply.status)) {
    char* target = nullptr;
    curl.easy_getinfo(handle, CURLINFO_REDIRECT_URL, &target);
    if (target != nullptr) redirect = target;
  }
  return std::move(reply);
}

Result<WebReply> WebClient::get(const WebRequest& request, const WebSink& sink) {
  TIERD_ASSIGN(const CurlLibrary* const curl, curl_library());
  if (handle_ == nullptr) handle_ = curl->easy_init();
  TIERD_CHECK(handle_ != nullptr);
  const std::optional<Origin> first = origin_of(*curl, request.url);
  if (!first) return Error{Code::invalid_argument, shown_url(request.url), "is no http or https URL"};
  WebRequest next = request;
  std::optional<Origin> here = first;
  for (int i = 0; i <= kMostRedirects; ++i) {
    std::string redirect;
    TIERD_ASSIGN(WebReply reply, hop(*curl, next, here == first, sink, redirect));
    if (redirect.empty()) return reply;
    const std::optional<Origin> there = origin_of(*curl, redirect);
    if (!there || !may_lead(here->scheme, there->scheme)) {
      return Error{Code::invalid_argument, reply.url,
                   fmt::format("redirects to {}, where {} was expected", shown_url(redirect),
                               here->scheme == "https" ? "https" : "http or https")};
    }
    here = there;
    next.url = redirect;
  }
  return Error{Code::invalid_argument, shown_url(request.url),
               fmt::format("redirects more than {} times", kMostRedirects)};
}

bool may_lead(std::string_view from_scheme, std::string_view to_scheme) {
  return to_scheme == "https" || (to_scheme == "http" && from_scheme == "http");
}

std::string shown_url(const std::string& url) {
  std::string shown = url.substr(0, url.find_first_of("?#"));
  const size_t host = shown.find("://");
  if (host == std::string::npos) return shown;
  const size_t slash = std::min(shown.find('/', host + 3), shown.size());
  const size_t user = shown.rfind('@', slash);
  if (user != std::string::npos && user > host) shown.erase(host + 3, user - host - 2);
  return shown;
}

std::string url_path(const std::string& path) {
  std::string out;
  for (const unsigned char c : path) {
    const bool plain = std::isalnum(c) != 0 ||
                       std::string_view("-_.~/").find(static_cast<char>(c)) != std::string_view::npos;
    out += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return out;
}

}  // namespace tierd
