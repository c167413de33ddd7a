// A store on disk, opened to be read.
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
  // The manifest read and checked; the weights are not touched. Errors: those of read_manifest.
  static Result<Store> open(const std::string& directory);
  // What a store will be that nobody has written yet: everything can be asked but the weights and checksums.
  static Store planned(const std::string& directory, Manifest plan);
  bool made() const { return made_; }

  const Manifest& manifest() const { return manifest_; }
  const std::string& directory() const { return directory_; }
  std::string data_path() const;

  // Whether `bytes`, all of an extent as read from the data file, are what was written. Any thread. Error:
  // corrupt, with file, extent, site, neuron and offset.
  Status verify(uint32_t extent, std::span<const std::byte> bytes) const;
  // Reads and verifies every extent, and that compressed neurons can be expanded; the first bad one is the
  // error. `codec` is that of the manifest, where it names one.
  Status verify_all(bool quiet, const NeuronCodec* codec = nullptr) const;

  // Whether the files are still those that were opened, untouched. Error: corrupt, naming the file that was
  // replaced, written to or removed.
  Status unchanged() const;

  // "extent 17 (layers.3.qkv neuron 2, offset 69632)".
  std::string describe(uint32_t extent) const;

 private:
  // What tells a file from another that takes its place.
  struct Identity {
    uint64_t device = 0, inode = 0, bytes = 0;
    int64_t written_s = 0, written_ns = 0;
    bool operator==(const Identity&) const = default;
  };
  static Identity identity_of(const std::string& path);  // of none: zeros

  // Error: corrupt, where the site's neuron in this extent is malformed; else what the codec says.
  Status verify_compressed(const StoredSite& site, uint32_t extent, std::span<const std::byte> bytes,
                           const NeuronCodec* codec) const;

  Store(std::string directory, Manifest manifest, bool made)
      : directory_(std::move(directory)), manifest_(std::move(manifest)), made_(made) {}

  std::string directory_;
  Manifest manifest_;
  bool made_;
  Identity manifest_file_, data_file_;
  std::shared_ptr<const OpenFile>
      held_;  // so that nobody takes it for unused; none where it cannot be locked
};

}  // namespace tierd
