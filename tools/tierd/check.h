// --check: describes a run from the model's headers alone, and writes no file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model/text/vocab.h"
#include "core/run/run_plan.h"
#include "tools/tierd/report.h"

namespace tierd {

struct StoreFigures {
  std::string path;
  bool made = false;
  uint64_t bytes = 0;
  std::optional<uint64_t> to_write_bytes = {}, disk_left_bytes = {};  // of a store that is not made yet

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = StoreFigures;
    return std::tuple(Figure{&F::path, "path", text, latest, "its folder"},
                      Figure{&F::made, "made", flag, latest, "it exists"},
                      Figure{&F::bytes, "bytes", Quantity::bytes, latest, "of its data"},
                      Figure{&F::to_write_bytes, "to_write_bytes", Quantity::bytes, latest, "to be written"},
                      Figure{&F::disk_left_bytes, "disk_left_bytes", Quantity::bytes, latest, "on its disk"});
  }
};

// Shares of all weights: those of the feed-forward networks, those that memories hold, and those of the
// networks that memories hold, as LLM in a flash (section 4.1) counts them.
struct WeightFigures {
  double networks = 0, in_memory = 0, networks_in_memory = 0;

  static constexpr auto figures() {
    using enum Adds;
    using F = WeightFigures;
    return std::tuple(
        Figure{&F::networks, "networks", Quantity::share, latest,
               "of all weights, the feed-forward networks"},
        Figure{&F::in_memory, "in_memory", Quantity::share, latest, "of all weights, in memories"},
        Figure{&F::networks_in_memory, "networks_in_memory", Quantity::share, latest, "of the networks"});
  }
};

struct TokenLinkFigures {
  std::string from, to;
  std::optional<double> bytes_per_token;

  static constexpr auto figures() {
    using enum Adds;
    using F = TokenLinkFigures;
    return std::tuple(
        Figure{&F::from, "from", Quantity::text, latest, "the tier below"},
        Figure{&F::to, "to", Quantity::text, latest, "the tier above"},
        Figure{&F::bytes_per_token, "bytes_per_token", Quantity::bytes, latest, "null: unknown", kOrNull});
  }
};

// The expected speed. A number is none, with its reason, where it depends on the text or was not measured.
struct ExpectedFigures {
  std::string rates_from;
  double memory_bytes_per_second = 0;
  std::optional<double> flash_bytes_per_second, flash_bytes_per_token, resident_bytes_per_token;
  std::string bytes_unknown;
  std::string bound_by;
  std::optional<double> tokens_per_second, least_tokens_per_second;
  std::optional<std::string> unknown;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = ExpectedFigures;
    return std::tuple(
        Figure{&F::rates_from, "rates_from", text, latest, "file, or measured just now"},
        Figure{&F::memory_bytes_per_second, "memory_bytes_per_second", bytes_per_second, latest, "of DRAM"},
        Figure{&F::flash_bytes_per_second, "flash_bytes_per_second", bytes_per_second, latest,
               "of the largest reads", kOrNull},
        Figure{&F::flash_bytes_per_token, "flash_bytes_per_token", bytes, latest, "read", kOrNull},
        Figure{&F::resident_bytes_per_token, "resident_bytes_per_token", bytes, latest, "used", kOrNull},
        Figure{&F::bytes_unknown, "bytes_unknown", text, latest, "the reason without bytes", kOrNull},
        Figure{&F::bound_by, "bound_by", text, latest, "memory, flash or a link"},
        Figure{&F::tokens_per_second, "tokens_per_second", Quantity::tokens_per_second, latest, "of decode",
               kOrNull},
        Figure{&F::least_tokens_per_second, "least_tokens_per_second", Quantity::tokens_per_second, latest,
               "if nothing that depends on the text is in memory"},
        Figure{&F::unknown, "unknown", text, latest, "the reason without a speed"});
  }
};

struct CheckFigures {
  ConfigurationFigures configuration;
  StoreFigures store;
  std::vector<EncodedFigures> encoded_anew;
  std::vector<RecodingFigures> recoded;
  uint64_t pieces = 0;
  std::string chat_template;  // "own"; empty: none that can be read
  std::vector<TierFigures> tiers;
  WeightFigures weights;
  std::vector<TokenLinkFigures> links;
  ExpectedFigures expected;
  std::optional<KnownLoss> loss;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = CheckFigures;
    return std::tuple(
        Figure{&F::configuration, "", parts, latest, ""},
        Figure{&F::store, "store", parts, latest, "the model's, made or not"},
        Figure{&F::encoded_anew, "encoded_anew", parts, latest, "by the store"},
        Figure{&F::recoded, "recoded", parts, latest, "editions made on the way into a tier"},
        Figure{&F::pieces, "pieces", tokens, latest, "of the vocabulary"},
        Figure{&F::chat_template, "chat_template", text, latest, "own: the model's; null: none", kOrNull},
        Figure{&F::tiers, "tiers", parts, latest, "with memories, then the store's"},
        Figure{&F::weights, "weights", parts, latest, "shares"},
        Figure{&F::links, "links", parts, latest, "between tiers"},
        Figure{&F::expected, "expected", parts, latest, "the speed"},
        Figure{&F::loss, "loss", parts, latest, "known by tier-compare; null: none", kOrNull});
  }
};

// `vocab`: that of the run's tokenizer. Errors: those of Runtime::create and machine_rates.
Result<CheckFigures> check_figures(RunPlan plan, const RuntimeOptions& options, const Vocab& vocab);
std::string check_text(const CheckFigures& check);

}  // namespace tierd
