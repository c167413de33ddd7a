#include "core/formats/shape_source.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/checksum.h"
#include "core/model/shape_file.h"

namespace tierd {

Result<std::unique_ptr<ShapeSource>> ShapeSource::open(const std::string& path, uint32_t zeros_percent) {
  std::unique_ptr<ShapeSource> source(new ShapeSource);
  source->path_ = path;
  source->zeros_percent_ = zeros_percent;
  if (zeros_percent > 100) {
    return Error{Code::invalid_argument, "model.zeros",
                 fmt::format("{} per cent, expected 0 to 100", zeros_percent)};
  }
  TIERD_ASSIGN(source->config_, read_shape(path));
  for (TensorSpec& spec : required_tensors(source->config_)) {
    TensorInfo tensor;
    tensor.name = std::move(spec.name);
    tensor.encoding = spec.rows == 1 || tensor.name == "position" ? Encoding::f32 : Encoding::f16;
    tensor.rows = spec.rows;
    tensor.cols = spec.cols;
    source->tensors_.push_back(std::move(tensor));
  }
  return source;
}

std::string ShapeSource::fingerprint() const {
  return fmt::format("shape: {}; {} % zeros", checksum_text(checksum(shape_text(config_))), zeros_percent_);
}

Status ShapeSource::read(const TensorInfo&, uint64_t, std::span<std::byte>) const {
  return Error{Code::unsupported, path_, "is a shape without weights; make a model of it with tier synth"};
}

}  // namespace tierd
