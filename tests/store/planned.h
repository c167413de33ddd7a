// Layout plans of models without weights.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

#include "core/store/manifest.h"
#include "core/store/planner.h"

namespace tierd {

// Returns the tensors that a source of this shape has.
inline std::vector<TensorInfo> tensors_of(const ModelConfig& config, Encoding encoding) {
  std::vector<TensorInfo> tensors;
  for (const TensorSpec& spec : required_tensors(config)) {
    TensorInfo info;
    info.name = spec.name;
    info.rows = spec.rows;
    info.cols = spec.cols;
    info.encoding = spec.rows == 1 || spec.name == "position" ? Encoding::f32 : encoding;
    tensors.push_back(std::move(info));
  }
  return tensors;
}

inline const StoredSite& site_of(const Manifest& plan, std::string_view name) {
  for (const StoredSite& site : plan.sites) {
    if (site.name == name) return site;
  }
  ADD_FAILURE() << "no site " << name;
  return plan.sites.front();
}

}  // namespace tierd
