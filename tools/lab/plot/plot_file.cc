#include "tools/lab/plot/plot_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace tierd {
namespace {

constexpr const char* kGnuplot = "gnuplot";
constexpr size_t kMostWords = 300;  // of gnuplot's error output

std::string last_error() {
  return std::generic_category().message(errno);
}

bool on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const std::string file = std::string(rest.substr(0, colon)) + "/" + program;
    std::error_code none;
    if (::access(file.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(file, none)) return true;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return false;
}

std::optional<PlotFile::Kind> kind_of(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension();
  if (ending == ".svg") return PlotFile::Kind::svg;
  if (ending == ".png") return PlotFile::Kind::png;
  if (ending == ".pdf") return PlotFile::Kind::pdf;
  if (ending == ".gp") return PlotFile::Kind::script;
  return std::nullopt;
}

// A descriptor, closed in the end.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

Status write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n <= 0) return Error{Code::io_error, "--plot", last_error()};
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

// Memory that another program reads or writes as a file: writing never blocks, and there is no SIGPIPE.
Result<int> memory_file() {
  const int file = ::memfd_create("gnuplot", MFD_CLOEXEC);
  if (file < 0) return Error{Code::io_error, kGnuplot, last_error()};
  return file;
}

std::string words_in(const Descriptor& file) {
  std::string words(kMostWords, '\0');
  const ssize_t n = ::pread(file.number(), words.data(), words.size(), 0);
  words.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  std::replace(words.begin(), words.end(), '\n', ' ');
  const size_t begin = words.find_first_not_of(' ');
  return begin == std::string::npos ? "" : words.substr(begin);
}

// gnuplot reads the script from its standard input and draws to `to`; no file name appears in either.
Status draw(const std::string& script, const Descriptor& to) {
  TIERD_ASSIGN(const int script_file, memory_file());
  const Descriptor in(script_file);
  TIERD_TRY(write_all(in.number(), script));
  ::lseek(in.number(), 0, SEEK_SET);
  TIERD_ASSIGN(const int error_file, memory_file());
  const Descriptor errors(error_file);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in.number(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, to.number(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, errors.number(), STDERR_FILENO);
  // Ignores the user's ~/.gnuplot.
  std::array<std::string, 3> words = {kGnuplot, "--default-settings", "-"};
  std::array<char*, 4> argv = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t child = 0;
  const int started = ::posix_spawnp(&child, kGnuplot, &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (started != 0) return Error{Code::internal, kGnuplot, std::generic_category().message(started)};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const bool empty = ::lseek(to.number(), 0, SEEK_END) <= 0;
  if (status == 0 && !empty) return {};
  return Error{Code::internal, kGnuplot, "drew nothing: " + words_in(errors)};
}

}  // namespace

Result<PlotFile> PlotFile::open(const std::string& path) {
  const auto refused = [&](const std::string& why) {
    return Error{Code::invalid_argument, "--plot", fmt::format("{}: {}", path, why)};
  };
  const std::optional<Kind> kind = kind_of(path);
  if (!kind) return refused("expected a name that ends in .svg, .png, .pdf or .gp");
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) return refused("is a folder");
  const std::string folder = std::filesystem::path(path).parent_path();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
    return refused("its folder: " + last_error());
  if (*kind != Kind::script && !on_path(kGnuplot)) {
    return refused(
        "drawing needs gnuplot; install it with apt-get install gnuplot-nox, or write a .gp file and draw it "
        "elsewhere");
  }
  return PlotFile(path, *kind);
}

Status PlotFile::write(const std::string& script) const {
  const std::string unfinished = path_ + ".part";
  const auto fail = [&](const Error& error) {
    ::unlink(unfinished.c_str());
    return error;
  };
  {
    const Descriptor file(::open(unfinished.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0666));
    if (file.number() < 0) return Error{Code::io_error, unfinished, last_error()};
    const Status written = kind_ == Kind::script ? write_all(file.number(), script) : draw(script, file);
    if (!written.ok()) return fail(written.error());
  }
  if (::rename(unfinished.c_str(), path_.c_str()) != 0) return fail({Code::io_error, path_, last_error()});
  return {};
}

}  // namespace tierd
