// Records completions by the names that a test gave the messages.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/kernel/post/dispatcher.h"

namespace tierd {

class CompletionLog final : public CompletionSink {
 public:
  void on_done(const Message& message, const Done& done) override {
    EXPECT_EQ(message.id, done.id);
    std::string line = names[key(message.id)];
    line += done.status == DoneStatus::cancelled ? "x" : "@" + std::to_string(done.start_ns) + "-";
    lines.push_back(line + std::to_string(done.done_ns));
    ++count[names[key(message.id)]];
    if (react) react(names[key(message.id)]);
  }
  static uint64_t key(MessageId id) { return uint64_t{id.slot} << 32 | id.generation; }

  std::map<uint64_t, std::string> names;
  std::map<std::string, int> count;
  std::vector<std::string> lines;
  std::function<void(const std::string&)> react;
};

}  // namespace tierd
