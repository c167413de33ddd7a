#include "tools/lab/activity/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/align.h"
#include "core/base/disk.h"
#include "core/engine/model_plan.h"
#include "core/kernel/post/clocks.h"
#include "core/model/layout/cut.h"
#include "core/model/shape_file.h"
#include "core/system/memory_limits.h"
#include "core/watch/trace/recorder.h"
#include "tools/lab/activity/profile.h"
#include "tools/lab/activity/sticky_activity.h"

namespace tierd {
namespace {

constexpr uint32_t kMessages = 64;
constexpr uint32_t kCredits = 16;
constexpr uint32_t kStagingBlocks = 64;
// Bytes of the drawn states, the header and a step, for each neuron; 15 were measured.
constexpr uint64_t kBytesOfNeuron = 16;

// Returns the networks, one a layer, each with an edition of its own.
SiteTable networks(const ModelConfig& model) {
  const Cut cut = Bundles{model.d_model, model.d_ff, model.gated};
  const Encodings encodings(model.gated ? 3 : 2, Encoding::f16);
  SiteTable sites;
  for (uint32_t l = 0; l < model.n_layers; ++l) {
    Site site;
    site.name = fmt::format("layers.{}.ffn", l);
    site.layer = static_cast<uint16_t>(l);
    site.layer_group = static_cast<uint16_t>(l);
    site.set = Site::Set::chosen;
    cut_site(site, cut);
    site.editions = {l};
    Edition edition;
    edition.owner = l;
    edition.label = static_cast<uint16_t>(Encoding::f16);
    edition.n = site.n;
    const uint64_t bytes = neuron_bytes(cut, encodings, 0);
    edition.slot_bytes = static_cast<uint32_t>(align_up(bytes, kPlaceUnit));
    edition.first_extent = l * site.n;
    edition.bytes.assign(site.n, static_cast<uint32_t>(bytes));
    sites.all.push_back(std::move(site));
    sites.editions.push_back(std::move(edition));
  }
  return sites;
}

TraceHeader header_of(const ModelConfig& model, const ActivityProfile& profile, const DrawOptions& options) {
  TraceHeader header;
  header.facts = {{"model", model.name},
                  {"drawn", profile.name},
                  {"text", fmt::format("{}", options.text)},
                  {"by depth", options.by_depth ? "yes" : "no"}};
  header.sites = networks(model);
  Topology& topology = header.scheduler.topology;
  header.agents = {{"dram", kCredits}, {"flash", kCredits}};
  topology.units = {{.agent = 1, .memory = 1}};
  topology.links = {{.from = kStore, .to = 1, .agent = 2}};
  Memory& memory = topology.memories.emplace_back();
  memory.name = "dram";
  memory.agent = 1;
  memory.resizes = true;
  memory.staging_blocks = kStagingBlocks;
  for (const Edition& edition : header.sites.editions) {
    memory.arena_bytes += uint64_t{edition.n} * edition.slot_bytes;
    memory.reserved.push_back(edition.n);
    const uint32_t run = std::min(edition.n, header.sites[edition.owner].stretch);
    memory.block_bytes = std::max(memory.block_bytes, run * edition.slot_bytes);
  }
  memory.staging_offset = memory.arena_bytes;
  header.slots = {memory.reserved};
  header.max_messages = kMessages;
  header.max_units = std::max(model.d_ff, model.n_layers);
  header.seed = options.seed;
  header.predictor.name = "dense";
  header.predictor.settings = {{"sites_ahead", int64_t{0}, "drawn"}};
  header.quantizer.name = "plain";
  header.cache.name = "lru";
  header.balancer.name = "single";
  return header;
}

// Records a step for each token, as a scheduler would report it.
void tell_tokens(StickyActivity& activity, uint32_t tokens, Recorder& recorder) {
  constexpr uint64_t kSequence = 0;
  const std::vector<uint64_t> sequences = {kSequence};
  recorder.fill_begins();
  recorder.sequence_begins(kSequence, "");
  for (uint32_t step = 0; step < tokens; ++step) {
    activity.next_token(0);
    Pass pass;
    pass.step = step;
    pass.rows = 1;
    pass.sequences = sequences;
    for (uint32_t l = 0; l < activity.layers(); ++l) {
      recorder.pass_begins(l, pass);
      recorder.activated(l, ActiveSet::of(list_active(activity.active(0, l))));
    }
    recorder.step_ends(step);
  }
  recorder.sequence_ends(kSequence);
}

}  // namespace

Status write_drawn(const DrawOptions& options, const std::string& path) {
  TIERD_ASSIGN(const ActivityProfile profile, read_activity_profile(options.profile));
  TIERD_ASSIGN(const ModelConfig model, read_shape(options.shape));
  if (model.is_mixture())
    return Error{Code::unsupported, options.shape,
                 "is a mixture, whose routers choose experts; expected a model whose neurons fire or not"};
  TIERD_TRY(expect_memory(uint64_t{model.n_layers} * model.d_ff * kBytesOfNeuron,
                          fmt::format("drawing {} layers of {} neurons", model.n_layers, model.d_ff)));
  TIERD_ASSIGN(StickyActivity activity,
               StickyActivity::create(profile, {.neurons = std::vector<uint32_t>(model.n_layers, model.d_ff),
                                                .seed = options.seed,
                                                .first_text = options.text,
                                                .by_depth = options.by_depth}));
  const VirtualClock clock;  // no step takes any time
  const std::string partial = path + ".partial";
  TIERD_ASSIGN(const auto recorder, Recorder::create(partial, header_of(model, profile, options), clock));
  tell_tokens(activity, options.tokens, *recorder);
  Disk disk;
  Status written = recorder->finish();
  if (written.ok()) written = disk.rename(partial, path);
  if (!written.ok()) (void)disk.remove(partial);
  return written;
}

}  // namespace tierd
