#include "tiers/gpu/cuda/cufile.h"

#include <cuda_runtime.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/descriptor.h"
#include "core/base/log.h"
#include "tiers/flash/reading_threads.h"
#include "tiers/gpu/cuda/loaded_library.h"

namespace tierd::cuda {
namespace {

// Each read occupies a thread; as many more wait in the queue, so that no thread runs idle.
constexpr uint32_t kThreads = 8;
constexpr uint32_t kDepth = 2 * kThreads;
constexpr size_t kMostBytes = size_t{1} << 30;  // of one read; the agent continues it

Result<CuFile> open_driver(const std::string& name) {
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error{Code::not_found, name, "cannot be loaded: " + why_not_loaded()};
  CuFile functions;
  cufile::DriverOpen* open = nullptr;
  cufile::DriverGetProperties* properties_of = nullptr;
  if (!find_function(library, "cuFileDriverOpen", open) ||
      !find_function(library, "cuFileDriverGetProperties", properties_of) ||
      !find_function(library, "cuFileHandleRegister", functions.register_handle) ||
      !find_function(library, "cuFileHandleDeregister", functions.deregister_handle) ||
      !find_function(library, "cuFileRead", functions.read))
    return Error{Code::not_found, name, "lacks a function of cuFile: " + why_not_loaded()};
  if (const cufile::Error opened = open(); opened.code != 0)
    return Error{Code::io_error, name, fmt::format("its driver does not open: error {}", opened.code)};
  cufile::DriverProperties properties;
  const bool told = properties_of(&properties).code == 0;
  const bool by_module = properties.major_version != 0 || properties.minor_version != 0;
  if (!told || (!by_module && (properties.supported & cufile::kPeerToPeer) == 0))
    return Error{Code::io_error, name,
                 "has its compatibility mode alone, in which the host reads and copies"};
  return functions;
}

// The file, registered with cuFile.
class File {
 public:
  File(const CuFile& library, std::string path, Descriptor file)
      : library_(library), path_(std::move(path)), file_(std::move(file)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (handle_ != nullptr) library_.deregister_handle(handle_);
  }
  Status enter() {
    cufile::Description description;
    description.file.descriptor = file_.get();
    const cufile::Error entered = library_.register_handle(&handle_, &description);
    if (entered.code == 0) return {};
    handle_ = nullptr;
    return Error{Code::io_error, path_,
                 fmt::format("cuFile does not take this file: error {}", entered.code)};
  }
  int32_t read(const DeviceRead& asked) {
    errno = 0;
    const ssize_t bytes = library_.read(handle_, asked.into.data(), std::min(asked.into.size(), kMostBytes),
                                        static_cast<off_t>(asked.offset), 0);
    if (bytes >= 0) return static_cast<int32_t>(bytes);
    if (bytes == -1 && errno != 0) return -errno;
    // Only the first failure is logged: the kernel reports each read that fails in the end.
    if (!said_.exchange(true)) say(fmt::format("{}: cuFile failed to read: error {}", path_, -bytes));
    return -EIO;
  }

 private:
  const CuFile& library_;
  const std::string path_;
  const Descriptor file_;
  cufile::Handle handle_ = nullptr;
  std::atomic<bool> said_ = false;
};

// Reading threads behind a check that maps memory at the addresses that are read to.
class CuFileDevice final : public BlockDevice {
 public:
  CuFileDevice(std::unique_ptr<BlockDevice> threads, std::function<bool(std::span<std::byte>)> map)
      : threads_(std::move(threads)), map_(std::move(map)) {}

  std::string_view name() const override { return threads_->name(); }
  uint32_t depth() const override { return threads_->depth(); }
  bool push(const DeviceRead& read) override {
    if (map_(read.into)) return threads_->push(read);
    refused_.push_back({.token = read.token, .result = -ENOMEM});
    return true;
  }
  void flush() override { threads_->flush(); }
  size_t poll(std::span<DeviceDone> done) override {
    const size_t n = std::min(done.size(), refused_.size());
    std::copy_n(refused_.begin(), n, done.begin());
    refused_.erase(refused_.begin(), refused_.begin() + static_cast<ptrdiff_t>(n));
    return n + threads_->poll(done.subspan(n));
  }
  int wait_fd() const override { return threads_->wait_fd(); }
  void register_memory(std::span<std::byte>) override {}
  bool registered() const override { return false; }

 private:
  const std::unique_ptr<BlockDevice> threads_;
  const std::function<bool(std::span<std::byte>)> map_;
  std::vector<DeviceDone> refused_;
};

}  // namespace

Result<const CuFile*> CuFile::load(const std::string& library) {
  static std::mutex mutex;
  static std::map<std::string, CuFile> loaded;
  const std::lock_guard lock(mutex);
  const auto known = loaded.find(library);
  if (known != loaded.end()) return &known->second;
  TIERD_ASSIGN(const CuFile functions, open_driver(library));
  return &loaded.emplace(library, functions).first->second;
}

Result<std::unique_ptr<BlockDevice>> open_with_cufile(const CuFile& library, const std::string& path,
                                                      int ordinal,
                                                      std::function<bool(std::span<std::byte>)> map) {
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
  if (!descriptor.open())
    return Error{Code::io_error, path,
                 "cannot be opened for direct I/O: " + std::generic_category().message(errno)};
  const auto file = std::make_shared<File>(library, path, std::move(descriptor));
  TIERD_TRY(file->enter());
  // cudaSetDevice applies to the calling thread, so each thread calls it.
  TIERD_ASSIGN(
      std::unique_ptr<BlockDevice> threads,
      make_reading_threads(
          "cuFile", path, kDepth, kThreads, [file](const DeviceRead& read) { return file->read(read); },
          [ordinal] { (void)cudaSetDevice(ordinal); }));
  return std::unique_ptr<BlockDevice>(std::make_unique<CuFileDevice>(std::move(threads), std::move(map)));
}

}  // namespace tierd::cuda
