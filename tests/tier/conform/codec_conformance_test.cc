// Runs the suite of codecs on a sound one, and on copies of it with one mistake each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tierd/plugin.hpp"
#include "tools/tier/conform/suites.h"

namespace tierd {
namespace {

enum class Mistake {
  none,
  bound_of_text,         // a bound as if no data grew
  writes_beyond_room,    // and reports success
  goes_by_its_history,   // compresses the same bytes differently the next time
  needs_its_parameters,  // expands only with the same parameters
  minds_what_is_behind,
  takes_what_is_short,
  takes_another_size,
  writes_beyond_the_neuron,
  throws,
};

// The format: the number of bytes, then pairs of a count and a byte.
template <Mistake kMistake>
class Runs {
 public:
  explicit Runs(const Host& host)
      : mark_(kMistake == Mistake::needs_its_parameters ? static_cast<uint8_t>(host.integer("mark")) : 0) {}

  void bound(uint64_t n, uint64_t& bytes) {
    bytes = 9 + (kMistake == Mistake::bound_of_text ? n / 2 : 2 * n);
  }

  void compress(const void* in, uint64_t n, void* out, uint64_t cap, uint64_t& written) {
    if (kMistake == Mistake::goes_by_its_history) ++mark_;
    std::vector<uint8_t> made(sizeof n);
    std::memcpy(made.data(), &n, sizeof n);
    made.push_back(mark_);
    const auto* bytes = static_cast<const uint8_t*>(in);
    for (uint64_t i = 0; i < n;) {
      uint64_t end = i;
      while (end < n && end - i < 255 && bytes[end] == bytes[i]) ++end;
      made.push_back(static_cast<uint8_t>(end - i));
      made.push_back(bytes[i]);
      i = end;
    }
    written = made.size();
    if (made.size() > cap && kMistake == Mistake::writes_beyond_room && made.size() < cap + 16) {
      written = cap;
    } else if (made.size() > cap) {
      throw Failure(TIERD_E_NO_SPACE, "too little room");
    }
    std::memcpy(out, made.data(), made.size());
  }

  void expand(const void* in, uint64_t n_in, void* out, uint64_t n_out) {
    const auto* bytes = static_cast<const uint8_t*>(in);
    uint64_t n = 0;
    check(n_in >= 9);
    std::memcpy(&n, in, sizeof n);
    if (kMistake == Mistake::takes_another_size) n = std::min(n, n_out);
    check(n == n_out || kMistake == Mistake::takes_another_size);
    check(kMistake != Mistake::needs_its_parameters || bytes[8] == mark_);
    auto* to = static_cast<uint8_t*>(out);
    uint64_t at = 9, done = 0;
    while (done < n) {
      if (kMistake == Mistake::takes_what_is_short && n_in - at < 2) return;
      check(n_in - at >= 2);
      const uint64_t count = std::min<uint64_t>(bytes[at], n - done);
      check(count != 0 && (count == bytes[at] || kMistake == Mistake::takes_another_size));
      std::memset(to + done, bytes[at + 1], count);
      done += count;
      at += 2;
    }
    check(kMistake != Mistake::minds_what_is_behind || at == n_in);
    if (kMistake == Mistake::writes_beyond_the_neuron) to[n_out] = 0;
  }

  static std::string broken() {
    static constexpr tierd_param kMark[] = {
        tierd::integer("mark", "0", 0, 9, "what is written before the runs")};
    static constexpr tierd_plugin kPlugin = with_params(codec<Runs>("runs", "1.0", ""), kMark);
    Report report;
    SuiteOptions options;
    options.worlds = 4;
    run_suite({&kPlugin, "", *Parameters::read(kPlugin, {}), nullptr}, options, report);
    return report.text(false);
  }

 private:
  static void check(bool sound) {
    if (sound) return;
    if (kMistake == Mistake::throws) throw 42;
    throw Failure(TIERD_E_INVALID, "these are no runs");
  }
  uint8_t mark_;
};

using testing::HasSubstr;

TEST(CodecConformance, ASoundOneKeepsTheRules) {
  EXPECT_EQ(Runs<Mistake::none>::broken(), "");
}

TEST(CodecConformance, EveryMistakeIsCaught) {
  EXPECT_THAT(Runs<Mistake::bound_of_text>::broken(),
              HasSubstr("no call throws, and only calls that must be refused fail"));
  EXPECT_THAT(Runs<Mistake::writes_beyond_room>::broken(), HasSubstr("too little room is refused"));
  EXPECT_THAT(Runs<Mistake::goes_by_its_history>::broken(), HasSubstr("the same calls and seed"));
  EXPECT_THAT(Runs<Mistake::needs_its_parameters>::broken(), HasSubstr("any instance expands"));
  EXPECT_THAT(Runs<Mistake::minds_what_is_behind>::broken(),
              HasSubstr("expand: restores the compressed bytes, whatever follows them"));
  EXPECT_THAT(Runs<Mistake::takes_what_is_short>::broken(),
              HasSubstr("expand: truncated input is refused (TIERD_E_INVALID)"));
  EXPECT_THAT(Runs<Mistake::takes_another_size>::broken(), HasSubstr("more or fewer bytes is refused"));
  EXPECT_THAT(Runs<Mistake::writes_beyond_the_neuron>::broken(), HasSubstr("within the arrays"));
  EXPECT_THAT(
      Runs<Mistake::throws>::broken(),
      HasSubstr("expand: bytes that were never compressed are accepted or refused (TIERD_E_INVALID)"));
}

}  // namespace
}  // namespace tierd
