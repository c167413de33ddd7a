#include "core/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/base/log.h"
#include "core/base/time.h"
#include "core/base/units.h"

namespace tierd {
namespace {
constexpr uint64_t kTerminalPeriodNs = 100'000'000;
constexpr uint64_t kPlainPeriodNs = 5'000'000'000;
}  // namespace

Progress::Progress(std::string title, uint64_t total, bool quiet, std::string unit)
    : title_(std::move(title)),
      unit_(std::move(unit)),
      total_(total),
      start_ns_(now_ns()),
      drawn_ns_(start_ns_),
      terminal_(log_format() == LogFormat::text && isatty(STDERR_FILENO) != 0),
      quiet_(quiet) {}

Progress::~Progress() {
  // Ends an unfinished bar with a new line, so that the next error is printed below it.
  if (!finished_ && terminal_ && !quiet_ && shown()) std::fputc('\n', stderr);
}

void Progress::advance(uint64_t done) {
  done_ += done;
  const uint64_t now = now_ns();
  if (now - drawn_ns_ < (terminal_ ? kTerminalPeriodNs : kPlainPeriodNs)) return;
  drawn_ns_ = now;
  draw(false);
}

void Progress::skip(uint64_t done) {
  skipped_ += done;
  advance(done);
}

void Progress::take_back(uint64_t done) {
  done_ -= std::min(done, done_);
  skipped_ = std::min(skipped_, done_);
}

void Progress::say_above(std::string_view line) {
  if (terminal_ && !quiet_) std::fputs("\r\x1b[K", stderr);
  say(line);
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  draw(true);
}

std::string Progress::amount(uint64_t of) const {
  return unit_.empty() ? format_bytes(static_cast<double>(of)) : fmt::format("{} {}", of, unit_);
}

void Progress::draw(bool last) {
  if (quiet_) return;
  const double seconds = std::max(1e-9, static_cast<double>(now_ns() - start_ns_) * 1e-9);
  const double rate = static_cast<double>(done_ - skipped_) / seconds;
  std::string text = title_ + " ";
  if (total_ != 0) {
    const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
    if (terminal_) {
      constexpr int kWidth = 24;
      const int filled = static_cast<int>(share * kWidth);
      text += fmt::format("[{}{}] ", std::string(filled, '#'), std::string(kWidth - filled, '.'));
    }
    text += fmt::format("{:3.0f} %  {} of {}", share * 100, amount(done_), amount(total_));
  } else {
    text += amount(done_);
  }
  text += "  " + (unit_.empty() ? format_rate(rate) : fmt::format("{:.3g} {}/s", rate, unit_));
  if (last) {
    text += fmt::format("  in {}", format_duration(seconds));
  } else if (total_ > done_ && rate > 0) {
    text += fmt::format("  {} left", format_duration(static_cast<double>(total_ - done_) / rate));
  }
  if (!terminal_) return say(text);
  std::fprintf(stderr, "\r%s\x1b[K%s", text.c_str(), last ? "\n" : "");
  std::fflush(stderr);
}

}  // namespace tierd
