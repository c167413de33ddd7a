// Provides every SIMD kernel set that this processor can run as a test parameter.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tiers/compute/kernels.h"

namespace tierd {

inline const ComputeKernels& scalar() {
  return *kernels_by_name("scalar");
}

inline std::vector<std::string_view> simd_sets() {
  std::vector<std::string_view> names;
  for (const auto name : kernel_names()) {
    if (name != "scalar") names.push_back(name);
  }
  return names;
}

// A test name may contain only letters and digits.
inline std::string test_name(std::string_view set) {
  std::string name(set);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class KernelSet : public testing::TestWithParam<std::string_view> {
 protected:
  const ComputeKernels& kernels() const { return *kernels_by_name(GetParam()); }
};

}  // namespace tierd

// Instantiates `suite`, a KernelSet, for all SIMD sets. A machine without AVX2 has none.
#define TIERD_ALL_KERNEL_SETS(suite)                                    \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite);                 \
  INSTANTIATE_TEST_SUITE_P(Simd, suite, testing::ValuesIn(simd_sets()), \
                           [](const auto& test) { return test_name(test.param); })
