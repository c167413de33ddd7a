#include "core/store/compressed_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/store/extent_packer.h"
#include "core/store/planner.h"
#include "core/store/site_compression.h"

namespace tierd {
namespace {

// Consecutive neurons of a site that are packed together.
struct Run {
  StoredSite* site;
  SiteCompression by;
  uint32_t first;
  uint32_t count;
};

uint64_t stored_bytes(const StoredSite& site) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < site.neurons(); ++i) bytes += site.extent_bytes(i);
  return bytes;
}

// Returns whether the site takes less of the file than `dense`. With a codec no neuron may take more than its
// dense form, because the memory for reads is sized by dense neurons.
bool is_worth_it(const StoredSite& site, Compression compression, const StoredSite& dense) {
  if (site.compressed.empty() || stored_bytes(site) >= stored_bytes(dense)) return false;
  for (uint32_t i = 0; compression == Compression::codec && i < site.neurons(); ++i) {
    if (site.extent_bytes(i) > dense.extent_bytes(i)) return false;
  }
  return true;
}

std::vector<Run> runs_of(Manifest& plan, const ExtentPacker& packer, const NeuronCodec* codec) {
  std::vector<Run> runs;
  for (StoredSite* site : plan.stored()) {
    const auto by = SiteCompression::of(plan.compression, codec, *site);
    if (!by) continue;
    site->compressed.resize(site->neurons());
    for (uint32_t neuron = 0; neuron < site->neurons(); neuron += runs.back().count) {
      const uint32_t together = packer.run_of(site->first_extent + neuron);
      runs.push_back({site, *by, neuron, std::min(together, site->neurons() - neuron)});
    }
  }
  return runs;
}

// Writes the sizes of a run's neurons into its site, where they are used once all runs are measured.
Status measure(const ExtentPacker& packer, const Manifest& dense, const Run& run) {
  const uint32_t first = run.site->first_extent + run.first;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < run.count; ++i) bytes += dense.extents[first + i].bytes;
  std::vector<std::byte> packed(bytes);
  std::vector<uint64_t> checksums(run.count);
  TIERD_TRY(packer.pack(first, run.count, packed, checksums));
  std::vector<std::byte> kept;
  const std::byte* at = packed.data();
  for (uint32_t i = 0; i < run.count; ++i, at += dense.extents[first + i - 1].bytes) {
    const uint64_t of_neuron = run.site->dense_bytes(run.first + i);
    TIERD_ASSIGN(run.site->compressed[run.first + i], run.by.measure({at, of_neuron}, kept));
  }
  return {};
}

Status measure_all(const ExtentPacker& packer, const Manifest& dense, std::span<const Run> runs, bool quiet) {
  const bool counts = dense.compression == Compression::bitmap;
  uint64_t bytes = 0;
  const auto bytes_of = [&](const Run& run) {
    return uint64_t{run.count} * run.site->dense_bytes(run.first);
  };
  for (const Run& run : runs) bytes += bytes_of(run);
  Progress shown(counts ? "counting zeros" : "measuring what compressed neurons take", bytes, quiet);
  std::atomic<size_t> taken = 0;
  std::atomic<bool> stop = false;
  std::mutex shows;
  Status failed;
  {
    std::vector<std::jthread> workers;
    const size_t threads = std::min<size_t>(runs.size(), std::max(1U, std::thread::hardware_concurrency()));
    for (size_t i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        for (size_t at = taken++; at < runs.size() && !stop; at = taken++) {
          const Status measured = measure(packer, dense, runs[at]);
          const std::lock_guard lock(shows);
          shown.advance(bytes_of(runs[at]));
          if (measured.ok()) continue;
          failed = measured;
          stop = true;
        }
      });
    }
  }
  shown.finish();
  return failed;
}

// Compresses the sites whose measured neurons take less of the file; the others become dense again.
void keep_what_is_worth_it(Manifest& plan, const Manifest& dense) {
  const std::vector<StoredSite*> sites = plan.stored();
  const std::vector<const StoredSite*> before = dense.stored();
  for (size_t i = 0; i < sites.size(); ++i) {
    if (is_worth_it(*sites[i], plan.compression, *before[i])) {
      sites[i]->compression = plan.compression;
      plan.tensor_bytes -= before[i]->tensor_bytes() - sites[i]->tensor_bytes();
    } else {
      sites[i]->compressed.clear();
    }
  }
  for (StoredSite& site : plan.sites) {
    if (site.alias_of == kNoSite) continue;
    site.compression = plan.sites[site.alias_of].compression;
    site.compressed = plan.sites[site.alias_of].compressed;
  }
  place_extents(plan);
}

}  // namespace

Result<Manifest> compressed_plan(const TensorSource& source, Manifest dense, bool quiet,
                                 const NeuronCodec* codec) {
  Manifest plan = dense;
  const ExtentPacker packer(source, dense);
  const std::vector<Run> runs = runs_of(plan, packer, codec);
  TIERD_TRY(measure_all(packer, dense, runs, quiet));
  keep_what_is_worth_it(plan, dense);
  return plan;
}

bool compresses(const Manifest& plan) {
  return std::ranges::any_of(plan.sites,
                             [](const StoredSite& site) { return site.compression != Compression::none; });
}

Error compresses_nothing(std::string_view compression, const std::string& model, const std::string& tokenizer,
                         const ModelConfig& config) {
  // tier-prune does not prune mixtures.
  const std::string pruned =
      config.is_mixture() ? ""
                          : fmt::format(
                                "prune the model first (tier prune {} OUT{} --method magnitude --share 0.5 "
                                "--compression {}; then -m OUT), or ",
                                model, tokenizer.empty() ? "" : " --tokenizer " + tokenizer, compression);
  return Error{
      Code::invalid_argument, "model.compression",
      fmt::format("\"{}\" makes no matrix of {} smaller, so that nothing would be compressed: {}--set "
                  "model.compression=none",
                  compression, model, pruned)};
}

Result<Manifest> assumed_plan(const TensorSource& source, Manifest dense) {
  if (dense.compression == Compression::codec) {
    return Error{Code::unsupported, source.path(),
                 fmt::format("is a shape without weights, of which nobody knows how small {} makes them",
                             dense.codec)};
  }
  Manifest plan = dense;
  for (StoredSite* site : plan.stored()) {
    const auto bitmap = Bitmap::of(site->cut, site->encodings);
    if (!bitmap || site->layer == kNoLayer) continue;
    for (uint32_t i = 0; i < site->neurons(); ++i) {
      const uint64_t bytes = site->dense_bytes(i);
      const uint64_t values = bytes / bitmap->element_bytes;
      const uint64_t zeros = values * source.assumed_zeros_percent().value_or(0) / 100;
      site->compressed.push_back(
          static_cast<uint32_t>(bitmap->bits_bytes(bytes) + (values - zeros) * bitmap->element_bytes));
    }
  }
  keep_what_is_worth_it(plan, dense);
  return plan;
}

Manifest dense_plan(Manifest plan) {
  for (StoredSite* site : plan.stored()) {
    if (site->compression == Compression::none) continue;
    const uint64_t compressed = site->tensor_bytes();
    site->compression = Compression::none;
    site->compressed.clear();
    plan.tensor_bytes += site->tensor_bytes() - compressed;
  }
  for (StoredSite& site : plan.sites) {
    if (site.alias_of == kNoSite) continue;
    site.compression = Compression::none;
    site.compressed.clear();
  }
  place_extents(plan);
  return plan;
}

}  // namespace tierd
