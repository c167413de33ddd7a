// `tier-train distill`: a model whose inputs may be masked, out of one whose inputs may not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "tools/evaluation/loss.h"
#include "tools/lab/train/distiller.h"

namespace tierd {

struct DistillPlan {
  std::string model;      // a Hugging Face folder
  std::string text;       // a file
  std::string out;        // the folder to make
  std::string tokenizer;  // instead of the folder's own, which it may lack; not copied
  DistillerOptions distiller;
  uint32_t sequence = 256;        // tokens of a window, what the tokenizer puts before a text included
  uint32_t batch = 8;             // windows a step
  uint32_t epochs = 2;            // how often every window is trained on
  std::optional<uint32_t> steps;  // so many instead
  double learning_rate = 1e-4;    // at its highest
  double warmup = 0.05;    // share of the steps in which it rises to that; over the others it falls to 0
  double held_out = 0.05;  // the last share of the windows, which is not trained on
  uint64_t seed = 1;
  bool quiet = false;
};

// On the windows held out, against the teacher as it came.
struct DistillReport {
  uint32_t steps = 0;
  double first_loss = 0;  // of the distiller, in nats a token: mean of the first tenth of the steps
  double last_loss = 0;   // and of the last
  Loss before;            // the student at the sparsity that it is trained at, before the first step
  Loss after;
  Loss dense;  // the student afterwards, nothing masked
};

// The rate of step 0, 1, …: a straight line up, then half a cosine down to 0.
double learning_rate_at(uint32_t step, uint32_t steps, double warmup, double highest);

// Makes the folder: the model's configuration and tokenizer, weights under the names and in the encodings
// that they had, and distillation.json, which says how they came about. It appears under its name when it is
// whole. Errors: those of the model and the text; invalid_argument for what does not fit together, and where
// the folder is there already; unsupported without libtorch; no_space, io_error.
Result<DistillReport> distill(const DistillPlan& plan);

std::string to_table(const DistillReport& report, double sparsity);

}  // namespace tierd
