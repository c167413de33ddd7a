// Runs a built program as a child and returns its output and exit status. The child dies with the test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "tests/base/temp_folder.h"
#include "tests/formats/files.h"

namespace tierd {

// Descriptors for the child's streams in place of the test's files.
struct Streams {
  int in = -1;   // a descriptor of the test
  int out = -1;  // a descriptor of the test
  bool close_in = false;
  bool close_out = false;
  bool close_err = false;
  bool ignore_pipe = false;            // ignore SIGPIPE, as some parents leave it
  std::function<void()> prepare = {};  // called in the child before exec
};

struct Ended {
  int status = 0;  // as a shell shows it: the exit code, or 128 + signal
  std::string out;
  std::string err;
};

class StartedProgram {
 public:
  StartedProgram(std::string path, std::vector<std::string> arguments, const Streams& streams = {}) {
    arguments.insert(arguments.begin(), path);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    const auto file = [&](const char* name, int to) {
      const int from = open((folder_.path() + "/" + name).c_str(), O_CREAT | O_RDWR, 0600);
      dup2(from, to);
      close(from);
    };
    if (streams.in >= 0) dup2(streams.in, STDIN_FILENO);
    if (streams.out >= 0) {
      dup2(streams.out, STDOUT_FILENO);
    } else {
      file("out", STDOUT_FILENO);
    }
    file("err", STDERR_FILENO);
    if (streams.close_in) close(STDIN_FILENO);
    if (streams.close_out) close(STDOUT_FILENO);
    if (streams.close_err) close(STDERR_FILENO);
    signal(SIGPIPE, streams.ignore_pipe ? SIG_IGN : SIG_DFL);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    if (streams.prepare) streams.prepare();
    execv(argv[0], argv.data());
    _exit(127);
  }
  ~StartedProgram() {
    if (!waited_) kill(SIGKILL), (void)wait();
  }
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;

  void kill(int number) const { ::kill(pid_, number); }
  pid_t pid() const { return pid_; }
  // Return the output up to now.
  std::string out() const { return file_text(folder_.path() + "/out"); }
  std::string err() const { return file_text(folder_.path() + "/err"); }

  Ended wait() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    waited_ = true;
    return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), out(), err()};
  }

 private:
  TempFolder folder_;
  pid_t pid_ = -1;
  bool waited_ = false;
};

inline Ended run_program(const std::string& path, std::vector<std::string> arguments,
                         const Streams& streams = {}) {
  return StartedProgram(path, std::move(arguments), streams).wait();
}
inline Ended run_tierd(std::vector<std::string> arguments, const Streams& streams = {}) {
  return run_program(TIERD_BIN_TIERD, std::move(arguments), streams);
}

// Gives the programs of a test a cache folder of their own. A test that hangs is ended by a signal.
class ProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    constexpr unsigned kWatchdogSeconds = 200;
    alarm(kWatchdogSeconds);
    setenv("TIERD_CACHE", cache().c_str(), 1);
  }
  void TearDown() override { alarm(0); }

  std::string cache() const { return folder_.path() + "/cache"; }
  const TempFolder& folder() const { return folder_; }
  // Returns the names in the cache folder: stores and unfinished stores.
  std::vector<std::string> cached() const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(cache(), none)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  TempFolder folder_;
};

inline const std::string kDemo = TIERD_SOURCE_DIR "/configs/models/demo";
inline std::string config_file(const std::string& name) {
  return TIERD_SOURCE_DIR "/configs/" + name + ".toml";
}

}  // namespace tierd
