#include "tools/tier/conform/simulated_core.h"

#include <array>

#include "core/model/layout/cut.h"

namespace tierd {
namespace {

// Sets the properties of such a cut that plugins and the kernel see.
template <class C>
void cut_into(Site& site) {
  site.label = kCutNumber<C>;
  site.added = C::kAdded;
  site.run = C::kRun;
}

// Appends a site without editions.
Site& add_site(SiteTable& sites, uint32_t n) {
  const auto number = static_cast<SiteId>(sites.size());
  Site& site = sites.all.emplace_back();
  site.name = fmt::format("layers.{}.site", number);
  site.layer = static_cast<uint16_t>(number);
  site.n = n;
  site.n_in = 64;
  site.n_out = n * 16;
  return site;
}

// Appends an edition of `owner`. Callers add editions in the order of the owners.
void add_edition(SiteTable& sites, SiteId owner, uint32_t slot_bytes) {
  sites[owner].editions.push_back(static_cast<EditionId>(sites.editions.size()));
  Edition& edition = sites.editions.emplace_back();
  edition.owner = owner;
  edition.n = sites[owner].n;
  edition.slot_bytes = slot_bytes;
}

}  // namespace

SiteTable draw_sites(uint32_t world, Random& random) {
  SiteTable sites;
  const auto add = [&](uint32_t n, uint32_t slot_bytes) {
    add_site(sites, n);
    add_edition(sites, static_cast<SiteId>(sites.size() - 1), slot_bytes);
  };
  switch (world) {
    case 0:
      return sites;
    case 1:
      add(1, 4096);
      return sites;
    case 2:  // the rows of a tied embedding are the head's
      add_site(sites, 6).set = Site::Set::given;
      add(10, 4096);
      add(6, 4096);
      sites[0].editions = sites[2].editions;
      return sites;
    case 3:  // one large site among small ones
      add(1, 1u << 20);
      add(20'000, 64);
      add(2, 1u << 20);
      return sites;
    case 4: {  // operators in channels, those of two layers contiguous
      constexpr std::array kOperators = {"qkv", "o", "up", "down"};
      for (uint16_t layer = 0; layer < 5; ++layer) {
        for (uint16_t op = 0; op < kOperators.size(); ++op) {
          add(op == 3 ? 48 : 24, 128);
          Site& site = sites.all.back();
          site.name = fmt::format("layers.{}.{}", layer, kOperators[op]);
          cut_into<Columns>(site);
          site.n_in = site.n;
          site.layer = layer;
          site.op_group = op;
          site.layer_group = layer / 2;
        }
      }
      return sites;
    }
    default:
      break;
  }
  for (uint32_t i = 0; i < 1 + random.below(8); ++i) {
    add(1 + random.below(random.below(3) == 0 ? 400 : 20), 64 * (1 + random.below(64)));
    Site& site = sites.all.back();
    if (i == 0 && random.below(2) == 0) site.set = Site::Set::given;
    if (!site.given() && random.below(2) == 0) cut_into<Bundles>(site);
  }
  return sites;
}

SiteTable in_several_editions(const SiteTable& drawn) {
  SiteTable several;
  several.all = drawn.all;
  for (Site& site : several.all) site.editions.clear();
  for (const Edition& one : drawn.editions) {
    for (uint32_t part = 1; part <= 1 + one.owner % 4; ++part)
      add_edition(several, one.owner, 64 * ((one.slot_bytes / 64 + part - 1) / part));
  }
  for (SiteId s = 0; s < drawn.size(); ++s) {
    if (const SiteId owner = drawn.best_of(s).owner; owner != s)
      several[s].editions = several[owner].editions;
  }
  return several;
}

void naive_linear(const PluginTensors::Tensor& tensor, const float* x, uint32_t rows, float* y) {
  const uint64_t n_out = tensor.dims[0], n_in = tensor.dims[1];
  const uint64_t bytes = group_bytes(tensor.encoding, static_cast<uint32_t>(n_in));
  std::vector<float> weights(n_in);
  for (uint64_t i = 0; i < n_out; ++i) {
    if (n_in != 0) {
      unpack_row(tensor.encoding, static_cast<uint32_t>(i % kGroupRows),
                 {tensor.packed.get() + i / kGroupRows * bytes, bytes}, weights);
    }
    for (uint64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (uint64_t j = 0; j < n_in; ++j) sum += double{weights[j]} * x[row * n_in + j];
      y[row * n_out + i] = static_cast<float>(sum);
    }
  }
}

std::vector<uint32_t> draw_set(uint32_t n, Random& random) {
  std::vector<uint32_t> set;
  const uint32_t kind = random.below(5);
  if (kind == 0) return set;
  for (uint32_t i = 0; i < n; ++i) {
    const bool in = kind == 1 || (kind == 2 ? random.below(16) == 0 : random.below(2) == 0);
    if (in) set.push_back(i);
  }
  return set;
}

void check_list(const char* rule, const uint32_t* idx, uint32_t count, uint32_t n, Report& report) {
  for (uint32_t i = 0; i < count; ++i) {
    const bool right = idx[i] < n && (i == 0 || idx[i] > idx[i - 1]);
    report.check(rule, right,
                 [&] { return fmt::format("{} at place {} of {}, below {}", idx[i], i, count, n); });
    if (!right) return;
  }
}

}  // namespace tierd
