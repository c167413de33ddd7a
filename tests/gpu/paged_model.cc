#include "tests/gpu/paged_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/agent/message.h"
#include "core/base/align.h"
#include "core/base/checksum.h"
#include "core/model/layout/codec.h"
#include "tests/kernel/add_site.h"

namespace tierd {
namespace {

constexpr Encoding kEncodings[] = {Encoding::f16, Encoding::q8_0, Encoding::q4_0};
constexpr BufferId kStream = 0, kPlaced = 1, kAdded = 2, kLogits = 3, kHidden = 4, kUp = 5;
constexpr float kClip = 1.5F;
constexpr uint32_t kBlock = 32;  // values with one scale; floats are summed in blocks of as many

float load_f16(const std::byte* at) {
  uint16_t half = 0;
  std::memcpy(&half, at, sizeof half);
  return f16_to_f32(half);
}

}  // namespace

PagedModel::PagedModel(uint64_t seed) : random_(seed) {
  plan_.buffers = {{"stream", kWidth, 0}, {"placed", kWidth, 0}, {"added", kWidth, 0},
                   {"logits", kVocab, 0}, {"hidden", kInner, 0}, {"up", kInner, 0}};
  plan_.max_rows = kMostRows;
  plan_.context = 1;
  const Rows square{.n_in = kWidth, .stacked = {kWidth}, .rows = kGroupRows};
  const Rows vocabulary{.n_in = kWidth, .stacked = {kVocab}, .rows = kGroupRows};
  add_site("embedding", vocabulary, kStream, true);
  for (const char* layer : {"0", "1"}) {
    add_site(std::string("rows ") + layer, square, kPlaced);
    add_site(std::string("ffn ") + layer, Bundles{.width = kWidth, .inner = kInner, .gated = true}, kAdded);
  }
  add_site("head", vocabulary, kLogits);
}

void PagedModel::add_site(const std::string& name, const Cut& cut, BufferId out, bool embeds) {
  const std::vector<uint64_t> offsets = buffer_offsets(plan_);
  const auto place = [&](BufferId buffer) {
    return ActivationPlace{static_cast<uint32_t>(offsets[buffer] / kPlaceUnit),
                           buffer_stride(plan_.buffers[buffer])};
  };
  SiteWork& work = plan_.sites.emplace_back();
  work.name = name;
  work.cut = cut;
  work.gather = embeds;
  work.in = kStream;
  work.out = out;
  work.ffn = {.activation = Activation::relu, .hidden = kHidden, .up = kUp};
  if (!embeds) work.before = {{.kind = StepKind::clip, .out = kStream, .width = kWidth, .threshold = kClip}};
  if (out == kPlaced || out == kAdded)
    work.after = {{.kind = StepKind::add, .in = out, .out = kStream, .width = kWidth}};

  Site site;
  site.name = name;
  site.set = embeds ? Site::Set::given : Site::Set::predicted;
  site.added = is_added(cut);
  site.stretch = run_of(cut);
  site.n = neurons(cut);
  site.n_in = inputs(cut);
  site.n_out = embeds ? kWidth : outputs(cut);
  site.input = place(kStream);
  site.output = place(out);
  site.flow = {.input = {{kMerger}}, .before = !embeds, .output = {{kMerger}}};
  sites_.all.push_back(std::move(site));
  const auto id = static_cast<SiteId>(sites_.size() - 1);
  for (uint32_t level = 0; level < (embeds ? 1 : kLevels); ++level) add_edition(id, kEncodings[level]);
}

void PagedModel::add_edition(SiteId site, Encoding encoding) {
  const auto id = static_cast<EditionId>(sites_.editions.size());
  SiteWork& work = plan_.sites[site];
  const auto* const bundles = std::get_if<Bundles>(&work.cut);
  Edition edition;
  edition.slot_bytes = kSlotBytes;
  edition.first_extent = static_cast<uint32_t>(extents_.size());
  plan_.editions.emplace_back(bundles != nullptr ? 3 : 1, encoding);
  for (uint32_t i = 0; i < sites_[site].n; ++i) {
    std::vector<std::byte> bytes =
        bundles != nullptr ? bundle_bytes(id, i, encoding) : rows_bytes(id, i, encoding);
    edition.bytes.push_back(static_cast<uint32_t>(bytes.size()));
    bytes.resize(kSlotBytes);
    extents_.push_back({content_.size(), bytes.size(), checksum(bytes)});
    content_.insert(content_.end(), bytes.begin(), bytes.end());
  }
  work.editions.push_back(id);
  tierd::add_edition(sites_, site, std::move(edition));
}

PagedModel::Row PagedModel::draw(Encoding encoding) {
  std::vector<float> values(kWidth);
  for (float& value : values) value = random_.symmetric();
  Row row{encoding, std::vector<std::byte>(encoded_bytes(encoding, kWidth))};
  encode(encoding, values, row.bytes);
  return row;
}

std::vector<std::byte> PagedModel::rows_bytes(EditionId edition, uint32_t neuron, Encoding encoding) {
  std::vector<std::byte> plain;
  for (uint32_t r = 0; r < kGroupRows; ++r) {
    const Row& row = rows_[{edition, neuron * kGroupRows + r}] = draw(encoding);
    plain.insert(plain.end(), row.bytes.begin(), row.bytes.end());
  }
  std::vector<std::byte> group(group_bytes(encoding, kWidth));
  pack_row_group(encoding, kGroupRows, kWidth, plain, group);
  return group;
}

std::vector<std::byte> PagedModel::bundle_bytes(EditionId edition, uint32_t neuron, Encoding encoding) {
  const Bundle bundle{encoding, kWidth, true};
  std::vector<std::byte> bytes(bundle.bytes());
  const Row& gate = gates_[{edition, neuron}] = draw(encoding);
  const Row& up = ups_[{edition, neuron}] = draw(encoding);
  std::ranges::copy(gate.bytes, bytes.begin());
  std::ranges::copy(up.bytes, bytes.begin() + static_cast<std::ptrdiff_t>(bundle.up_offset()));
  std::vector<float>& down = downs_[{edition, neuron}];
  down.resize(kWidth);
  for (float& value : down) value = random_.symmetric() / 8;
  const std::span<std::byte> column = std::span(bytes).subspan(bundle.down_offset(), bundle.row_bytes());
  encode_column(encoding, down, column);
  decode_column(encoding, column, down);
  return bytes;
}

// Sums blocks of 32, as the kernels are defined (tiers/compute/scalar.cc).
float PagedModel::dot(const Row& row, std::span<const float> x) const {
  std::vector<float> values(kWidth);
  decode(row.encoding, row.bytes, values);
  const uint64_t block_size = encoded_bytes(row.encoding, kBlock);
  float y = 0;
  for (uint32_t b = 0; b < kWidth / kBlock; ++b) {
    const std::byte* const block = row.bytes.data() + b * block_size;
    const float scale = row.encoding == Encoding::f16 ? 1 : load_f16(block);
    float p = 0;
    for (uint32_t j = b * kBlock; j < (b + 1) * kBlock; ++j) {
      const float w = scale == 0                      ? 0
                      : row.encoding == Encoding::f16 ? values[j]
                                                      : std::round(values[j] / scale);
      p = std::fma(w, x[j], p);
    }
    y = std::fma(scale, p, y);
  }
  return y;
}

std::vector<float> PagedModel::rows_of(SiteId site, std::span<const float> x, uint32_t step) const {
  std::vector<float> y;
  for (uint32_t r = 0; r < sites_[site].n_out; ++r) {
    const EditionId edition = sites_[site].editions[level_of(site, r / kGroupRows, step)];
    y.push_back(dot(rows_.at({edition, r}), x));
  }
  return y;
}

std::vector<float> PagedModel::sums_of(SiteId site, std::span<const float> x, uint32_t step) const {
  std::vector<float> all(kWidth, 0.0F);
  for (const uint32_t unit : {kMerger, 1 - kMerger}) {
    std::vector<float> of_unit(kWidth, 0.0F);
    for (uint32_t level = 0; level < kLevels; ++level) {
      for (uint32_t run = 0; run < kInner; run += kPartialNeurons) {
        std::vector<uint32_t> neurons;
        for (uint32_t i = run; i < std::min(run + kPartialNeurons, kInner); ++i) {
          if (is_active(site, i, step) && unit_of(i) == unit && level_of(site, i, step) == level)
            neurons.push_back(i);
        }
        if (!neurons.empty()) add_run(site, sites_[site].editions[level], neurons, x, of_unit);
      }
    }
    for (uint32_t c = 0; c < kWidth; ++c) all[c] = unit == kMerger ? of_unit[c] : all[c] + of_unit[c];
  }
  return all;
}

void PagedModel::add_run(SiteId, EditionId edition, std::span<const uint32_t> run, std::span<const float> x,
                         std::span<float> sums) const {
  const auto exact = [&](const Row& row) {
    std::vector<float> values(kWidth);
    decode(row.encoding, row.bytes, values);
    double sum = 0;
    for (uint32_t c = 0; c < kWidth; ++c) sum += double{values[c]} * x[c];
    return static_cast<float>(sum);
  };
  std::vector<float> partial(kWidth, 0.0F);
  for (const uint32_t i : run) {
    const float gate = exact(gates_.at({edition, i}));
    const float hidden = (gate > 0 ? gate : 0.0F) * exact(ups_.at({edition, i}));
    const std::vector<float>& down = downs_.at({edition, i});
    for (uint32_t c = 0; c < kWidth; ++c) partial[c] = std::fma(hidden, down[c], partial[c]);
  }
  for (uint32_t c = 0; c < kWidth; ++c) sums[c] += partial[c];
}

std::vector<float> PagedModel::logits(uint32_t token, uint32_t step) const {
  std::vector<float> x(kWidth);
  const Row& row = rows_.at({sites_.best(0), token});
  decode(row.encoding, row.bytes, x);
  for (SiteId site = 1;; ++site) {
    for (float& value : x) value = std::clamp(value, -kClip, kClip);
    if (site == head()) return rows_of(site, x, step);
    const std::vector<float> y = sites_[site].added ? sums_of(site, x, step) : rows_of(site, x, step);
    for (uint32_t c = 0; c < kWidth; ++c) x[c] += y[c];
  }
}

}  // namespace tierd
