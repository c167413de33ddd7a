#include "core/base/standard_streams.h"

#include <fcntl.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "core/base/log.h"

namespace tierd {
namespace {

// Writes the error without allocating memory, of which there may be none.
void tell_and_end() {
  std::array<char, 512> line{};
  int bytes = 0;
  try {
    const std::exception_ptr thrown = std::current_exception();
    if (!thrown) std::abort();
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    bytes = std::snprintf(
        line.data(), line.size(),
        "memory: an allocation failed at the limit of the process (ulimit -v) or of the machine\n");
  } catch (const std::exception& e) {
    bytes = std::snprintf(line.data(), line.size(), "the system or a library failed: %s\n", e.what());
  } catch (...) {
    std::abort();
  }
  const auto told = std::min<size_t>(static_cast<size_t>(std::max(bytes, 0)), line.size() - 1);
  (void)!write(STDERR_FILENO, line.data(), told);
  std::_Exit(1);
}

}  // namespace

void prepare_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // open() returns the lowest free number, which is this stream's. The access mode is the wrong one, so
    // that use of the stream is still an error.
    (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
  // Exceeding the file size limit becomes an error of write(), like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(tell_and_end);
  spdlog::set_default_logger(spdlog::stderr_logger_mt("tierd"));
  set_log_format(LogFormat::text);
}

Status write_output(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return {};
  return Error{Code::io_error, "standard output", std::strerror(errno)};
}

}  // namespace tierd
