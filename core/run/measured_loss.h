// The loss of a configuration on a text, as tier-compare has measured it, kept beside the model that it was
// measured on: STORE/losses/KEY.json, one file a verdict, where KEY is made of the settings that change
// results. A store that is removed takes its verdicts along.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/base/result.h"

namespace tierd {

// The settings of a run by which its verdict is found again.
struct LossSettings {
  // All settings that change results, with their defaults, one a line; content in place of file names.
  // Threads, ports, prompts and whatever changes the order of additions alone are left out.
  std::string text;
  // Bytes for weights that stay in each tier, as a share of all tensor bytes, where results depend on what
  // memories hold; else empty.
  std::map<std::string, double> resident;
};

struct MeasuredLoss {
  double divergence = 0;            // Kullback-Leibler, in nats a token
  double reference_perplexity = 0;  // of the file as published
  double perplexity = 0;            // of the configuration
  uint64_t tokens = 0;
  std::string text;           // the name of its file
  std::string text_checksum;  // of its content
  // The shares that were used of what a predictor may leave out, both or none.
  std::optional<double> used_neurons, used_bytes;
  std::string date;            // "2026-11-30", UTC
  bool against_store = false;  // the published file was not run, and its store, encoded anew, took its place

  double perplexity_change() const { return perplexity / reference_perplexity - 1; }
};

// Finds the verdict on a run with these settings in the store's folder. Where results depend on what memories
// hold it is the one that was measured with the most similar memories, if each tier's share of the weights is
// within a twentieth of the model. None: there is no verdict. Errors, naming the file: corrupt, io_error.
Result<std::optional<MeasuredLoss>> find_loss(const std::string& store, const LossSettings& settings);

// Writes the verdict in place of an earlier one on the same settings and memories, whatever stands there, and
// returns the path of its file, which never stands there half-written. Errors: io_error, no_space.
Result<std::string> keep_loss(const std::string& store, const LossSettings& settings,
                              const MeasuredLoss& loss);

}  // namespace tierd
