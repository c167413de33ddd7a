// Weights as Q4_0 would have them, in libtorch. Part of the trainer's shared object.
#pragma once

#include <ATen/core/Tensor.h>

#include "tools/lab/train/distiller.h"

namespace tierd {

// `weight` [rows x cols] encoded to Q4_0 and decoded again (core/model/layout/codec.h), blocks of 32 along
// rows or columns, whose length they divide; the gradient is that of `weight`.
at::Tensor fake_quantized(const at::Tensor& weight, FakeQuant how);

}  // namespace tierd
