#include "tools/measurement/peer.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <system_error>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/time.h"

namespace tierd {
namespace {

constexpr const char* kRateOption = "--peer-rate";
constexpr size_t kMostOutput = size_t{4} << 20;
constexpr size_t kLastLines = 10;

// Appends the peer's last lines to the error.
Error with_last_lines(Error error, std::string_view output) {
  while (!output.empty() && output.back() == '\n') output.remove_suffix(1);
  error.detail += output.empty() ? "; it printed nothing" : "; its last lines:";
  while (!output.empty() && error.more.size() < kLastLines) {
    const size_t begin = output.rfind('\n') + 1;  // 0 if only one line is left
    error.more.insert(error.more.begin(), "  " + std::string(output.substr(begin)));
    output = output.substr(0, begin == 0 ? 0 : begin - 1);
  }
  return error;
}

std::string ending(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace

struct RatePattern::Compiled {
  explicit Compiled(pcre2_code* made) : code(made) {}
  ~Compiled() { pcre2_code_free(code); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  pcre2_code* code;
};

Result<RatePattern> RatePattern::compile(const std::string& expression) {
  int error = 0;
  PCRE2_SIZE place = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                                   PCRE2_MULTILINE, &error, &place, nullptr);
  if (code == nullptr) {
    std::array<PCRE2_UCHAR, 256> message{};
    pcre2_get_error_message(error, message.data(), message.size());
    return Error{Code::invalid_argument, kRateOption,
                 fmt::format("'{}' at {}: {}", expression, place, reinterpret_cast<char*>(message.data()))};
  }
  RatePattern pattern;
  pattern.compiled_ = std::make_shared<const Compiled>(code);
  uint32_t groups = 0;
  pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &groups);
  if (groups == 0) {
    return Error{Code::invalid_argument, kRateOption,
                 fmt::format("'{}' has no group; the first must be the rate: 'eval: ([0-9.]+)'", expression)};
  }
  return pattern;
}

Result<double> RatePattern::find(std::string_view output) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
      pcre2_match_data_create_from_pattern(compiled_->code, nullptr), &pcre2_match_data_free);
  const int found = pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(output.data()), output.size(),
                                0, 0, match.get(), nullptr);
  if (found < 0) return Error{Code::not_found, kRateOption, "does not match the peer's output"};
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match.get());
  // A group that did not take part in the match has no bounds.
  const std::string_view text =
      found < 2 ? std::string_view() : output.substr(bounds[2], bounds[3] - bounds[2]);
  double rate = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), rate);
  if (status != std::errc() || end != text.data() + text.size() || !(rate > 0) || !std::isfinite(rate)) {
    return Error{Code::corrupt, kRateOption,
                 fmt::format("found '{}' where a positive number was expected", text)};
  }
  return rate;
}

Result<PeerRun> run_peer(const std::string& command, const RatePattern& pattern) {
  const uint64_t begin = now_ns();
  // A newline before the closing bracket, in case the command ends in a comment.
  FILE* pipe = ::popen(("(" + command + "\n) 2>&1").c_str(), "re");
  if (pipe == nullptr) {
    return Error{Code::internal, "--peer", "cannot be started: " + std::generic_category().message(errno)};
  }
  std::string output;
  std::array<char, 4096> piece;
  while (const size_t n = std::fread(piece.data(), 1, piece.size(), pipe)) {
    output.append(piece.data(), n);
    if (output.size() > kMostOutput) output.erase(0, kMostOutput / 2);  // the end matters
  }
  const int status = ::pclose(pipe);
  PeerRun run;
  run.seconds = static_cast<double>(now_ns() - begin) * 1e-9;
  if (status != 0) return with_last_lines({Code::internal, "--peer", ending(status)}, output);
  auto rate = pattern.find(output);
  if (!rate.ok()) return with_last_lines(rate.error(), output);
  run.rate = *rate;
  return run;
}

}  // namespace tierd
