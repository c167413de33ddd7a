#include "tools/lab/train/torch_fake_quant.h"

#include <ATen/ATen.h>

#include "core/model/layout/encoding.h"

namespace tierd {

at::Tensor fake_quantized(const at::Tensor& weight, FakeQuant how) {
  if (how == FakeQuant::none) return weight;
  const at::Tensor fixed = weight.detach();
  const int64_t rows = weight.size(0), cols = weight.size(1);
  const bool along_row = how == FakeQuant::q4_0_rows;
  const at::Tensor blocks = along_row ? fixed.view({rows, cols / kQuantBlock, kQuantBlock})
                                      : fixed.view({rows / kQuantBlock, kQuantBlock, cols});
  const int64_t along = along_row ? 2 : 1;
  const at::Tensor largest = blocks.gather(along, blocks.abs().argmax(along, true));
  const at::Tensor scale = (largest / -8).to(at::kHalf).to(at::kFloat);
  const at::Tensor levels = (blocks / scale).round().clamp(-8, 7);
  const at::Tensor rounded = at::where(scale == 0, at::zeros_like(blocks), levels * scale);
  return weight + (rounded.view({rows, cols}) - fixed);
}

}  // namespace tierd
