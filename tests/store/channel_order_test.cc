#include "core/store/channel_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/random.h"
#include "core/store/store.h"
#include "core/store/writer.h"
#include "tests/base/temp_folder.h"
#include "tests/store/memory_source.h"
#include "tools/lab/safetensors/safetensors_writer.h"

namespace tierd {
namespace {

using testing::HasSubstr;

TEST(ChannelOrder, IsEachNumberOnce) {
  const auto is = [](std::vector<float> values) { return is_order(values); };
  EXPECT_TRUE(is({}));
  EXPECT_TRUE(is({0}));
  EXPECT_TRUE(is({2, 0, 1}));
  EXPECT_FALSE(is({1}));
  EXPECT_FALSE(is({0, 0}));
  EXPECT_FALSE(is({0, -1}));
  EXPECT_FALSE(is({0, 1, 1.5f}));
  EXPECT_FALSE(is({0, std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_FALSE(is({0, std::numeric_limits<float>::infinity()}));
}

struct Rates {
  std::string name;
  std::vector<float> values;
};

// Returns rates for each operator that is cut into channels. They are multiples of 1/8, so some are equal.
std::vector<Rates> rates_of(const ModelConfig& config, bool experts = false) {
  Random random(7);
  std::vector<Rates> all;
  const auto add = [&](const std::string& site, uint32_t n) {
    std::vector<float> values(n);
    for (float& value : values) value = static_cast<float>(random.below(8)) / 8;
    all.push_back({site + ".rates", std::move(values)});
  };
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    add(prefix + "qkv", config.d_model);
    add(prefix + "o", config.q_dim());
    for (uint32_t e = 0; experts && e < config.n_experts; ++e) {
      const std::string expert = prefix + "experts." + std::to_string(e) + ".";
      add(expert + "up", config.d_model);
      add(expert + "down", config.d_ff);
    }
    if (config.is_mixture()) continue;
    add(prefix + "up", config.d_model);
    add(prefix + "down", config.d_ff);
  }
  return all;
}

std::string write_rates(const TempFolder& folder, const std::vector<Rates>& rates,
                        const SafetensorsMetadata& about = {}) {
  const std::string path = folder.path() + "/rates.safetensors";
  std::vector<SafetensorsEntry> entries;
  for (const Rates& one : rates) entries.push_back({one.name, "F32", {one.values.size()}});
  auto writer = SafetensorsWriter::create(path, entries, about);
  EXPECT_TRUE(writer.ok());
  for (const Rates& one : rates) EXPECT_TRUE(writer->append(std::as_bytes(std::span(one.values))).ok());
  EXPECT_TRUE(writer->finish().ok());
  return path;
}

std::shared_ptr<const TensorSource> source_of(const ModelConfig& config, Encoding encoding = Encoding::q8_0) {
  return std::make_shared<MemorySource>(config, encoding, 5);
}

std::unique_ptr<TensorSource> ordered(const ModelConfig& config, const std::string& file,
                                      uint32_t layer_group = 1, Encoding encoding = Encoding::q8_0) {
  auto source = in_order_of_use(source_of(config, encoding), {file, layer_group});
  EXPECT_TRUE(source.ok()) << source.error().line();
  return std::move(*source);
}

// Expects falling rates, and among equal ones rising numbers.
void expect_falling(const std::vector<uint32_t>& order, const std::vector<float>& rates) {
  for (size_t i = 1; i < order.size(); ++i) {
    const float before = rates[order[i - 1]], rate = rates[order[i]];
    EXPECT_TRUE(before > rate || (before == rate && order[i - 1] < order[i])) << i;
  }
}

// Experts have orders of their own, also where the layers of a group share theirs.
TEST(ChannelOrder, OfExpertsIsThatOfTheirRates) {
  ModelConfig config = small_mixture();
  config.d_ff = 96;
  const TempFolder folder;
  const std::vector<Rates> rates = rates_of(config, true);
  const std::string file = write_rates(folder, rates);
  auto source = in_order_of_use(source_of(config), {.file = file, .layer_group = 2, .experts = true});
  ASSERT_TRUE(source.ok()) << source.error().line();
  EXPECT_TRUE((*source)->config().expert_order);
  for (const Rates& one : rates) {
    if (one.name.find(".experts.") == std::string::npos) continue;
    const auto order = channel_order(**source, one.name.substr(0, one.name.rfind('.')));
    ASSERT_TRUE(order.has_value()) << one.name;
    expect_falling(*order, one.values);
  }
  const std::string out = folder.path() + "/store";
  const Status written = write_store(
      **source, out,
      {.layout = Layout::channel_group, .layer_group = 2, .experts = ExpertCut::channels, .quiet = true});
  ASSERT_TRUE(written.ok()) << written.error().line();
  const auto manifest = read_manifest(out);
  ASSERT_TRUE(manifest.ok()) << manifest.error().line();
  EXPECT_TRUE(manifest->config.expert_order);
  EXPECT_EQ(
      in_order_of_use(source_of(config), {.file = write_rates(folder, rates_of(config)), .experts = true})
          .code(),
      Code::not_found);
}

TEST(ChannelOrder, IsThatOfTheRates) {
  for (const ModelConfig& config : {small_llama(), small_mixture()}) {
    const TempFolder folder;
    const std::vector<Rates> rates = rates_of(config);
    const auto source = ordered(config, write_rates(folder, rates));
    EXPECT_TRUE(source->config().channel_order);
    EXPECT_NE(source->fingerprint(), source_of(config)->fingerprint());
    EXPECT_EQ(source->tensors().size(), required_tensors(source->config()).size());
    for (const TensorSpec& spec : required_tensors(source->config())) {
      const TensorInfo* const tensor = source->find(spec.name);
      ASSERT_NE(tensor, nullptr) << spec.name;
      EXPECT_EQ(tensor->cols, spec.cols);
    }
    for (const Rates& one : rates) {
      SCOPED_TRACE(one.name);
      const auto order = channel_order(*source, one.name.substr(0, one.name.rfind('.')));
      ASSERT_TRUE(order.has_value());
      EXPECT_TRUE(is_order(std::vector<float>(order->begin(), order->end())));
      expect_falling(*order, one.values);
    }
    EXPECT_FALSE(channel_order(*source, "head").has_value());
  }
}

// The layers of a group are ordered by the sum of their rates.
TEST(ChannelOrder, IsOneForAllLayersOfGroups) {
  const ModelConfig config = small_llama();
  const TempFolder folder;
  std::vector<Rates> rates = rates_of(config);
  const auto source = ordered(config, write_rates(folder, rates), 2);
  for (size_t i = 0; i < 4; ++i) {
    std::vector<float> sum = rates[i].values;
    for (size_t channel = 0; channel < sum.size(); ++channel) sum[channel] += rates[i + 4].values[channel];
    const std::string site = rates[i].name.substr(0, rates[i].name.rfind('.'));
    const auto order = channel_order(*source, site);
    expect_falling(*order, sum);
    EXPECT_EQ(order, channel_order(*source, "layers.1" + site.substr(site.rfind('.'))));
  }
}

// The k-th channel of the store has the bytes of the source's channel that the order names.
TEST(ChannelOrder, ExtentsLieInIt) {
  for (const Encoding encoding : {Encoding::f16, Encoding::q8_0, Encoding::q4_0}) {
    for (const uint32_t layers : {1u, 2u}) {
      const TempFolder folder;
      const ModelConfig config = small_llama();
      const auto source = ordered(config, write_rates(folder, rates_of(config)), layers, encoding);
      const WriteOptions options = {.layout = Layout::channel_group, .layer_group = layers, .quiet = true};
      const std::string plain = folder.path() + "/plain", in_order = folder.path() + "/order";
      ASSERT_TRUE(write_store(*source_of(config, encoding), plain, options).ok());
      const Status written = write_store(*source, in_order, options);
      ASSERT_TRUE(written.ok()) << written.error().line();
      const auto one = Store::open(plain), other = Store::open(in_order);
      ASSERT_TRUE(one.ok() && other.ok()) << (other.ok() ? "" : other.error().line());
      EXPECT_TRUE(other->manifest().config.channel_order);
      for (size_t s = 0; s < one->manifest().sites.size(); ++s) {
        const StoredSite& from = one->manifest().sites[s];
        const StoredSite& to = other->manifest().sites[s];
        const auto order = channel_order(*source, from.name);
        EXPECT_EQ(order.has_value(), is_cut_into<Columns>(from.cut)) << from.name;
        for (uint32_t i = 0; i < from.neurons(); ++i) {
          const uint32_t channel = order ? (*order)[i] : i;
          ASSERT_EQ(other->manifest().extents[to.extent_of(i, 0)].checksum,
                    one->manifest().extents[from.extent_of(channel, 0)].checksum)
              << from.name << " " << i;
        }
      }
      EXPECT_THAT(write_store(*source, plain, options).error().line(), HasSubstr(plain));
    }
  }
}

TEST(ChannelOrder, RefusesOtherRates) {
  const ModelConfig config = small_llama();
  const TempFolder folder;
  const auto refused = [&](auto change, const SafetensorsMetadata& about = {}) {
    std::vector<Rates> rates = rates_of(config);
    change(rates);
    const std::string path = write_rates(folder, rates, about);
    const auto source = in_order_of_use(source_of(config), {path});
    if (source.ok()) return std::string("accepted");
    EXPECT_THAT(source.error().line(), HasSubstr(path));
    return source.error().line();
  };
  EXPECT_EQ(refused([](auto&) {}), "accepted");
  EXPECT_EQ(refused([](auto&) {}, {{kMadeFor, shape_text(config)}}), "accepted");
  EXPECT_THAT(refused([](auto&) {}, {{kMadeFor, "another"}}), HasSubstr("another model"));
  EXPECT_THAT(refused([](auto& rates) { rates.pop_back(); }),
              HasSubstr("has no tensor layers.1.down.rates; write the file with tier profile --thresholds"));
  EXPECT_THAT(refused([](auto& rates) { rates[0].values.pop_back(); }), HasSubstr("expected F32 [64]"));
  EXPECT_THAT(refused([](auto& rates) { rates[2].values[3] = std::nanf(""); }),
              HasSubstr("has a rate outside 0 to 1"));
  EXPECT_THAT(refused([](auto& rates) { rates[2].values[3] = 2; }),
              HasSubstr("layers.0.up.rates has a rate"));
  EXPECT_EQ(in_order_of_use(source_of(config), {folder.path() + "/none"}).code(), Code::not_found);
  const auto source = ordered(config, write_rates(folder, rates_of(config)));
  for (const Layout layout : {Layout::row, Layout::neuron}) {
    EXPECT_THAT(
        write_store(*source, folder.path() + "/rows", {.layout = layout, .quiet = true}).error().line(),
        HasSubstr("model.order: is an order of channels"));
  }
}

}  // namespace
}  // namespace tierd
