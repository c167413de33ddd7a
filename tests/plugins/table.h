// A plugin with a test host, called through its table as the kernel would call it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/plugins/choose.h"

namespace tierd {

// A site, with its editions unless it shares another site's. Editions are numbered in the order of their
// owning sites, first the best of each, then the others. If none is shared, the best edition has its site's
// number.
struct TestSite {
  uint32_t n = 0;
  uint32_t slot_bytes = 0;
  bool given = false;
  uint32_t shares = TIERD_NO_SITE;  // the site whose edition it has
  uint8_t axis = TIERD_AXIS_ROW;
  uint32_t n_in = 0;
  std::string name = {};  // default: by its number
  uint16_t layer = 0;
  uint16_t op_group = 0;
  uint16_t layer_group = 0;
  std::vector<uint32_t> lower = {};  // slot bytes of its other editions, the best first
  uint32_t expert = TIERD_NO_EXPERT;
};

// A tensor of two dimensions.
struct TestMatrix {
  uint32_t rows = 0;
  uint32_t cols = 0;
  std::vector<float> values;

  // Returns row r times x.
  double dot(uint32_t r, const float* x) const {
    double sum = 0;
    for (uint32_t j = 0; j < cols; ++j) sum += double{values[uint64_t{r} * cols + j]} * x[j];
    return sum;
  }
};
using TestMatrices = std::map<std::string, TestMatrix>;

// A memory for caches that examine memories. Memories are numbered from 1; units are numbered in the order of
// the memories that compute.
struct TestMemory {
  std::string tier;
  uint32_t over = 0;
  uint64_t bytes = 0;
  bool computes = true;
  uint64_t staging_bytes = 0;
  uint64_t gap_bytes = 0;
};
struct TestMachine {
  std::vector<TestMemory> memories;
  uint32_t own = TIERD_NO_MEMORY;  // of the cache
};

// Returns a site of neurons.
inline TestSite network(uint32_t n, uint32_t slot_bytes = 64) {
  return {n, slot_bytes, false, TIERD_NO_SITE, TIERD_AXIS_NEURON, 8};
}

// Tensors of one dimension, by name. Sites are called "site 0", "site 1", …
using HeatOfSites = std::map<std::string, std::vector<float>>;

template <class Table>
class Plugged {
 public:
  Plugged(const std::string& kind, const std::string& name, const std::vector<TestSite>& sites,
          const std::vector<Setting>& settings = {}, const HeatOfSites& heat = {},
          const TestMatrices& matrices = {}, uint32_t units = 1, const TestMachine& machine = {})
      : choice_(choose(kind, name, settings)),
        heat_(heat),
        matrices_(matrices),
        machine_(machine),
        editions_of_(sites.size()),
        views_(sites.size()) {
    const auto add_edition = [&](uint32_t s, uint32_t slot_bytes) {
      const auto number = static_cast<uint32_t>(edition_views_.size());
      editions_of_[s].push_back(number);
      edition_views_.push_back({sizeof(tierd_edition_view), number, s, sites[s].n, slot_bytes, 4, 0});
    };
    for (uint32_t s = 0; s < sites.size(); ++s) {
      if (sites[s].shares == TIERD_NO_SITE) add_edition(s, sites[s].slot_bytes);
    }
    for (uint32_t s = 0; s < sites.size(); ++s) {
      for (const uint32_t slot_bytes : sites[s].lower) add_edition(s, slot_bytes);
    }
    for (const tierd_edition_view& view : edition_views_) editions_.push_back(&view);
    for (uint32_t s = 0; s < sites.size(); ++s) {
      if (sites[s].shares != TIERD_NO_SITE) editions_of_[s] = editions_of_[sites[s].shares];
      views_[s] = {};
      views_[s].size = sizeof views_[s];
      views_[s].site = s;
      names_.push_back(sites[s].name.empty() ? "site " + std::to_string(s) : sites[s].name);
      views_[s].layer = sites[s].layer;
      views_[s].op_group = sites[s].op_group;
      views_[s].expert = sites[s].expert;
      views_[s].layer_group = sites[s].layer_group;
      views_[s].given = sites[s].given ? 1 : 0;
      views_[s].axis = sites[s].axis;
      views_[s].n = sites[s].n;
      views_[s].n_in = sites[s].n_in;
      views_[s].n_editions = static_cast<uint32_t>(editions_of_[s].size());
      views_[s].editions = editions_of_[s].data();
      sites_.push_back(&views_[s]);
    }
    for (uint32_t s = 0; s < sites.size(); ++s) views_[s].name = names_[s].c_str();
    host_.size = sizeof host_;
    host_.context = this;
    host_.seed = 7;
    host_.n_sites = static_cast<uint32_t>(sites.size());
    host_.sites = sites_.data();
    host_.n_editions = static_cast<uint32_t>(editions_.size());
    host_.editions = editions_.data();
    host_.n_units = units;
    add_memories();
    host_.wish = [](void* context, const tierd_wish* wish) {
      Wish& own = static_cast<Plugged*>(context)->wishes.emplace_back(
          Wish{wish->memory, wish->site, wish->distance, wish->edition, {}, {}});
      if (wish->idx != nullptr) own.neurons.emplace(wish->idx, wish->idx + wish->n);
      if (wish->score != nullptr) own.scores.assign(wish->score, wish->score + wish->n);
      return int{TIERD_OK};
    };
    host_.integer = get<int64_t>;
    host_.number = get<double>;
    host_.flag = [](void* context, const char* key, uint8_t* out) {
      bool value = false;
      const int status = get<bool>(context, key, &value);
      *out = value ? 1 : 0;
      return status;
    };
    host_.text = [](void* context, const char* key, const char** out) {
      const auto* found = static_cast<Plugged*>(context)->choice_.parameters.template get<std::string>(key);
      if (found == nullptr) return int{TIERD_E_INVALID};
      *out = found->c_str();
      return int{TIERD_OK};
    };
    host_.log = [](void* context, int, const char* line) {
      auto& plugged = *static_cast<Plugged*>(context);
      if (plugged.expects_lines) {
        plugged.lines.emplace_back(line);
      } else {
        ADD_FAILURE() << line;
      }
    };
    host_.tensor = [](void* context, const char* site, tierd_tensor_view* out) {
      const TestMatrices& known = static_cast<Plugged*>(context)->matrices_;
      if (const auto matrix = known.find(site); matrix != known.end()) {
        const auto number = static_cast<uint32_t>(std::distance(known.begin(), matrix));
        *out = {sizeof *out, number, 2, 0, {matrix->second.rows, matrix->second.cols}, nullptr};
        return int{TIERD_OK};
      }
      const HeatOfSites& all = static_cast<Plugged*>(context)->heat_;
      const auto found = all.find(site);
      if (found == all.end()) return int{TIERD_E_INVALID};
      *out = {sizeof *out, 0, 1, 0, {found->second.size()}, found->second.data()};
      return int{TIERD_OK};
    };
    host_.linear = [](void* context, uint32_t tensor, const float* x, uint32_t rows, float* y) {
      const TestMatrices& known = static_cast<Plugged*>(context)->matrices_;
      const TestMatrix& matrix = std::next(known.begin(), tensor)->second;
      for (uint32_t r = 0; r < rows; ++r) {
        for (uint32_t i = 0; i < matrix.rows; ++i)
          y[uint64_t{r} * matrix.rows + i] = static_cast<float>(matrix.dot(i, x + uint64_t{r} * matrix.cols));
      }
      return int{TIERD_OK};
    };
    host_.metric = [](void* context, const char* gauge, double value) {
      static_cast<Plugged*>(context)->metrics[gauge] = value;
      return int{TIERD_OK};
    };
    host_.evictable = [](void* context, uint32_t edition, uint32_t neuron) {
      const auto& plugged = *static_cast<Plugged*>(context);
      return plugged.evictable ? plugged.evictable(edition, neuron) : 1;
    };
    host_.holders = [](void* context, uint32_t edition, uint32_t neuron) -> uint64_t {
      const auto& plugged = *static_cast<Plugged*>(context);
      return plugged.holders ? plugged.holders(edition, neuron) : 0;
    };
    host_.home = [](void* context, uint32_t edition, uint32_t neuron) {
      const auto& plugged = *static_cast<Plugged*>(context);
      return plugged.home ? plugged.home(edition, neuron) : 0;
    };
    host_.at_home = [](void* context, uint32_t edition, uint32_t neuron) {
      const auto& plugged = *static_cast<Plugged*>(context);
      return plugged.at_home && !plugged.at_home(edition, neuron) ? 0 : 1;
    };
    host_.heat = [](void* context, uint32_t site) -> const uint8_t* {
      const auto& plugged = *static_cast<Plugged*>(context);
      const auto found = plugged.site_heat.find(site);
      return found == plugged.site_heat.end() ? nullptr : found->second.data();
    };
    host_.resident = [](void* context, uint32_t edition, uint8_t* here) {
      const auto& plugged = *static_cast<Plugged*>(context);
      const uint32_t n = plugged.edition_views_[edition].n;
      for (uint32_t i = 0; i < n; ++i) here[i] = plugged.resident && plugged.resident(edition, i) ? 1 : 0;
      return int{TIERD_OK};
    };
    host_.held = [](void*, uint32_t, uint32_t edition) { return edition; };
    EXPECT_EQ(choice_.plugin->create(&host_, &self), TIERD_OK);
    EXPECT_NE(self, nullptr);
    EXPECT_TRUE(read_table(*choice_.plugin, choice_.origin, table).ok());
    EXPECT_EQ(choice_.plugin->extension("tierd.something_else/1"), nullptr);
  }
  ~Plugged() { choice_.plugin->destroy(self); }
  Plugged(const Plugged&) = delete;
  Plugged& operator=(const Plugged&) = delete;

  // Returns the site whose neurons the edition holds.
  uint32_t site_of(uint32_t edition) const { return edition_views_[edition].site; }

  // The host adds the plugin's wishes here. A test clears the list before the next call.
  struct Wish {
    uint32_t memory, site, distance, edition;
    std::optional<std::vector<uint32_t>> neurons;  // none: all
    std::vector<float> scores;
  };
  std::vector<Wish> wishes;

  Table table{};
  void* self = nullptr;
  std::function<int(uint32_t, uint32_t)> evictable;
  std::function<uint64_t(uint32_t, uint32_t)> holders;  // bit m: memory m; default: none
  std::function<uint32_t(uint32_t, uint32_t)> home;     // default: the first unit
  std::function<bool(uint32_t, uint32_t)> resident;     // default: nothing is resident
  std::function<bool(uint32_t, uint32_t)> at_home;      // default: everything is at home
  std::map<uint32_t, std::vector<uint8_t>> site_heat;   // the answer of `heat`, by site
  // Changes the bytes of a memory.
  void set_bytes(uint32_t memory, uint64_t bytes) { memory_views_[memory - 1].bytes = bytes; }
  std::map<std::string, double> metrics;
  bool expects_lines = false;
  std::vector<std::string> lines;  // logged by the plugin

 private:
  void add_memories() {
    host_.memory = machine_.own;
    for (const TestMemory& memory : machine_.memories) {
      const auto number = static_cast<uint32_t>(memory_views_.size() + 1);
      const auto unit = static_cast<uint32_t>(unit_views_.size());
      memory_views_.push_back({sizeof(tierd_memory_view), number, memory.over,
                               memory.computes ? unit : TIERD_NO_UNIT, memory.tier.c_str(), memory.bytes,
                               memory.staging_bytes, memory.gap_bytes});
      if (memory.computes) unit_views_.push_back({sizeof(tierd_unit_view), unit, number});
    }
    for (const tierd_memory_view& view : memory_views_) memories_.push_back(&view);
    for (const tierd_unit_view& view : unit_views_) units_.push_back(&view);
    if (memories_.empty()) return;
    host_.n_memories = static_cast<uint32_t>(memories_.size());
    host_.memories = memories_.data();
    host_.n_units = static_cast<uint32_t>(units_.size());
    host_.units = units_.data();
  }

  template <class T>
  static int get(void* context, const char* name, T* value) {
    const T* found = static_cast<Plugged*>(context)->choice_.parameters.template get<T>(name);
    if (found == nullptr) return TIERD_E_INVALID;
    *value = *found;
    return TIERD_OK;
  }

  StrategyChoice choice_;
  HeatOfSites heat_;
  TestMatrices matrices_;
  const TestMachine machine_;
  std::vector<tierd_memory_view> memory_views_;
  std::vector<const tierd_memory_view*> memories_;  // into memory_views_
  std::vector<tierd_unit_view> unit_views_;
  std::vector<const tierd_unit_view*> units_;  // into unit_views_
  std::vector<std::string> names_;
  std::vector<std::vector<uint32_t>> editions_of_;  // [sites]
  std::vector<tierd_site_view> views_;
  std::vector<const tierd_site_view*> sites_;  // into views_
  std::vector<tierd_edition_view> edition_views_;
  std::vector<const tierd_edition_view*> editions_;  // into edition_views_
  tierd_host host_{};
};

// Returns neurons of a site whose edition has the site's number.
inline tierd_set_view set_of(uint32_t number, const std::vector<uint32_t>& neurons) {
  tierd_set_view view{};
  view.size = sizeof view;
  view.site = number;
  view.edition = number;
  view.rows = 1;
  view.n = static_cast<uint32_t>(neurons.size());
  view.idx = neurons.data();
  return view;
}

// Returns neurons of an edition of any site.
template <class Table>
tierd_set_view set_of(const Plugged<Table>& plugged, uint32_t edition, const std::vector<uint32_t>& neurons) {
  tierd_set_view view = set_of(edition, neurons);
  view.site = plugged.site_of(edition);
  return view;
}

// Verdicts of a cache.
inline constexpr uint8_t kKeep = TIERD_VERDICT_KEEP;
inline constexpr uint8_t kBypass = TIERD_VERDICT_BYPASS;

// A cache's answer about missing neurons.
struct Admitted {
  std::vector<uint8_t> verdicts;
  std::vector<uint32_t> victims;
};
inline Admitted admit(Plugged<tierd_cache_1>& cache, uint32_t edition, const std::vector<uint32_t>& missing,
                      uint32_t free_slots) {
  Admitted result;
  result.verdicts.assign(missing.size(), 99);
  std::vector<tierd_neuron> victims(missing.size());
  tierd_victims_out out{static_cast<uint32_t>(missing.size()), 0, victims.data()};
  const tierd_set_view set = set_of(cache, edition, missing);
  EXPECT_EQ(
      cache.table.admit(cache.self, &set, TIERD_PRIORITY_DEMAND, free_slots, result.verdicts.data(), &out),
      TIERD_OK);
  EXPECT_LE(out.n, out.cap);
  for (uint32_t i = 0; i < out.n; ++i) {
    EXPECT_EQ(victims[i].edition, edition);
    result.victims.push_back(victims[i].neuron);
  }
  return result;
}

}  // namespace tierd
