// Installs the probe plugin by its name and gives a test access to its hooks.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "core/config/config.h"
#include "tests/plugins_probe/probe.h"

namespace tierd {

// Returns the probe of this process: the plugin's library has one, whichever code loads it first.
inline Probe& the_probe() {
  static Probe* const probe = [] {
    const std::string path = TIERD_PROBE_DIR "/predictor-probe.so";
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << ::dlerror();
    auto* found = static_cast<Probe*>(::dlsym(library, kProbeSymbol));
    EXPECT_NE(found, nullptr);
    return found;
  }();
  return *probe;
}

// Configures the probe as the predictor and clears its hooks.
inline void use_probe(Config& config) {
  config.plugin_path = TIERD_PROBE_DIR;
  config.predictor.name = "probe";
  the_probe() = {};
}

}  // namespace tierd
