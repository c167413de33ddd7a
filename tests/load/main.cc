// load: many clients of a running tierd for a bounded time, some of which leave early. Each answer is
// compared with the one that the same request got alone before.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/statistics.h"
#include "tests/tierd/http_client.h"
#include "tools/command_line/command_line.h"

namespace tierd {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr long kPatience = 600;  // s: of 64 clients of a slow build, most wait

struct Options {
  uint32_t port = 8080;
  uint32_t clients = 64;
  uint32_t seconds = 300;
  uint32_t requests = 48;  // distinct ones
  uint32_t leave_percent = 10;
  uint32_t longest = 300;  // bytes of a prompt
  uint64_t seed = 1;
  std::string text;
};

// A request that is made again and again.
struct Sample {
  json body;
  std::string text;  // the answer that it got alone
};

struct Tally {
  std::mutex mutex;
  uint64_t finished = 0, left = 0, refused = 0, tokens = 0;
  std::vector<std::string> faults;
  std::vector<double> first_ms, between_ms;

  void fault(std::string what) {
    const std::lock_guard lock(mutex);
    if (faults.size() < 20) faults.push_back(std::move(what));
  }
};

double ms_since(Clock::time_point then) {
  return std::chrono::duration<double, std::milli>(Clock::now() - then).count();
}

std::vector<Sample> samples_of(const Options& options, Random& random) {
  std::vector<Sample> samples;
  for (uint32_t i = 0; i < options.requests; ++i) {
    const uint32_t most = static_cast<uint32_t>(
        std::min<size_t>(options.text.size() / 2, i % 4 == 0 ? options.longest : options.longest / 8 + 1));
    const uint32_t length = 1 + random.below(most);
    const uint32_t from = random.below(static_cast<uint32_t>(options.text.size()) - length);
    samples.push_back({{{"prompt", options.text.substr(from, length)},
                        {"max_tokens", 1 + random.below(48)},
                        {"temperature", 0},
                        {"ignore_eos", true}},
                       {}});
  }
  return samples;
}

bool learn_alone(const Options& options, Sample& sample) {
  HttpClient client(static_cast<uint16_t>(options.port), kPatience);
  client.post("/v1/completions", sample.body.dump());
  const HttpAnswer answer = client.read();
  if (answer.status != 200) {
    say(fmt::format("alone, a request failed: {} {}", answer.status, answer.body));
    return false;
  }
  sample.text = json::parse(answer.body)["choices"][0]["text"];
  return true;
}

void finish_whole(HttpClient& client, const Sample& sample, Tally& tally) {
  const HttpAnswer answer = client.read();
  if (answer.status == 429) {
    const std::lock_guard lock(tally.mutex);
    ++tally.refused;
    return;
  }
  const json body = json::parse(answer.body, nullptr, false);
  if (answer.status != 200) return tally.fault(fmt::format("status {}: {}", answer.status, answer.body));
  if (body["choices"][0]["text"] != sample.text)
    return tally.fault(fmt::format("{} gave {}", sample.body.dump(), body["choices"][0].dump()));
  const std::lock_guard lock(tally.mutex);
  ++tally.finished;
  tally.tokens += body["usage"]["completion_tokens"].get<uint64_t>();
}

// Reads the stream's events as they arrive, at most `events`, then leaves.
void finish_stream(HttpClient& client, const Sample& sample, uint32_t events, Tally& tally) {
  const Clock::time_point begin = Clock::now();
  const std::string head = client.read_to("\r\n\r\n");
  if (head.find(" 429 ") != std::string::npos) {
    const std::lock_guard lock(tally.mutex);
    ++tally.refused;
    return;
  }
  if (head.find(" 200 ") == std::string::npos)
    return tally.fault("a stream began with " + head.substr(0, 80));
  std::string text;
  std::vector<double> gaps;
  double first = 0;
  Clock::time_point last = begin;
  for (uint32_t n = 0; n < events; ++n) {
    if (client.read_to("data: ").empty()) return tally.fault("a stream ended early: " + sample.body.dump());
    const std::string event = client.read_to("\n\n");
    if (event == "[DONE]\n\n") {
      if (text != sample.text)
        return tally.fault(fmt::format("{} streamed {}", sample.body.dump(), json(text).dump()));
      const std::lock_guard lock(tally.mutex);
      ++tally.finished;
      tally.tokens += gaps.size() + 1;
      tally.first_ms.push_back(first);
      tally.between_ms.insert(tally.between_ms.end(), gaps.begin(), gaps.end());
      return;
    }
    const json chunk = json::parse(event, nullptr, false);
    if (!chunk.is_object() || chunk.contains("error")) return tally.fault("a stream said " + event);
    const json& choice = chunk["choices"][0];
    text += choice["text"].get<std::string>();
    if (!choice["finish_reason"].is_null()) continue;
    n == 0 ? (void)(first = ms_since(begin)) : gaps.push_back(ms_since(last));
    last = Clock::now();
  }
  const std::lock_guard lock(tally.mutex);
  ++tally.left;
}

void be_a_client(const Options& options, const std::vector<Sample>& samples, uint64_t seed,
                 Clock::time_point until, Tally& tally) {
  Random random(seed);
  while (Clock::now() < until) {
    const Sample& sample = samples[random.below(static_cast<uint32_t>(samples.size()))];
    const bool leaves = random.below(100) < options.leave_percent;
    const bool streams = random.below(2) == 0;
    json body = sample.body;
    body["stream"] = streams;
    HttpClient client(static_cast<uint16_t>(options.port), kPatience);
    if (!client.connected()) return tally.fault("cannot connect");
    client.post("/v1/completions", body.dump());
    if (streams) {
      finish_stream(client, sample, leaves ? random.below(6) : UINT32_MAX, tally);
    } else if (leaves) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random.below(50)));
      const std::lock_guard lock(tally.mutex);
      ++tally.left;
    } else {
      finish_whole(client, sample, tally);
    }
  }
}

json get_json(const Options& options, const std::string& path) {
  HttpClient client(static_cast<uint16_t>(options.port), kPatience);
  client.get(path);
  return json::parse(client.read().body, nullptr, false);
}

// The engine's held resources: the same before and after, when no client is connected.
struct Held {
  double credits = 0, requests = 0, used_bytes = 0, budget_bytes = 0;
  bool operator==(const Held&) const = default;
};

Held held_by(const Options& options) {
  HttpClient client(static_cast<uint16_t>(options.port), kPatience);
  client.get("/metrics");
  const std::string text = client.read().body;
  const auto value = [&](const std::string& series) {
    const size_t at = text.find("\n" + series + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
  };
  return {value("tierd_credits{agent=\"flash\"}"), value("tierd_queue_depth{agent=\"flash\"}"),
          value("tierd_used_bytes{tier=\"dram\"}"), value("tierd_budget_bytes{tier=\"dram\"}")};
}

// Waits at most 10 s until no text is processed or waits. Returns what the engine then holds.
Held held_when_idle(const Options& options, Tally& tally) {
  for (int tries = 0; tries < 200; ++tries) {
    const json slots = get_json(options, "/slots");
    const bool idle = slots.is_array() && std::none_of(slots.begin(), slots.end(), [](const json& slot) {
                        return slot["is_processing"].get<bool>();
                      });
    const Held held = held_by(options);
    if (idle && held.requests == 0) return held;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const Held held = held_by(options);
  tally.fault(
      fmt::format("10 s after the last client left a text is still continued, or one of {} requests waits",
                  held.requests));
  return held;
}

int run(const Options& options) {
  Random random(options.seed);
  std::vector<Sample> samples = samples_of(options, random);
  for (Sample& sample : samples) {
    if (!learn_alone(options, sample)) return 1;
  }
  Tally tally;
  const Held before = held_when_idle(options, tally);
  if (before.used_bytes < 0 || before.used_bytes > before.budget_bytes)
    tally.fault(fmt::format("{} bytes in use, {} are the budget", before.used_bytes, before.budget_bytes));
  const Clock::time_point begin = Clock::now();
  std::vector<std::thread> clients;
  for (uint32_t i = 0; i < options.clients; ++i) {
    clients.emplace_back([&, i] {
      be_a_client(options, samples, options.seed + 1 + i, begin + std::chrono::seconds(options.seconds),
                  tally);
    });
  }
  for (std::thread& client : clients) client.join();
  const double seconds = ms_since(begin) / 1000;
  // Clients that have left may hold nothing.
  const Held after = held_when_idle(options, tally);
  if (after != before) {
    tally.fault(fmt::format("not given back: {} credits ({} before), {} bytes in use ({})", after.credits,
                            before.credits, after.used_bytes, before.used_bytes));
  }
  fmt::print(
      "{} clients, {:.0f} s: {} answers as alone ({} tokens, {:.1f}/s), {} left early, {} were told to come "
      "back "
      "(429)\n",
      options.clients, seconds, tally.finished, tally.tokens, static_cast<double>(tally.tokens) / seconds,
      tally.left, tally.refused);
  fmt::print(
      "first token of a stream: p50 {:.0f} ms, p99 {:.0f} ms; between tokens: p50 {:.1f} ms, p99 {:.1f} ms\n",
      quantile(tally.first_ms, 0.5), quantile(tally.first_ms, 0.99), quantile(tally.between_ms, 0.5),
      quantile(tally.between_ms, 0.99));
  for (const std::string& fault : tally.faults) fmt::print("FAULT: {}\n", fault);
  return tally.faults.empty() ? 0 : 1;
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::Options options;
  std::string file;
  tierd::CommandLine line("load",
                          "Drives a running tierd with many clients and compares what each gets with what it "
                          "got alone.");
  line.option("--port", options.port, "of the server, on this machine").shows_default();
  line.option("--clients", options.clients, "at once").shows_default();
  line.option("--seconds", options.seconds, "how long").shows_default();
  line.option("--requests", options.requests, "different ones").shows_default();
  line.option("--longest", options.longest, "bytes of the longest prompt").shows_default();
  line.option("--leave", options.leave_percent, "percent of them whose client leaves early").shows_default();
  line.option("--seed", options.seed, "of the choices").shows_default();
  line.option("file", file, "a text that prompts are cut from").named("TEXT").required();
  if (const auto exit = line.parse(argc, argv)) return *exit;
  auto text = tierd::read_file_or_pipe(file);
  if (!text.ok()) {
    tierd::say(text.error().line());
    return 2;
  }
  options.text = std::move(*text);
  return tierd::run(options);
}
