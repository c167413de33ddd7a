// The share of inputs that each operator leaves out, if shares differ: some operators lose little by it (a
// ReLU's outputs are mostly zero), others much. The tensor, measured on a text (tier-profile --thresholds),
//
//   SITE.lost  [101]: the loss of the operator's result without the smallest 0, 1, ... 100 % of its inputs,
//               as a share of its sum of squares
//
// gives that loss. The chosen shares leave out `sparsity` of the bytes with the least sum of losses.
#ifndef TIERD_TOP_K_ALLOCATION_HPP
#define TIERD_TOP_K_ALLOCATION_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "tierd/plugin.hpp"

namespace tierd {

class Allocation {
 public:
  // Returns [sites] shares, without meaning for sites that are not cut into channels. Throws Failure if a
  // site has no table.
  static std::vector<double> measured(const Host& host, double sparsity) {
    Allocation allocation(host);
    // Searches the price of a byte that is read: a higher price leaves out more.
    double low = 0, high = 1;
    while (allocation.left_out(high) < sparsity && high < 1e12) high *= 2;
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (allocation.left_out(middle) < sparsity ? low : high) = middle;
    }
    allocation.left_out(high);
    std::vector<double> shares(host.n_sites(), sparsity);
    for (const Operator& of : allocation.operators_) shares[of.site] = of.percent / double{kPercent};
    return shares;
  }

 private:
  static constexpr uint32_t kPercent = 100;
  struct Operator {
    uint32_t site;
    double bytes;       // as a share of the bytes of all operators
    const float* lost;  // [101]
    uint32_t percent = 0;
  };

  explicit Allocation(const Host& host) {
    double all = 0;
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      const tierd_site_view& site = host.site(s);
      if (site.axis != TIERD_AXIS_CHANNEL) continue;
      const std::string name = std::string(site.name) + ".lost";
      if (!host.has_tensor(name.c_str())) {
        throw Failure(TIERD_E_UNSUPPORTED,
                      "allocation = measured needs tables that tier profile --thresholds writes, but "
                      "predictor.tensors has no '" +
                          name + "'");
      }
      const tierd_tensor_view lost = host.tensor(name.c_str());
      if (lost.n_dims != 1 || lost.dims[0] != kPercent + 1)
        throw Failure(TIERD_E_INVALID, name + " should be 101 values");
      if (lost.data[kPercent] == 0) continue;  // an expert that the text never used gets the mean share
      const double bytes = static_cast<double>(host.edition(site.editions[0]).bytes) * site.n;
      operators_.push_back({s, bytes, lost.data});
      all += bytes;
    }
    for (Operator& of : operators_) of.bytes /= all;
  }

  // Returns the share of all bytes that is left out at this price.
  double left_out(double price) {
    double share = 0;
    for (Operator& of : operators_) {
      double least = of.lost[0];
      of.percent = 0;
      for (uint32_t percent = 1; percent <= kPercent; ++percent) {
        const double cost = of.lost[percent] - price * of.bytes * percent / kPercent;
        if (cost > least) continue;
        least = cost;
        of.percent = percent;
      }
      share += of.bytes * of.percent / kPercent;
    }
    return share;
  }

  std::vector<Operator> operators_;
};

}  // namespace tierd
#endif
