// Slices for tests of timelines.
#pragma once

#include "core/watch/timeline/timeline.h"

namespace tierd {

inline Slice step_slice(uint32_t step, uint64_t begin_ns, uint64_t end_ns, bool prefill = false) {
  return {.begin_ns = begin_ns,
          .end_ns = end_ns,
          .kind = Slice::Kind::step,
          .prefill = prefill,
          .rows = 1,
          .step = step};
}
inline Slice read_slice(Priority priority, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes = 0) {
  return {.begin_ns = begin_ns,
          .end_ns = end_ns,
          .kind = Slice::Kind::message,
          .agent = 2,
          .site = 0,
          .op = Op::read,
          .priority = priority,
          .units = 3,
          .reads = 2,
          .bytes = bytes,
          .queued_ns = begin_ns};
}
inline Slice compute_slice(uint64_t begin_ns, uint64_t end_ns, Op op = Op::run) {
  return {.begin_ns = begin_ns,
          .end_ns = end_ns,
          .kind = Slice::Kind::message,
          .agent = 1,
          .site = 0,
          .op = op,
          .queued_ns = begin_ns};
}
inline Slice copy_slice(uint64_t begin_ns, uint64_t end_ns, uint64_t bytes = 0) {
  Slice slice = compute_slice(begin_ns, end_ns, Op::move);
  slice.bytes = bytes;
  return slice;
}
inline Slice predictor_slice(uint64_t begin_ns, uint64_t end_ns) {
  return {
      .begin_ns = begin_ns, .end_ns = end_ns, .kind = Slice::Kind::predictor, .site = 0, .asked = "predict"};
}
inline Slice wait_slice(bool on_demand, uint64_t begin_ns, uint64_t end_ns) {
  return {
      .begin_ns = begin_ns, .end_ns = end_ns, .kind = Slice::Kind::wait, .on_demand = on_demand, .site = 0};
}

}  // namespace tierd
