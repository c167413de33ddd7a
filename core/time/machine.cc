#include "core/time/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include <toml++/toml.h>

#include "core/time/described_numbers.h"

namespace tierd {
namespace {

using View = DescribedNumbers::View;

constexpr uint32_t kMostDepth = 65536;  // reads in flight
constexpr uint32_t kMostThreads = 65536;
constexpr double kMostLatencyNs = 1e18;

// Uses only the points with the largest measured depth, since the flash agent keeps many reads in flight.
ReadCurve measured_curve(DescribedNumbers& numbers, const View& flash) {
  struct Measured {
    double bytes, depth, rate;
  };
  std::vector<Measured> all;
  for (const toml::node& point : numbers.list(flash["reads"], "flash.reads")) {
    const View view(point);
    all.push_back({numbers.read(view["read_bytes"], "flash.reads.read_bytes"),
                   numbers.read(view["depth"], "flash.reads.depth"),
                   numbers.rate(view["random"], "flash.reads.random")});
  }
  double deepest = 0;
  for (const Measured& point : all) deepest = std::max(deepest, point.depth);
  std::vector<ReadCurve::Point> points;
  for (const Measured& point : all) {
    if (point.depth == deepest) points.push_back({static_cast<uint64_t>(point.bytes), point.rate});
  }
  std::ranges::sort(points, {}, &ReadCurve::Point::bytes);
  if (points.empty()) points.push_back({1, 1});
  return ReadCurve(std::move(points));
}

struct DescribedReads {
  ReadCurve reads;
  double latency_ns = 0;
};

DescribedReads measured_reads(DescribedNumbers& numbers, const View& flash) {
  ReadCurve reads = measured_curve(numbers, flash);
  return {std::move(reads), numbers.read(flash["latency_ns"], "flash.latency_ns")};
}

// The closed form: a time for each read and one for its bytes, up to a rate that no size exceeds. While
// `depth` reads are in flight each takes t0_ns of the disk's time, so the latency of a single read is t0_ns *
// depth.
DescribedReads reads_by_request(DescribedNumbers& numbers, const View& flash) {
  if (flash["reads"]) numbers.fail("'flash.reads' and 'flash.t0_ns' both describe its reads; one may");
  if (flash["latency_ns"])
    numbers.fail("'flash.latency_ns' is 'flash.t0_ns' times 'flash.depth', and is not given beside them");
  const double each = numbers.read(flash["t0_ns"], "flash.t0_ns", 0);
  const double rate = numbers.rate(flash["bytes_per_second"], "flash.bytes_per_second");
  const double cap = numbers.rate(flash["cap_bytes_per_second"], "flash.cap_bytes_per_second");
  const uint32_t depth = numbers.whole(flash["depth"], "flash.depth", 1, kMostDepth);
  if (cap > rate) numbers.fail("'flash.cap_bytes_per_second' is more than 'flash.bytes_per_second'");
  return {ReadCurve::of_requests(each * 1e-9, rate, std::min(cap, rate)),
          std::min(each * depth, kMostLatencyNs)};
}

DiskDescription read_disk(DescribedNumbers& numbers, const View& flash) {
  DescribedReads described =
      flash["t0_ns"] ? reads_by_request(numbers, flash) : measured_reads(numbers, flash);
  return {.reads = std::move(described.reads),
          .latency_ns = static_cast<uint64_t>(described.latency_ns),
          .check_rate = numbers.rate(flash["check_bytes_per_second"], "flash.check_bytes_per_second"),
          .copy_rate = flash["copy_bytes_per_second"]
                           ? numbers.rate(flash["copy_bytes_per_second"], "flash.copy_bytes_per_second")
                           : 0,
          .thread_ns = flash["thread_ns"]
                           ? static_cast<uint64_t>(numbers.read(flash["thread_ns"], "flash.thread_ns", 0))
                           : 0,
          .round = flash["round"] ? numbers.whole(flash["round"], "flash.round", 1, kMostDepth) : 1,
          .folder = numbers.text(flash["folder"], "flash.folder")};
}

// Gives all kernels the same rates: memory's for one token, operations' for many.
std::vector<KernelRate> coarse_rates(DescribedNumbers& numbers, const View& compute) {
  const double bytes = numbers.rate(compute["bytes_per_second"], "compute.bytes_per_second");
  const double flops = numbers.rate(compute["flops"], "compute.flops");
  std::vector<KernelRate> rates;
  for (const Encoding encoding : kAllEncodings) {
    for (const bool int8 : {false, true}) rates.push_back({encoding, int8, bytes, flops / 2});
  }
  return rates;
}

std::vector<KernelRate> read_rates(DescribedNumbers& numbers, const View& compute) {
  const bool coarse = compute["bytes_per_second"] || compute["flops"];
  if (coarse && !compute["rates"]) return coarse_rates(numbers, compute);
  if (coarse)
    numbers.fail("'compute.rates' and 'compute.bytes_per_second' both describe the processor; one may");
  std::vector<KernelRate> rates;
  for (const toml::node& node : numbers.list(compute["rates"], "compute.rates")) {
    const View view(node);
    const std::string encoding = view["encoding"].value_or(std::string());
    const std::string activations = view["activations"].value_or(std::string());
    const std::optional<Encoding> known = by_name<Encoding>(encoding);
    if (!known) numbers.fail(fmt::format("'compute.rates.encoding': there is no encoding '{}'", encoding));
    if (activations != "int8" && activations != "f32")
      numbers.fail(fmt::format("'compute.rates.activations': '{}' is neither int8 nor f32", activations));
    const auto other = [&](const std::string& key) {
      return view[key] ? numbers.rate(view[key], "compute.rates." + key) : 0;
    };
    rates.push_back(
        {.encoding = known.value_or(Encoding::f32),
         .int8_activations = activations == "int8",
         .gemv = numbers.rate(view["gemv_bytes_per_second"], "compute.rates.gemv_bytes_per_second"),
         .gemm = numbers.rate(view["gemm_multiply_adds_per_second"],
                              "compute.rates.gemm_multiply_adds_per_second"),
         .columns = other("columns_bytes_per_second"),
         .gemv_after_wait = other("gemv_after_wait_bytes_per_second"),
         .columns_after_wait = other("columns_after_wait_bytes_per_second")});
  }
  return rates;
}

// Reads the links; a description may have none.
std::vector<LinkDescription> read_links(DescribedNumbers& numbers, const View& links) {
  std::vector<LinkDescription> all;
  const toml::array* array = links.as_array();
  if (links && array == nullptr) numbers.fail("'links' is no list; write [[links]]");
  for (size_t i = 0; array != nullptr && i < array->size(); ++i) {
    const View view((*array)[i]);
    LinkDescription link{.from = numbers.text(view["from"], "links.from"), .to = {}};
    if (view["from"] && link.from.empty())
      numbers.fail("'links.from' is none; the name of a tier is expected");
    link.to = view["to"].value_or(std::string());
    if (link.to.empty()) numbers.fail("'links.to' is missing; the name of a tier is expected");
    link.rate = numbers.rate(view["bytes_per_second"], "links.bytes_per_second");
    link.latency_ns = static_cast<uint64_t>(numbers.read(view["latency_ns"], "links.latency_ns", 0));
    if (view["beside_disk"] && !view["beside_disk"].is_boolean())
      numbers.fail("'links.beside_disk' is no true or false");
    link.beside_disk = view["beside_disk"].value_or(true);
    const auto same = [&](const LinkDescription& other) {
      return other.from == link.from && other.to == link.to;
    };
    if (std::ranges::any_of(all, same))
      numbers.fail(fmt::format("'links' has two from '{}' to '{}'; one may", link.from, link.to));
    all.push_back(std::move(link));
  }
  return all;
}

}  // namespace

std::optional<KernelRate> ProcessorDescription::rate(Encoding encoding, bool int8_activations) const {
  const auto found = std::ranges::find_if(rates, [&](const KernelRate& rate) {
    return rate.encoding == encoding && rate.int8_activations == int8_activations;
  });
  return found == rates.end() ? std::nullopt : std::optional(*found);
}

ProcessorDescription ProcessorDescription::share(double share) const {
  ProcessorDescription part = *this;
  part.memory_rate *= share;
  for (KernelRate& rate : part.rates) {
    rate.gemv *= share;
    rate.gemm *= share;
    rate.columns *= share;
    rate.gemv_after_wait *= share;
    rate.columns_after_wait *= share;
  }
  return part;
}

std::optional<LinkDescription> MachineDescription::link_to(const std::string& tier) const {
  const auto found = std::ranges::find(links, tier, &LinkDescription::to);
  return found == links.end() ? std::nullopt : std::optional(*found);
}

std::optional<LinkDescription> MachineDescription::link(const std::string& from,
                                                        const std::string& to) const {
  const auto named = [&](const std::string& name) {
    return std::ranges::find_if(
        links, [&](const LinkDescription& link) { return link.to == to && link.from == name; });
  };
  auto found = named(from);
  if (found == links.end()) found = named({});
  return found == links.end() ? std::nullopt : std::optional(*found);
}

const UnitDescription* MachineDescription::unit(const std::string& tier) const {
  const auto found = units.find(tier);
  return found == units.end() ? nullptr : &found->second;
}

MachineDescription any_machine() {
  constexpr double kRate = 1e9;
  MachineDescription machine{.path = "any machine",
                             .disk = {.reads = ReadCurve({{1, kRate}}), .latency_ns = 1, .check_rate = kRate},
                             .processor = {.memory_rate = kRate, .rates = {}}};
  for (const Encoding encoding : kAllEncodings) {
    for (const bool int8 : {false, true})
      machine.processor.rates.push_back(
          {.encoding = encoding, .int8_activations = int8, .gemv = kRate, .gemm = kRate});
  }
  return machine;
}

Result<MachineDescription> read_machine(const std::string& name) {
  TIERD_ASSIGN(const NamedToml file, read_machine_file(name));
  const View table(file.table);
  const View compute = table["compute"];
  DescribedNumbers numbers(file.path.string());
  MachineDescription machine{
      .path = file.path.string(),
      .disk = read_disk(numbers, table["flash"]),
      .processor = {.memory_rate = numbers.rate(table["dram"]["bytes_per_second"], "dram.bytes_per_second"),
                    .rates = read_rates(numbers, compute)},
      .links = read_links(numbers, table["links"]),
      .units = read_units(numbers, table["units"])};
  if (compute["threads"])
    machine.processor.threads = numbers.whole(compute["threads"], "compute.threads", 0, kMostThreads);
  if (compute["floats_per_second"])
    machine.processor.floats_rate = numbers.rate(compute["floats_per_second"], "compute.floats_per_second");
  if (compute["after_wait_ns"]) {
    machine.processor.after_wait_ns =
        static_cast<uint64_t>(numbers.read(compute["after_wait_ns"], "compute.after_wait_ns"));
  }
  if (numbers.error()) return *numbers.error();
  return machine;
}

}  // namespace tierd
