// Checks codecs: bytes must return from any instance, and bytes that none has compressed must do no harm.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "tools/tier/conform/simulated_core.h"
#include "tools/tier/conform/suites.h"

namespace tierd {
namespace {

constexpr const char* kAnswers = "no call throws, and none but those that must be refused fails";
constexpr const char* kBound = "bound: at least what compress writes, at most 2 n + 65536";
constexpr const char* kTooLittleRoom =
    "compress: too little room is refused (TIERD_E_NO_SPACE), and none but it is written to";
constexpr const char* kBack = "expand: gives back what was compressed, whatever lies behind it";
constexpr const char* kAnybody = "expand: any instance expands what another one has compressed";
constexpr const char* kMalformed = "expand: whatever nobody compressed is taken or refused (TIERD_E_INVALID)";
constexpr const char* kCutShort = "expand: what is cut short is refused (TIERD_E_INVALID)";
constexpr const char* kOtherSize =
    "expand: what was made from more or fewer bytes is refused (TIERD_E_INVALID)";

using Bytes = std::vector<uint8_t>;

// Draws bytes: sizes at the edges first, then any small size, because a codec may be slow by its settings.
// The contents are zeros, noise, values like those of pruned weights, or a text.
Bytes draw_bytes(uint32_t step, Random& random) {
  constexpr uint32_t kEdges[] = {0, 1, 2, 3, 63, 64, 65, 255, 256, 4095, 4096, 4097, 65536, 262144};
  const uint64_t n = step < std::size(kEdges) ? kEdges[step] : random.below(5'000);
  Bytes bytes(n);
  const uint64_t kind = random.below(4);
  for (uint64_t i = 0; i < n; ++i) {
    if (kind == 1) bytes[i] = static_cast<uint8_t>(random.below(256));
    if (kind == 2 && i / 2 % 2 == 0) bytes[i] = static_cast<uint8_t>(random.below(256));
    if (kind == 3) bytes[i] = static_cast<uint8_t>("a neuron, "[i % 10]);
  }
  return bytes;
}

class CodecTrial {
 public:
  CodecTrial(const StrategyChoice& choice, const PluginWorld& world, const SuiteOptions& options,
             Report& report)
      : report_(report), subject_(Subject<tierd_codec_1>::make(choice, world, options, report)) {}
  bool made() const { return subject_ != nullptr; }

  // Returns nothing if a rule is broken already.
  std::optional<Bytes> compress(const Bytes& bytes) {
    uint64_t most = 0, written = 0;
    if (!succeeds([&] { return table().bound(self(), bytes.size(), &most); })) return std::nullopt;
    const uint64_t allowed = 2 * bytes.size() + TIERD_CODEC_MOST_BEYOND;
    report_.check(kBound, most >= 1 && most <= allowed,
                  [&] { return fmt::format("{} for {} bytes", most, bytes.size()); });
    if (most == 0 || most > allowed) return std::nullopt;
    Guarded<uint8_t> out(most);
    if (!succeeds(
            [&] { return table().compress(self(), bytes.data(), bytes.size(), out.data(), most, &written); }))
      return std::nullopt;
    report_.check(kWithin, out.intact(), [&] { return fmt::format("compress: beyond {} bytes", most); });
    report_.check(kBound, written >= 1 && written <= most,
                  [&] { return fmt::format("wrote {} bytes, its bound is {}", written, most); });
    if (written == 0 || written > most) return std::nullopt;
    return Bytes(out.data(), out.data() + written);
  }

  // Compresses with one byte less room than `packed` has, the result of compressing `bytes`.
  void compress_into_too_little(const Bytes& bytes, const Bytes& packed) {
    const uint64_t cap = packed.size() - 1;
    uint64_t written = 0;
    Guarded<uint8_t> out(cap);
    const auto answer =
        call([&] { return table().compress(self(), bytes.data(), bytes.size(), out.data(), cap, &written); });
    report_.check(kTooLittleRoom, answer == TIERD_E_NO_SPACE && out.intact(), [&] {
      return fmt::format("{} bytes of room for {}: answered {}", cap, packed.size(), answer.value_or(0));
    });
  }

  void expands_to(const char* rule, const Bytes& packed, const Bytes& expected) {
    Guarded<uint8_t> out(expected.size());
    const auto answer = expand(packed, out, expected.size());
    report_.check(rule, answer && *answer >= 0 && std::equal(expected.begin(), expected.end(), out.data()),
                  [&] { return fmt::format("{} bytes, answered {}", expected.size(), answer.value_or(0)); });
  }
  void refuses(const char* rule, const Bytes& packed, uint64_t n_out) {
    Guarded<uint8_t> out(n_out);
    const auto answer = expand(packed, out, n_out);
    report_.check(rule, answer == TIERD_E_INVALID, [&] {
      return fmt::format("{} bytes into {}: answered {}", packed.size(), n_out, answer.value_or(0));
    });
  }
  // `packed` may expand to anything, but no byte outside the result may be written.
  void survives(const Bytes& packed, uint64_t n_out) {
    Guarded<uint8_t> out(n_out);
    const auto answer = expand(packed, out, n_out);
    report_.check(kMalformed, answer && (*answer >= 0 || *answer == TIERD_E_INVALID), [&] {
      return fmt::format("{} bytes into {}: answered {}", packed.size(), n_out, answer.value_or(0));
    });
  }

 private:
  const tierd_codec_1& table() const { return subject_->strategy.table; }
  void* self() const { return subject_->strategy.self; }

  // Returns the answer; nothing if the call throws.
  std::optional<int> call(const std::function<int()>& function) {
    std::optional<int> answer;
    try {
      answer = function();
    } catch (...) {  // reported below
    }
    report_.check(kAnswers, answer.has_value(), [] { return "threw an exception"; });
    return answer;
  }
  bool succeeds(const std::function<int()>& function) {
    const auto answer = call(function);
    const bool well = answer && *answer >= 0;
    report_.check(kAnswers, well, [&] { return fmt::format("answered {}", answer.value_or(0)); });
    return well;
  }
  // `packed` is copied to memory of exactly its size, so that AddressSanitizer finds reads behind it.
  std::optional<int> expand(const Bytes& packed, Guarded<uint8_t>& out, uint64_t n_out) {
    const Bytes in(packed.begin(), packed.end());
    const auto answer = call([&] { return table().expand(self(), in.data(), in.size(), out.data(), n_out); });
    report_.check(kWithin, out.intact(), [&] { return fmt::format("expand: beyond {} bytes", n_out); });
    return answer;
  }

  Report& report_;
  const std::unique_ptr<Subject<tierd_codec_1>> subject_;
};

void try_malformed(CodecTrial& codec, const Bytes& packed, uint64_t n, Random& random) {
  const auto some = packed.begin() + static_cast<ptrdiff_t>(random.below(packed.size()));
  codec.refuses(kCutShort, Bytes(packed.begin(), some), n);
  codec.refuses(kCutShort, Bytes(packed.begin(), packed.end() - 1), n);
  codec.refuses(kOtherSize, packed, n + 1);
  if (n > 0) codec.refuses(kOtherSize, packed, n - 1);
  Bytes spoilt = packed;
  spoilt[random.below(spoilt.size())] ^= static_cast<uint8_t>(1 + random.below(255));
  codec.survives(spoilt, n);
  Bytes noise(random.below(300));
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random.below(256));
  codec.survives(noise, n);
}

}  // namespace

void check_codec(const StrategyChoice& choice, const SuiteOptions& options, Report& report) {
  const SiteTable no_sites;
  const PluginWorld world(no_sites, 0, nullptr, {.topology = {}});
  StrategyChoice by_default = choice;
  by_default.parameters = *Parameters::read(*choice.plugin, {});
  CodecTrial first(choice, world, options, report), second(choice, world, options, report),
      other(by_default, world, options, report);
  if (!first.made() || !second.made() || !other.made()) return;
  for (uint32_t number = 0; number < options.worlds; ++number) {
    Random random(options.seed * 1000 + number);
    for (uint32_t step = 0; step < options.steps; ++step) {
      const Bytes bytes = draw_bytes(number * options.steps + step, random);
      const auto packed = first.compress(bytes);
      if (!packed) return;
      // Another instance, which was called differently before, is called on another thread.
      std::optional<Bytes> again;
      std::thread([&] { again = second.compress(bytes); }).join();
      report.check(kSame, again == packed, [&] { return fmt::format("{} bytes", bytes.size()); });
      first.compress_into_too_little(bytes, *packed);
      first.expands_to(kBack, *packed, bytes);
      Bytes padded = *packed;
      padded.resize(packed->size() + 1 + random.below(4096));
      first.expands_to(kBack, padded, bytes);
      other.expands_to(kAnybody, *packed, bytes);
      try_malformed(first, *packed, bytes.size(), random);
      if (random.below(2) == 0) second.expands_to(kBack, *packed, bytes);
    }
  }
}

}  // namespace tierd
