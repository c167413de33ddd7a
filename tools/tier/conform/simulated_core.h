// The surroundings of a plugin in the suites: sites, an instance behind the kernel's own guard, and arrays
// that detect writes beyond them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/base/checksum.h"
#include "core/base/random.h"
#include "core/kernel/strategies.h"
#include "core/strategy/plugin_file.h"
#include "core/strategy/plugin_world.h"
#include "core/strategy/strategy_instance.h"
#include "tools/tier/conform/report.h"
#include "tools/tier/conform/suites.h"

namespace tierd {

// Rules of all kinds.
inline constexpr const char* kMade = "an instance can be made of whatever its parameters allow";
inline constexpr const char* kMadeWithTensors = "an instance can be made with the tensors, for some sites";
inline constexpr const char* kWithin = "answers are written within the arrays that are given for them";
inline constexpr const char* kSame =
    "the same calls and seed give the same answers, whatever other instances do";

// Draws the sites of world number `world`: first the edge cases (none, one of one neuron, a tied embedding
// …), then random ones. Each site has one edition of its own, except the tied embedding.
SiteTable draw_sites(uint32_t world, Random& random);
// Gives site number s 1 + s % 4 editions of its own, each no larger than the one before; a tied embedding
// shares those of the head.
SiteTable in_several_editions(const SiteTable& drawn);

// `linear` by its definition, in double.
void naive_linear(const PluginTensors::Tensor& tensor, const float* x, uint32_t rows, float* y);

// Returns some of n neurons, ascending: none, all, few or many.
std::vector<uint32_t> draw_set(uint32_t n, Random& random);

// An array for an answer. `intact` returns whether no byte behind its elements was written.
template <class T>
class Guarded {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit Guarded(size_t n) : values_(n + kGuard), n_(n) {
    std::memset(static_cast<void*>(values_.data()), kMark, values_.size() * sizeof(T));
  }
  T* data() { return values_.data(); }
  const T& operator[](size_t i) const { return values_[i]; }
  bool intact() const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(values_.data() + n_);
    return std::all_of(bytes, bytes + kGuard * sizeof(T), [](unsigned char byte) { return byte == kMark; });
  }

 private:
  static constexpr size_t kGuard = 64;  // more than any world has editions
  static constexpr unsigned char kMark = 0xa5;
  std::vector<T> values_;
  size_t n_;
};

// A hash of all answers of an instance: two instances that answer alike have the same.
using Fingerprint = WordHash;

// An instance and its table.
template <class Table>
class Subject {
 public:
  // Returns NULL and reports a broken rule if the instance cannot be made; NULL alone if it may refuse.
  static std::unique_ptr<Subject> make(const StrategyChoice& choice, const PluginWorld& world,
                                       const SuiteOptions& options, Report& report) {
    std::unique_ptr<Subject> subject(new Subject);
    const Status read = read_table(*choice.plugin, choice.origin, subject->strategy.table);
    report.check("the table has what its kind needs", read.ok(), [&] { return read.error().line(); });
    if (!read.ok()) return nullptr;
    auto made = StrategyInstance::create(choice, world);
    const bool may_refuse =
        options.tensors != nullptr || (!made.ok() && made.error().code == Code::unsupported);
    if (!made.ok() && may_refuse) {
      report.refused(made.error().line());
      return nullptr;
    }
    report.check(choice.tensors != nullptr ? kMadeWithTensors : kMade, made.ok(),
                 [&] { return made.error().line(); });
    if (!made.ok()) return nullptr;
    subject->instance_ = std::move(*made);
    subject->strategy.kind = choice.plugin->kind;
    subject->strategy.name = choice.plugin->name;
    subject->strategy.self = subject->instance_->self();
    subject->strategy.last_words = &subject->instance_->last_words();
    subject->strategy.wishes = &subject->instance_->wishes();
    return subject;
  }

  Strategy<Table> strategy;

 private:
  Subject() = default;
  std::unique_ptr<StrategyInstance> instance_;
};

// The rule that all calls of the suites must keep.
inline bool check_answered(const Status& status, Report& report) {
  report.check("no call fails, throws or takes longer than a second", status.ok(),
               [&] { return status.error().line(); });
  return status.ok();
}

// Plays traces of many worlds, the same one twice in each, beside a third that does something else: the same
// calls must give the same answers. A Trace is constructed from (choice, sites, seed, options, report) and
// has begin(), which returns false if there is nothing to play, step(), end(), well() and fingerprint().
template <class Trace>
void play_side_by_side(const StrategyChoice& choice, const SuiteOptions& options, Report& report) {
  for (uint32_t world = 0; world < options.worlds; ++world) {
    Random random(options.seed * 1000 + world);
    const SiteTable sites = draw_sites(world, random);
    const uint64_t seed = options.seed + world;
    Trace first(choice, sites, seed, options, report), second(choice, sites, seed, options, report),
        other(choice, sites, ~seed, options, report);
    if (!first.begin() || !second.begin() || !other.begin()) continue;
    for (uint32_t step = 0; step < options.steps; ++step) {
      for (Trace* trace : {&first, &other, &second}) {
        if (trace->well()) trace->step();
      }
    }
    first.end();
    second.end();
    report.check(kSame, first.fingerprint() == second.fingerprint(),
                 [&] { return fmt::format("world {} of seed {}", world, options.seed); });
  }
}

// Checks the neurons of an answer: ascending, below n.
void check_list(const char* rule, const uint32_t* idx, uint32_t count, uint32_t n, Report& report);

}  // namespace tierd
