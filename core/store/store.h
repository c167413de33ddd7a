// A store on disk, opened for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/disk.h"
#include "core/base/result.h"
#include "core/model/layout/neuron_codec.h"
#include "core/store/manifest.h"

namespace tierd {

class Store {
 public:
  // Reads and checks the manifest, and not the weights. Errors: those of read_manifest.
  static Result<Store> open(const std::string& directory);
  // Makes the description of a store that is not written yet: everything is known but weights and checksums.
  static Store planned(const std::string& directory, Manifest plan);
  bool made() const { return made_; }

  const Manifest& manifest() const { return manifest_; }
  const std::string& directory() const { return directory_; }
  std::string data_path() const;

  // Checks `bytes`, all of an extent as read from the data file, against its checksum. Any thread. Error:
  // corrupt, with file, extent, site, neuron and offset.
  Status verify(uint32_t extent, std::span<const std::byte> bytes) const;
  // Reads and verifies every extent, and expands compressed neurons; returns the first error. `codec` is the
  // manifest's, if it names one.
  Status verify_all(bool quiet, const NeuronCodec* codec = nullptr) const;

  // Checks that the files are the opened ones and were not modified. Error: corrupt, naming the file that was
  // replaced, written to or removed.
  Status unchanged() const;

  // "extent 17 (layers.3.qkv neuron 2, offset 69632)".
  std::string describe(uint32_t extent) const;

 private:
  // Distinguishes a file from another that takes its place.
  struct Identity {
    uint64_t device = 0, inode = 0, bytes = 0;
    int64_t written_s = 0, written_ns = 0;
    bool operator==(const Identity&) const = default;
  };
  static Identity identity_of(const std::string& path);  // zeros if there is no file

  // Error: corrupt if the site's neuron in this extent is malformed; else the codec's.
  Status verify_compressed(const StoredSite& site, uint32_t extent, std::span<const std::byte> bytes,
                           const NeuronCodec* codec) const;

  Store(std::string directory, Manifest manifest, bool made)
      : directory_(std::move(directory)), manifest_(std::move(manifest)), made_(made) {}

  std::string directory_;
  Manifest manifest_;
  bool made_;
  Identity manifest_file_, data_file_;
  std::shared_ptr<const OpenFile>
      held_;  // shared lock that marks the store as in use; null if it cannot be locked
};

}  // namespace tierd
