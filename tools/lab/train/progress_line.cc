#include "tools/lab/train/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "core/base/time.h"
#include "core/base/units.h"

namespace tierd {
namespace {
constexpr uint64_t kTerminalPeriodNs = 100'000'000;
constexpr uint64_t kPlainPeriodNs = 30'000'000'000;
constexpr double kLeastShare = 0.01;  // of the work, before anything is said about the rest
}  // namespace

ProgressLine::ProgressLine(bool quiet)
    : start_ns_(now_ns()), drawn_ns_(start_ns_), terminal_(isatty(STDERR_FILENO) != 0), quiet_(quiet) {}

ProgressLine::~ProgressLine() {
  if (open_) std::fputc('\n', stderr);
}

bool ProgressLine::due(bool ends) const {
  return !quiet_ && (ends || now_ns() - drawn_ns_ >= (terminal_ ? kTerminalPeriodNs : kPlainPeriodNs));
}

void ProgressLine::show(const std::string& text) {
  drawn_ns_ = now_ns();
  open_ = terminal_;
  std::fprintf(stderr, terminal_ ? "\r%s\x1b[K" : "%s\n", text.c_str());
  std::fflush(stderr);
}

double ProgressLine::seconds() const {
  return static_cast<double>(now_ns() - start_ns_) * 1e-9;
}

std::string ProgressLine::left(double share) const {
  if (share < kLeastShare) return "";
  return fmt::format(", {} left", format_duration(seconds() * (1 - share) / share));
}

}  // namespace tierd
