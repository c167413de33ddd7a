// The probe plugin as a test uses it: found by its name, with hooks that the test sets.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "core/config/config.h"
#include "tests/plugins_probe/probe.h"

namespace tierd {

// The one of the process, whoever loaded the plugin first.
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

// Asks the probe in place of the predictor.
inline void use_probe(Config& config) {
  config.plugin_path = TIERD_PROBE_DIR;
  config.predictor.name = "probe";
  the_probe() = {};
}

}  // namespace tierd
