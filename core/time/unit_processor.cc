#include "core/time/unit_processor.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "core/base/row_mask.h"

namespace tierd {
namespace {

double values_of(Encoding encoding, double bytes) {
  return bytes / block_bytes(encoding) * block_values(encoding);
}

double bytes_of(const NeuronsWork& work) {
  double bytes = 0;
  for (const Unit& unit : work.units)
    bytes += static_cast<double>(neuron_bytes(work.site.cut, work.encodings, unit.unit));
  return bytes;
}

double multiply_adds_of(const NeuronsWork& work, double bytes) {
  return values_of(work.encodings.front(), bytes) * work.rows;
}

// Returns the number of neurons, summed over the rows that use them.
double uses_of(const NeuronsWork& work) {
  if (work.masks.empty()) return static_cast<double>(work.units.size()) * work.rows;
  const uint64_t words = mask_words(work.rows);
  double uses = 0;
  for (const Unit& unit : work.units) {
    for (const uint64_t word : work.masks.subspan(unit.unit * words, words)) uses += std::popcount(word);
  }
  return uses;
}

// The machine's processor: memory bounds one token, multiplication many.
class CpuProcessor final : public UnitProcessor {
 public:
  // Bundles are multiplied with f32 activations, whatever the others are.
  struct Rates {
    KernelRate of_others;
    KernelRate of_bundles;
  };
  CpuProcessor(double memory_rate, double floats_rate, std::vector<Rates> rates)
      : memory_rate_(memory_rate), floats_rate_(floats_rate), rates_(std::move(rates)) {}

  double neurons(const NeuronsWork& work) const override {
    const double bytes = bytes_of(work);
    const auto* const bundles = std::get_if<Bundles>(&work.site.cut);
    const KernelRate& rate =
        bundles != nullptr ? rates_[work.edition].of_bundles : rates_[work.edition].of_others;
    double columns = is_cut_into<Columns>(work.site.cut) ? bytes : 0;
    if (bundles != nullptr) columns = bytes / (bundles->gated ? 3 : 2);  // of `down`
    return std::max((bytes - columns) / rate.of_one(false, work.after_wait) +
                        columns / rate.of_one(true, work.after_wait),
                    multiply_adds_of(work, bytes) / rate.gemm);
  }
  double attention(const AttentionWork& work) const override { return work.kv_bytes / memory_rate_; }
  double floats(double count) const override { return count / floats_rate_; }
  double copy(double bytes) const override { return 2 * bytes / memory_rate_; }  // read and written

 private:
  double memory_rate_;
  double floats_rate_;
  std::vector<Rates> rates_;  // [editions]
};

// A GPU: each part of a run takes the slower of memory and multipliers.
class GpuProcessor final : public UnitProcessor {
 public:
  explicit GpuProcessor(const GpuDescription& gpu) : gpu_(gpu) {}

  double launch() const override { return static_cast<double>(gpu_.launch_ns) * 1e-9; }
  double neurons(const NeuronsWork& work) const override {
    const double bytes = bytes_of(work);
    return slower(bytes, multiply_adds_of(work, bytes));
  }
  double attention(const AttentionWork& work) const override {
    return slower(work.kv_bytes, work.multiply_adds);
  }
  double floats(double count) const override { return copy(count * sizeof(float)); }
  double copy(double bytes) const override { return 2 * bytes / gpu_.memory_rate; }
  double expand(double bytes) const override { return gpu_.expand_rate > 0 ? bytes / gpu_.expand_rate : 0; }

 private:
  double slower(double bytes, double multiply_adds) const {
    return std::max(bytes / gpu_.memory_rate, 2 * multiply_adds / gpu_.flops);
  }
  const GpuDescription gpu_;
};

// A near-data DIMM: DRAM and multipliers work in parallel; then the activation unit does the other
// operations. Rows that do not use a neuron have no product with it.
class NdpProcessor final : public UnitProcessor {
 public:
  explicit NdpProcessor(const NdpDimmDescription& dimm) : dimm_(dimm) {}

  double neurons(const NeuronsWork& work) const override {
    Ddr4Reads reads(dimm_.dram);
    double bytes = 0;
    for (const Unit& unit : work.units) {
      const uint64_t each = neuron_bytes(work.site.cut, work.encodings, unit.unit);
      reads.read(unit.place * kPlaceUnit, each);
      bytes += static_cast<double>(each);
    }
    const ProductReads beside =
        products_of(work, values_of(work.encodings.front(), bytes), uses_of(work) / work.rows);
    const double memory = reads.seconds() * beside.weights + beside.input_bytes / dimm_.dram.streaming_rate();
    const double products = dimm_.core.products_seconds(
        values_of(work.encodings.front(), bytes) / static_cast<double>(work.units.size()) * uses_of(work));
    return std::max(memory, products) + activation(work);
  }
  double attention(const AttentionWork& work) const override {
    Ddr4Reads reads(dimm_.dram);
    reads.read(0, static_cast<uint64_t>(work.kv_bytes));
    return std::max(reads.seconds(), dimm_.core.products_seconds(work.multiply_adds)) +
           dimm_.core.exponential_seconds(work.scores);
  }
  double floats(double count) const override { return dimm_.core.elementwise_seconds(count); }
  double copy(double bytes) const override { return 2 * bytes / dimm_.dram.streaming_rate(); }

 private:
  // A row uses `used` of the work's neurons, which have `values` weights together. A network's neurons are
  // the outputs of one product and the inputs of the next.
  ProductReads products_of(const NeuronsWork& work, double values, double used) const {
    const NdpCoreDescription& core = dimm_.core;
    const double in = inputs(work.site.cut), out = outputs(work.site.cut);
    const double share = used / static_cast<double>(work.units.size());
    if (is_cut_into<Columns>(work.site.cut)) return core.product_reads(work.rows, values / out * share, out);
    const auto* const bundles = std::get_if<Bundles>(&work.site.cut);
    if (bundles == nullptr) return core.product_reads(work.rows, in, values / in * share);
    ProductReads reads = core.product_reads(work.rows, in, (bundles->gated ? 2 : 1) * used);
    reads.input_bytes += core.product_reads(work.rows, used, out).input_bytes;
    return reads;
  }
  // Between the two halves of a feed-forward network each neuron has one value a row.
  double activation(const NeuronsWork& work) const {
    if (!is_cut_into<Bundles>(work.site.cut)) return 0;
    const double values = uses_of(work);
    switch (work.site.ffn.activation) {
      case Activation::relu:
        return dimm_.core.relu_seconds(values);
      case Activation::relu_squared:
        return dimm_.core.elementwise_seconds(values);
      default:
        return dimm_.core.exponential_seconds(values);
    }
  }
  const NdpDimmDescription dimm_;
};

}  // namespace

Result<std::unique_ptr<UnitProcessor>> unit_processor(const ProcessorDescription& processor,
                                                      const ComputePlan& plan) {
  std::vector<CpuProcessor::Rates> rates;
  for (const Encodings& encodings : plan.editions) {
    const Encoding encoding = encodings.front();
    const bool int8 = plan.int8_activations && is_quantized(encoding);
    const std::optional<KernelRate> rate = processor.rate(encoding, int8);
    if (!rate) {
      return Error{
          Code::not_found, "compute.rates",
          fmt::format("the description has no rate for {} x {}", name(encoding), int8 ? "int8" : "f32")};
    }
    rates.push_back({*rate, processor.rate(encoding, false).value_or(*rate)});
  }
  return std::unique_ptr<UnitProcessor>(
      new CpuProcessor(processor.memory_rate, processor.floats_rate, std::move(rates)));
}

std::unique_ptr<UnitProcessor> unit_processor(const UnitDescription& unit) {
  if (const auto* const gpu = std::get_if<GpuDescription>(&unit.device))
    return std::make_unique<GpuProcessor>(*gpu);
  return std::make_unique<NdpProcessor>(std::get<NdpDimmDescription>(unit.device));
}

}  // namespace tierd
