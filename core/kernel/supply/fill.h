// Fills a memory with the neurons that its cache wants, before the first step or between two.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/supply/admission.h"
#include "core/kernel/supply/context.h"
#include "core/kernel/supply/sources.h"
#include "core/kernel/supply/transfers.h"

namespace tierd {

class Fill : private TransferWaiter {
 public:
  // Everything referred to outlives this.
  Fill(const SupplyContext& context, Admission& admission, Sources& sources, Transfers& transfers)
      : context_(context), admission_(admission), sources_(sources), transfers_(transfers) {}

  // Fetches the neurons, as far as there is room. `progress` is called with the bytes of each message that
  // landed, `stopping` returns whether to give up. Errors: of a read, plugin_fault, cancelled.
  Task<Status> run(std::vector<WantedNeurons> wanted, std::function<void(uint64_t)> progress,
                   std::function<bool()> stopping);

 private:
  uint32_t started(Transfer& /*transfer*/) override { return 0; }
  void message_ended(const Done& done) override;
  void landed(const Transfer& /*transfer*/, uint32_t /*number*/) override {}
  Retry retry(uint32_t /*number*/) const override {
    return status_.ok() ? Retry::as_it_was : Retry::needless;
  }
  void failed(uint32_t number, const Error& error) override;
  Status admit(std::vector<WantedNeurons> wanted, std::vector<FetchList>& lists);

  const SupplyContext& context_;
  Admission& admission_;
  Sources& sources_;
  Transfers& transfers_;
  std::function<void(uint64_t)> progress_;
  Status status_;
};

}  // namespace tierd
