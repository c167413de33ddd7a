#include "tools/lab/train/distiller.h"

#include "tools/lab/train/trainer_entry.h"
#include "tools/lab/train/trainer_library.h"

namespace tierd {

Result<std::unique_ptr<Distiller>> make_distiller(const Network& network, const DistillerOptions& options) {
  TIERD_ASSIGN(void* const symbol, trainer_symbol("distill", kDistillerSymbol));
  Result<std::unique_ptr<Distiller>> made = std::unique_ptr<Distiller>();
  reinterpret_cast<DistillerEntry*>(symbol)(network, options, made);
  return made;
}

}  // namespace tierd
