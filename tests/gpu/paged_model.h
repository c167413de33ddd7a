// A small model whose neurons are stored in three encodings each, and its logits by plain loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/agent/extent_table.h"
#include "core/agent/program.h"
#include "core/base/random.h"
#include "core/kernel/site.h"

namespace tierd {

// Units, levels and active neurons follow from the numbers of site, neuron and step.
inline constexpr uint32_t kUnits = 2;
inline constexpr uint32_t kMerger = 1;  // the unit with the dense segments
inline uint32_t unit_of(uint32_t neuron) {
  return neuron % kUnits;
}
inline uint32_t level_of(SiteId site, uint32_t neuron, uint32_t step) {
  return (neuron * 5 / 2 + 3 * site + step) % 3;
}
inline bool is_active(SiteId site, uint32_t neuron, uint32_t step) {
  return (neuron * 13 + 7 * step + site) % 5 != 0;
}

// The embedding; two layers, each with an operator cut into rows and a feed-forward network cut into its
// neurons, both added to the clipped stream; the head.
class PagedModel {
 public:
  static constexpr uint32_t kWidth = 64;
  static constexpr uint32_t kInner = 200;  // the last run is incomplete
  static constexpr uint32_t kVocab = 48;
  static constexpr uint32_t kLevels = 3;  // f16, q8_0, q4_0
  static constexpr uint32_t kSlotBytes = 4096;
  static constexpr uint32_t kMostRows = 2;

  explicit PagedModel(uint64_t seed);

  const SiteTable& sites() const { return sites_; }
  SiteId head() const { return static_cast<SiteId>(sites_.size() - 1); }
  const ComputePlan& plan() const { return plan_; }
  std::span<const ExtentRef> extents() const { return extents_; }
  std::span<const std::byte> content() const { return content_; }  // of the store's file

  // Returns the logits, [kVocab], of a step with this token. Sums are made as docs/architecture.md says: by
  // unit, the merger's first; in a unit by edition; in an edition by runs of 64 neurons, each summed
  // separately.
  std::vector<float> logits(uint32_t token, uint32_t step) const;

 private:
  struct Row {  // plain bytes
    Encoding encoding = Encoding::f32;
    std::vector<std::byte> bytes;
  };
  using Key = std::pair<EditionId, uint32_t>;  // (edition, row)

  void add_site(const std::string& name, const Cut& cut, BufferId out, bool embeds = false);
  void add_edition(SiteId site, Encoding encoding);
  std::vector<std::byte> bundle_bytes(EditionId edition, uint32_t neuron, Encoding encoding);
  std::vector<std::byte> rows_bytes(EditionId edition, uint32_t neuron, Encoding encoding);
  Row draw(Encoding encoding);
  float dot(const Row& row, std::span<const float> x) const;
  std::vector<float> rows_of(SiteId site, std::span<const float> x, uint32_t step) const;
  std::vector<float> sums_of(SiteId site, std::span<const float> x, uint32_t step) const;
  void add_run(SiteId site, EditionId edition, std::span<const uint32_t> run, std::span<const float> x,
               std::span<float> sums) const;

  Random random_;
  SiteTable sites_;
  ComputePlan plan_;
  std::vector<ExtentRef> extents_;
  std::vector<std::byte> content_;
  std::map<Key, Row> rows_, gates_, ups_;
  std::map<Key, std::vector<float>> downs_;
};

}  // namespace tierd
