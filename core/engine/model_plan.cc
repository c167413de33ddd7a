#include "core/engine/model_plan.h"

#include <algorithm>
#include <numeric>

#include "core/agent/message.h"

namespace tierd {
namespace {

// Divides the KV heads among the attending units, each with adjacent heads; if there are too few, the last
// units get none.
std::vector<UnitRole> divide_heads(const ModelConfig& config, const ModelOptions& options) {
  std::vector<UnitRole> roles(options.units, UnitRole{.dense = false});
  roles[options.dense].dense = true;
  std::vector<uint32_t> attend = options.attention;
  if (attend.empty()) attend = {options.dense};
  const auto n = static_cast<uint32_t>(attend.size());
  uint32_t first = 0;
  for (uint32_t i = 0; i < n; ++i) {
    UnitRole& role = roles[attend[i]];
    role.first_head = first;
    role.heads = config.n_kv_heads / n + (i < config.n_kv_heads % n ? 1 : 0);
    first += role.heads;
  }
  return roles;
}

class Planner {
 public:
  Planner(const Manifest& manifest, const ModelOptions& options)
      : manifest_(manifest), options_(options), roles_(divide_heads(manifest.config, options)) {}

  ModelPlan make() {
    for (const UnitRole& role : roles_) plan_.units.push_back(plan_unit(manifest_, options_, role));
    for (const StoredSite& stored : manifest_.sites) plan_.sites.all.push_back(site(stored));
    add_editions();
    add_flows();
    place_activations();
    return std::move(plan_);
  }

 private:
  const ComputePlan& dense() const { return plan_.units[options_.dense].compute; }

  // All units have the same places.
  void place_activations() {
    const ComputePlan& compute = dense();
    const std::vector<uint64_t> offsets = buffer_offsets(compute);
    const auto place = [&](BufferId buffer) -> ActivationPlace {
      if (buffer == kNoBuffer) return {};
      return {static_cast<uint32_t>(offsets[buffer] / kPlaceUnit), buffer_stride(compute.buffers[buffer])};
    };
    for (SiteId s = 0; s < plan_.sites.size(); ++s) {
      Site& site = plan_.sites[s];
      const SiteWork& work = compute.sites[s];
      site.input = place(work.in);
      site.output = place(work.out);
      site.contribution = place(work.contribution);
      site.choice = place(work.experts.choice);
      if (site.of_expert()) site.rows = {place(routing_of(compute)), site.expert};
    }
  }

  // Returns the buffer of the routers' output, with the weights of the rows for the segment after an expert.
  static BufferId routing_of(const ComputePlan& compute) {
    for (const SiteWork& site : compute.sites) {
      for (const Step& step : site.after) {
        if (step.kind == StepKind::add_chosen) return step.choice;
      }
    }
    return kNoBuffer;
  }

  void add_flows() {
    const UnitColumns all{.unit = static_cast<UnitId>(options_.dense)};
    for (SiteId s = 0; s < plan_.sites.size(); ++s) {
      const OpGroup group = manifest_.sites[s].group;
      plan_.sites[s].flow = {.input = group == OpGroup::o ? heads_given() : std::vector{all},
                             .before = !dense().sites[s].before.empty(),
                             .output = group == OpGroup::qkv ? heads_taken() : std::vector{all}};
    }
  }

  // Returns the units that have columns of attention's output.
  std::vector<UnitColumns> heads_given() const {
    std::vector<UnitColumns> columns;
    const uint32_t of_head = queries() * manifest_.config.head_dim;
    for_each_that_attends([&](UnitId unit, const UnitRole& role) {
      columns.push_back({unit, role.first_head * of_head, role.heads * of_head});
    });
    return columns;
  }

  // Returns the columns that attention needs: queries, keys and values of each unit's heads.
  std::vector<UnitColumns> heads_taken() const {
    const ModelConfig& config = manifest_.config;
    std::vector<UnitColumns> columns;
    for_each_that_attends([&](UnitId unit, const UnitRole& role) {
      if (role.heads == config.n_kv_heads) return columns.push_back({unit});
      const uint32_t first = role.first_head * config.head_dim, count = role.heads * config.head_dim;
      columns.push_back({unit, first * queries(), count * queries()});
      columns.push_back({unit, config.q_dim() + first, count});
      columns.push_back({unit, config.q_dim() + config.kv_dim() + first, count});
    });
    return columns;
  }

  uint32_t queries() const { return manifest_.config.n_heads / manifest_.config.n_kv_heads; }
  template <class Function>
  void for_each_that_attends(Function function) const {
    for (size_t u = 0; u < roles_.size(); ++u) {
      if (roles_[u].heads != 0) function(static_cast<UnitId>(u), roles_[u]);
    }
  }

  // Adds the editions of the sites, then further stored editions. A step uses a tied head whole, the
  // embedding a row at a time: the head owns the shared edition.
  void add_editions() {
    std::vector<SiteId> owner_of(manifest_.sites.size());
    std::iota(owner_of.begin(), owner_of.end(), SiteId{0});
    for (SiteId s = 0; s < manifest_.sites.size(); ++s) {
      if (const uint32_t embedding = manifest_.sites[s].alias_of; embedding != kNoSite)
        owner_of[embedding] = s;
    }
    for (SiteId s = 0; s < manifest_.sites.size(); ++s) {
      if (owner_of[s] == s) add_stored_edition(s, manifest_.sites[s]);
    }
    for (const StoredSite& stored : manifest_.editions) add_stored_edition(stored.edition_of, stored);
    for (const StoredSite& recoded : options_.recoded) add_recoded_edition(recoded.edition_of, recoded);
    for (SiteId s = 0; s < manifest_.sites.size(); ++s) {
      plan_.sites[s].editions = plan_.sites[owner_of[s]].editions;
      for (UnitPlan& unit : plan_.units) unit.compute.sites[s].editions = plan_.sites[s].editions;
    }
    if (options_.expands) add_expanded_editions();
  }

  void add_stored_edition(SiteId owner, const StoredSite& stored) {
    plan_.sites[owner].editions.push_back(static_cast<EditionId>(plan_.sites.editions.size()));
    plan_.sites.editions.push_back(edition(owner, stored));
    stored_.push_back(&stored);
    for (UnitPlan& unit : plan_.units) {
      unit.compute.editions.push_back(stored.encodings);
      unit.compute.compressed.push_back(compressed(stored));
    }
  }

  // Adds an edition that is made of the site's best one where a memory recodes.
  void add_recoded_edition(SiteId owner, const StoredSite& recoded) {
    const EditionId of = plan_.sites[owner].editions.front();
    const auto made = static_cast<EditionId>(plan_.sites.editions.size());
    add_stored_edition(owner, recoded);
    plan_.sites.editions.back().made_of = of;
    for (UnitPlan& unit : plan_.units) is_made(unit, made, {of, owner});
  }

  static void is_made(UnitPlan& unit, EditionId edition, MadeNeurons how) {
    unit.compute.made.resize(edition + 1);
    unit.compute.made[edition] = how;
  }

  // Adds a dense edition for each compressed one, which replaces it where a memory expands.
  void add_expanded_editions() {
    const auto stored = static_cast<EditionId>(stored_.size());
    for (EditionId e = 0; e < stored; ++e) {
      const SiteId owner = plan_.sites.editions[e].owner;
      const StoredSite& site = *stored_[e];
      if (site.compressed.empty()) continue;
      const size_t expanded = plan_.sites.editions.size();
      Edition& dense = plan_.sites.editions.emplace_back(Edition(plan_.sites.editions[e]));
      dense.made_of = e;
      dense.slot_bytes = static_cast<uint32_t>(site.expanded_slot_bytes());
      for (uint32_t i = 0; i < dense.n; ++i) dense.bytes[i] = static_cast<uint32_t>(site.dense_bytes(i));
      for (UnitPlan& unit : plan_.units) {
        unit.compute.editions.push_back(site.encodings);
        if (site.compression != Compression::bitmap) continue;  // the reading agent expands codecs
        is_made(unit, static_cast<EditionId>(expanded), {e, owner});
      }
    }
  }

  static std::optional<CompressedNeurons> compressed(const StoredSite& stored) {
    if (stored.compression != Compression::bitmap) return std::nullopt;  // units compute from bitmaps alone
    return CompressedNeurons{*Bitmap::of(stored.cut, stored.encodings), stored.compressed};
  }

  static Edition edition(SiteId owner, const StoredSite& stored) {
    Edition edition;
    edition.owner = owner;
    edition.label = static_cast<uint16_t>(stored.encodings.front());
    edition.n = stored.neurons();
    edition.slot_bytes = static_cast<uint32_t>(stored.slot_bytes());
    edition.first_extent = stored.first_extent;
    edition.stride = stored.stride;
    // Dense neurons of a site have one size, except rows: the last may be smaller, and encodings differ.
    const bool alike = !is_cut_into<Rows>(stored.cut) && stored.compressed.empty();
    edition.bytes.assign(edition.n, static_cast<uint32_t>(stored.neuron_bytes(0)));
    for (uint32_t i = 1; !alike && i < edition.n; ++i)
      edition.bytes[i] = static_cast<uint32_t>(stored.neuron_bytes(i));
    return edition;
  }

  Site site(const StoredSite& stored) const {
    Site site;
    site.name = stored.name;
    site.layer = static_cast<uint16_t>(stored.layer == kNoLayer ? UINT16_MAX : stored.layer);
    site.op_group = static_cast<uint16_t>(stored.group);
    if (stored.layer != kNoLayer)
      site.layer_group = static_cast<uint16_t>(stored.layer / manifest_.layer_group);
    if (stored.expert != kNoExpert) {
      site.expert = stored.expert;
      site.layer_group = site.layer;
    }
    cut_site(site, stored.cut);
    if (stored.group == OpGroup::embed) {
      site.set = Site::Set::given;
      site.n_out = site.n_in;  // an embedding copies its rows
    }
    if (stored.group == OpGroup::experts) site.set = Site::Set::chosen;
    site.never_silent = never_silent(stored);
    return site;
  }

  // A channel contributes nothing if its input is 0, a neuron of a network if its activation is.
  bool never_silent(const StoredSite& stored) const {
    if (stored.n_column_parts() == 0) return false;
    switch (stored.group) {
      case OpGroup::ffn:
      case OpGroup::down:
      case OpGroup::expert_down:
        return !manifest_.config.rectifies();
      case OpGroup::qkv:
        return !manifest_.config.qkv_relu;
      default:
        return true;
    }
  }

  const Manifest& manifest_;
  const ModelOptions& options_;
  const std::vector<UnitRole> roles_;
  ModelPlan plan_;
  std::vector<const StoredSite*> stored_;  // [editions but the expanded ones]
};

}  // namespace

void cut_site(Site& site, const Cut& cut) {
  site.label = static_cast<uint8_t>(cut.index());
  site.added = is_added(cut);
  site.run = run_of(cut);
  site.n = neurons(cut);
  site.n_in = inputs(cut);
  site.n_out = outputs(cut);
}

// An edition that is made of another one is either a further edition of its sites, or replaces the other.
void hold_editions(ModelPlan& plan, Memory& memory, uint16_t unit, MadeThere there) {
  const std::vector<Edition>& editions = plan.sites.editions;
  memory.held.clear();
  if (std::ranges::count(editions, kNoEdition, &Edition::made_of) == std::ssize(editions)) return;
  memory.held.resize(editions.size());
  std::iota(memory.held.begin(), memory.held.end(), EditionId{0});
  for (EditionId e = 0; e < editions.size(); ++e) {
    const EditionId made_of = editions[e].made_of;
    if (made_of == kNoEdition) continue;
    const bool beside = plan.sites.wanted(editions[e].owner, e) == e;
    const bool is_made = beside ? there.recodes : there.expands;
    memory.held[e] = is_made ? e : made_of;
    if (!beside) memory.held[made_of] = memory.held[e];
  }
  if (unit == Topology::kNoUnit) return;
  ComputePlan& compute = plan.units[unit].compute;
  // Its agent makes only the editions held there.
  for (EditionId e = 0; e < compute.made.size(); ++e) {
    if (!memory.holds(e)) compute.made[e].reset();
  }
  for (SiteWork& site : compute.sites) {
    for (uint32_t& edition : site.editions) edition = memory.held_as(edition);
    site.editions.erase(std::unique(site.editions.begin(), site.editions.end()), site.editions.end());
  }
}

ModelPlan plan_model(const Manifest& manifest, const ModelOptions& options) {
  return Planner(manifest, options).make();
}

}  // namespace tierd
