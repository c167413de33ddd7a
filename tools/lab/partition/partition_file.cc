#include "tools/lab/partition/partition_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/file.h"
#include "tools/lab/safetensors/safetensors_writer.h"

namespace tierd {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and read as they are");

constexpr std::string_view kFrequency = ".frequency";
constexpr std::string_view kBytes = ".bytes";

// Returns the site's name if the tensor's name has that end.
std::string site_of(const SafetensorsTensor& tensor, std::string_view end) {
  return tensor.name.ends_with(end) ? tensor.name.substr(0, tensor.name.size() - end.size()) : std::string();
}

Error wrong(const File& file, std::string detail) {
  return {Code::invalid_argument, file.path(), std::move(detail)};
}

Result<std::vector<float>> read_f32(const File& file, const SafetensorsTensor& tensor) {
  if (tensor.dtype != "F32" || tensor.shape.size() != 1) {
    return wrong(file, fmt::format("tensor '{}' is {} with {} dimensions, F32 with one was expected",
                                   tensor.name, tensor.dtype, tensor.shape.size()));
  }
  std::vector<float> values(tensor.shape[0]);
  TIERD_TRY(file.read_exact(tensor.offset, std::as_writable_bytes(std::span(values))));
  return values;
}

Result<uint64_t> read_neuron_bytes(const File& file, const SafetensorsTensor& tensor) {
  TIERD_ASSIGN(const std::vector<float> values, read_f32(file, tensor));
  if (values.size() != 1)
    return wrong(file,
                 fmt::format("tensor '{}' has {} values, one was expected", tensor.name, values.size()));
  const auto bytes = static_cast<double>(values[0]);
  if (bytes >= 1 && bytes <= UINT32_MAX && std::floor(bytes) == bytes) return static_cast<uint64_t>(bytes);
  return wrong(file,
               fmt::format("tensor '{}' is {}, a whole number of bytes was expected", tensor.name, bytes));
}

}  // namespace

Result<Frequencies> read_frequencies(const std::string& path) {
  TIERD_ASSIGN(const File file, File::open(path));
  TIERD_ASSIGN(const std::vector<SafetensorsTensor> tensors, read_safetensors_header(file));
  Frequencies read;
  TIERD_ASSIGN(read.metadata, read_safetensors_metadata(file));
  const auto is_there = [&](const std::string& name) {
    return std::ranges::find(tensors, name, &SafetensorsTensor::name);
  };
  for (const SafetensorsTensor& tensor : tensors) {
    PartitionSite site;
    site.name = site_of(tensor, kFrequency);
    if (site.name.empty()) {
      const std::string of = site_of(tensor, kBytes);
      const std::string missing = of + std::string(kFrequency);
      if (of.empty()) {
        return wrong(file, fmt::format("tensor '{}' is not known, SITE{} and SITE{} were expected",
                                       tensor.name, kFrequency, kBytes));
      }
      if (is_there(missing) == tensors.end())
        return wrong(file, fmt::format("there is '{}', but no '{}'", tensor.name, missing));
      continue;
    }
    const auto bytes = is_there(site.name + std::string(kBytes));
    if (bytes == tensors.end())
      return wrong(file, fmt::format("there is '{}', but no '{}{}'", tensor.name, site.name, kBytes));
    TIERD_ASSIGN(site.neuron_bytes, read_neuron_bytes(file, *bytes));
    TIERD_ASSIGN(site.frequency, read_f32(file, tensor));
    if (const Status good = check(site); !good.ok())
      return wrong(file, good.error().origin + ": " + good.error().detail);
    read.sites.push_back(std::move(site));
  }
  if (!read.sites.empty()) return read;
  return wrong(file, fmt::format("has no tensor SITE{}; tier-profile --frequencies writes them", kFrequency));
}

Status write_partition(const std::string& path, const Frequencies& of, const Partition& partition) {
  std::vector<SafetensorsEntry> entries;
  for (const PartitionSite& site : of.sites) {
    entries.push_back({site.name + ".home", "F32", {site.frequency.size()}});
    entries.push_back({site.name + ".hot", "F32", {site.frequency.size()}});
  }
  TIERD_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(path, entries, of.metadata));
  for (const SitePartition& site : partition) {
    const std::vector<float> home(site.home.begin(), site.home.end());
    TIERD_TRY(writer.append(std::as_bytes(std::span(home))));
    const std::vector<float> hot(site.hot.begin(), site.hot.end());
    TIERD_TRY(writer.append(std::as_bytes(std::span(hot))));
  }
  return writer.finish();
}

}  // namespace tierd
