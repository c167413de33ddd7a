// The part of NVIDIA's cuFile that this folder uses, as its reference describes it
// (docs.nvidia.com/gpudirect-storage, "cuFile API Reference Guide"). The library is loaded at run time if it
// is present and never linked, so that its header is not needed. Layouts are those of the library's binary
// interface.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace tierd::cuda::cufile {

struct Error {
  int code = 0;       // 0: none; from 5001 on those of cuFile
  int cuda_code = 0;  // the CUDA driver's, if that failed
};

using Handle = void*;

struct Description {
  int kind = 1;  // a descriptor of Linux
  union {
    int descriptor;
    void* other;
  } file = {};
  const void* operations = nullptr;  // of a file system in user space
};
static_assert(sizeof(Description) == 24);

struct DriverProperties {
  unsigned major_version = 0;  // of the kernel module nvidia-fs
  unsigned minor_version = 0;
  std::size_t poll_threshold = 0;
  std::size_t most_direct_io = 0;
  unsigned supported = 0;  // bits: file systems and paths that reach the device
  unsigned control = 0;
  unsigned features = 0;
  unsigned sizes[5] = {};
  std::byte of_later_versions[256] = {};
};
// The bit of DriverProperties::supported for reads from NVMe disks by PCI peer to peer, without nvidia-fs.
inline constexpr unsigned kPeerToPeer = 1u << 11;

using DriverOpen = Error();
using DriverGetProperties = Error(DriverProperties*);
using HandleRegister = Error(Handle*, Description*);
using HandleDeregister = void(Handle);
// Returns bytes; -1 with errno; else the negative code of a cuFile error.
using Read = ssize_t(Handle, void* memory, std::size_t bytes, off_t offset, off_t memory_offset);

}  // namespace tierd::cuda::cufile
