#include "tools/tierd/recoding_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/base/file.h"
#include "core/base/time.h"
#include "core/store/encoding_error.h"
#include "tiers/compute/recoding.h"

namespace tierd {
namespace {

constexpr uint32_t kSampledNeurons = 16;
constexpr size_t kSampledPieces = 64;  // of a neuron
constexpr uint64_t kMeasuredNs = 20'000'000;

// The relative error of a site's first neurons, and their encoding speed in bytes a second.
struct Sample {
  double error = 0;
  double rate = 0;
};

Result<Sample> sample(const RunPlan& plan, const StoredSite& recoded) {
  const StoredSite& stored = plan.store.manifest().sites[recoded.edition_of];
  const NeuronRecoding recoding(stored.cut, stored.encodings, recoded.encodings);
  TIERD_ASSIGN(const ComputeKernels* const kernels, choose_kernels(plan.config.kernels));
  TIERD_ASSIGN(const File file, File::open(plan.store.data_path()));
  struct Piece {
    size_t number;
    std::vector<std::byte> in, out;
  };
  std::vector<Piece> pieces;
  uint64_t bytes = 0;
  for (uint32_t neuron = 0; neuron < std::min(kSampledNeurons, stored.neurons()); ++neuron) {
    const Extent& extent = plan.store.manifest().extents[stored.extent_of(neuron, 0)];
    for (size_t i = 0; i < std::min(kSampledPieces, recoding.pieces()); ++i) {
      const NeuronRecoding::Piece of = recoding.piece(i);
      Piece& piece = pieces.emplace_back(
          Piece{i, std::vector<std::byte>(of.from_bytes), std::vector<std::byte>(of.to_bytes)});
      TIERD_TRY(file.read_exact(extent.offset + of.from, piece.in));
      bytes += of.from_bytes;
    }
  }
  uint64_t rounds = 0, spent_ns = 0;
  for (const uint64_t begin = now_ns(); spent_ns < kMeasuredNs; spent_ns = now_ns() - begin, ++rounds) {
    for (Piece& of : pieces) recoding.encode(*kernels, of.number, of.in.data(), of.out.data());
  }
  NeuronRecoding::Loss loss;
  for (const Piece& of : pieces) recoding.add_loss(of.number, of.in.data(), of.out.data(), loss);
  return Sample{loss.share(), static_cast<double>(rounds * bytes) / static_cast<double>(spent_ns) * 1e9};
}

}  // namespace

Result<std::vector<RecodingFigures>> recoding_figures(const RunPlan& plan) {
  std::vector<RecodingFigures> list;
  std::map<Encoding, size_t> of_encoding;  // index in the list
  std::vector<std::string> tiers;
  for (const Tier& tier : plan.tiers.memories) {
    if (tier.recodes) tiers.push_back(tier.config.name);
  }
  for (const StoredSite& recoded : plan.memory.model.recoded) {
    const auto [found, is_new] = of_encoding.emplace(recoded.encodings.front(), list.size());
    if (is_new) {
      const StoredSite& stored = plan.store.manifest().sites[recoded.edition_of];
      RecodingFigures& entry = list.emplace_back();
      entry.to = name(recoded.encodings.front());
      entry.sites = {std::string(name(recoded.group))};
      entry.in = tiers;
      entry.read_bytes = stored.neuron_bytes(0);
      entry.moved_bytes = recoded.neuron_bytes(0);
      if (plan.store.made()) {
        TIERD_ASSIGN(const Sample sampled, sample(plan, recoded));
        entry.error = sampled.error;
        entry.encoded_bytes_per_second = sampled.rate;
      } else if (plan.source != nullptr) {
        TIERD_ASSIGN(entry.error, sampled_encoding_error(*plan.source, recoded));
      }
    }
    list[found->second].unstored_bytes += recoded.neurons() * recoded.extent_bytes(0);
  }
  return list;
}

ReportLines recoding_lines(const std::vector<RecodingFigures>& recoded) {
  if (recoded.empty()) return {};
  const RecodingFigures& last = recoded.back();
  std::string ways;
  uint64_t unstored = 0;
  for (const RecodingFigures& entry : recoded) {
    ways += fmt::format("{}as {}", ways.empty() ? "" : ", ", entry.to);
    if (entry.error) ways += fmt::format(" (relative error {:.2g})", *entry.error);
    unstored += entry.unstored_bytes;
  }
  ReportLines lines = {{"recoded", fmt::format("{} {} on the way to {}", fmt::join(last.sites, ", "), ways,
                                               fmt::join(last.in, ", "))},
                       {"", fmt::format("{} less are stored; a neuron in {} is read as {} and moved as {}",
                                        size_text(unstored), last.to, size_text(last.read_bytes),
                                        size_text(last.moved_bytes))}};
  if (last.encoded_bytes_per_second) {
    lines.emplace_back(
        "", fmt::format("a thread encodes {} of what it reads", format_rate(*last.encoded_bytes_per_second)));
  }
  return lines;
}

}  // namespace tierd
