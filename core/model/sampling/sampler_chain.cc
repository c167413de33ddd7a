#include "core/model/sampling/sampler_chain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

namespace tierd {
namespace {

struct KnownStep {
  SamplerStep step;
  char letter;
  std::array<std::string_view, 4> names;  // llama.cpp's own name, then the others that it accepts
};
constexpr std::array kSteps = {
    KnownStep{SamplerStep::penalties, 'e', {"penalties"}},
    KnownStep{SamplerStep::top_n_sigma, 's', {"top_n_sigma", "top-n-sigma"}},
    KnownStep{SamplerStep::top_k, 'k', {"top_k", "top-k"}},
    KnownStep{SamplerStep::typical_p, 'y', {"typ_p", "typical_p", "typical", "typ-p"}},
    KnownStep{SamplerStep::top_p, 'p', {"top_p", "top-p", "nucleus"}},
    KnownStep{SamplerStep::min_p, 'm', {"min_p", "min-p"}},
    KnownStep{SamplerStep::xtc, 'x', {"xtc"}},
    KnownStep{SamplerStep::temperature, 't', {"temperature", "temp"}},
};
constexpr std::string_view kDry = "dry";
constexpr char kDryLetter = 'd';

const KnownStep* by_name(std::string_view name) {
  const auto found = std::ranges::find_if(
      kSteps, [&](const KnownStep& known) { return !name.empty() && std::ranges::count(known.names, name); });
  return found == kSteps.end() ? nullptr : &*found;
}

// Returns the names of the letters if the text consists of letters of steps.
std::optional<std::vector<std::string_view>> of_letters(std::string_view text) {
  std::vector<std::string_view> names;
  for (const char letter : text) {
    const auto known = std::ranges::find(kSteps, letter, &KnownStep::letter);
    if (known == kSteps.end() && letter != kDryLetter) return std::nullopt;
    names.push_back(known == kSteps.end() ? kDry : known->names.front());
  }
  return names;
}

std::vector<std::string_view> names_of(std::string_view text) {
  if (by_name(text) == nullptr && text != kDry) {
    if (auto letters = of_letters(text)) return *letters;
  }
  std::vector<std::string_view> names;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    if (end > begin) names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

}  // namespace

std::vector<SamplerStep> default_samplers() {
  std::vector<SamplerStep> steps;
  for (const KnownStep& known : kSteps) steps.push_back(known.step);
  return steps;
}

Result<std::vector<SamplerStep>> parse_samplers(std::string_view text, std::string_view origin) {
  const auto bad = [&](std::string_view name, std::string_view why) {
    return Error{Code::invalid_argument, std::string(origin), fmt::format("'{}' {}", name, why)};
  };
  std::vector<SamplerStep> steps;
  for (const std::string_view name : names_of(text)) {
    if (name == kDry) continue;
    const KnownStep* const known = by_name(name);
    if (known == nullptr) {
      return bad(name, fmt::format("is not a sampler; expected names from {}, separated by ;",
                                   samplers_text(default_samplers())));
    }
    if (std::ranges::count(steps, known->step) != 0) return bad(name, "is named twice");
    if (known->step == SamplerStep::penalties && !steps.empty())
      return bad(name,
                 "is not the first sampler; penalties must precede all others, because they change logits");
    steps.push_back(known->step);
  }
  return steps;
}

std::string samplers_text(const std::vector<SamplerStep>& steps) {
  std::vector<std::string_view> names;
  for (const SamplerStep step : steps)
    names.push_back(std::ranges::find(kSteps, step, &KnownStep::step)->names.front());
  return fmt::format("{}", fmt::join(names, ";"));
}

}  // namespace tierd
