// tierd as a server: start, life and end, access to it, and its reports about itself. Its texts are tested in
// server_completions_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/e2e/server.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::SizeIs;

TEST_F(Server, SaysWhatItIs) {
  start({"-np", "3", "--alias", "bard"});
  EXPECT_EQ(json::parse(get("/health").body), json::parse(R"({"status": "ok"})"));
  const json models = json::parse(get("/v1/models").body);
  EXPECT_EQ(models["data"][0]["id"], "bard");
  EXPECT_EQ(models["data"][0]["meta"]["n_ctx"], 256);
  EXPECT_EQ(json::parse(get("/props").body)["total_slots"], 3);
  EXPECT_THAT(json::parse(get("/slots").body), SizeIs(3));
  EXPECT_EQ(post("/v1/embeddings", {{"input", "x"}}).status, 400u);
  EXPECT_EQ(get("/nowhere").status, 404u);
  EXPECT_EQ(get("/v1/completions").status, 405u);
  const Ended ended = end();
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out, "");
}

TEST_F(Server, KeysStandInAFileToo) {
  const std::string keys = folder().path() + "/keys";
  std::ofstream(keys) << "sesame\n\nopen \n";
  start({"--api-key-file", keys});
  EXPECT_EQ(get("/props").status, 401u);
  EXPECT_EQ(get("/props", "Authorization: Bearer open\r\n").status, 200u);
  std::ofstream(keys, std::ios::trunc) << "\n";
  EXPECT_THAT(run_tierd({"-m", kDemo, "--port", "0", "--api-key-file", keys}).err, HasSubstr("has no key"));
  EXPECT_THAT(run_tierd({"-m", kDemo, "--port", "0", "--api-key", ""}).err,
              HasSubstr("--api-key: is empty, which would admit any client"));
}

TEST_F(Server, AKeyIsAskedForWhereThereIsOne) {
  start({"--api-key", "sesame", "--api-key", "open"});
  EXPECT_EQ(get("/health").status, 200u);
  EXPECT_EQ(get("/props").status, 401u);
  EXPECT_EQ(get("/props", "Authorization: Bearer nonsense\r\n").status, 401u);
  EXPECT_EQ(get("/props", "Authorization: Bearer sesam\r\n").status, 401u);
  EXPECT_EQ(get("/props", "Authorization: Bearer sesame\r\n").status, 200u);
  EXPECT_EQ(get("/props", "X-Api-Key: open\r\n").status, 200u);
}

TEST_F(Server, AClientThatLeavesFreesItsPlace) {
  start({"--ignore-eos"});
  const auto processing = [&] { return json::parse(get("/slots").body)[0]["is_processing"].get<bool>(); };
  {
    HttpClient client(port_);
    client.post("/v1/completions", json{{"prompt", "a"}, {"stream", true}}.dump());
    ASSERT_FALSE(client.read_to("data: ").empty());
    // The state shown is one step old and may not include the text yet.
    for (int i = 0; i < 1000 && !processing(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (int i = 0; i < 1000 && processing(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(processing());
}

// The capacity changes while a text is generated. The text equals that of an undisturbed run.
TEST_F(Server, ATiersCapacityMovesWhileTokensFlow) {
  start({"--ignore-eos", "-ub", "8", "--set", "cache.name=lru", "--set", "tiers.dram.capacity=60%", "--set",
         "tiers.dram.staging=256 KiB"});
  const json text = {{"prompt", "First Citizen:"}, {"max_tokens", 240}};
  const std::string whole = complete(text)["choices"][0]["text"];
  const auto tier = [&] { return json::parse(get("/v1/tiers").body)["tiers"][0]; };
  const json before = tier();
  EXPECT_EQ(before["tier"], "dram");
  const uint64_t at_60 = before["capacity_bytes"];

  json streamed = text;
  streamed["stream"] = true;
  HttpClient client(port_);
  client.post("/v1/completions", streamed.dump());
  std::string written;
  const auto take = [&](int events_to_come) {
    while (events_to_come-- > 0) written += client.read_to("\n\n");
  };
  take(20);
  const auto move = [&](const json& capacity) {
    const HttpAnswer answer = post("/v1/tiers/dram/capacity", {{"capacity", capacity}});
    EXPECT_EQ(answer.status, 200u) << answer.body;
    take(20);
    return json::parse(answer.body, nullptr, false);
  };
  const json smaller = move("30%");
  EXPECT_EQ(smaller["tier"], "dram");
  EXPECT_EQ(smaller["old_capacity_bytes"], at_60);
  const uint64_t at_30 = smaller["capacity_bytes"];
  EXPECT_NEAR(static_cast<double>(at_30), static_cast<double>(at_60) / 2, 1);
  EXPECT_LE(smaller["used_bytes"], smaller["capacity_bytes"]);
  EXPECT_TRUE(smaller["loss"].is_null()) << "nothing is left out";
  EXPECT_EQ(tier()["capacity_bytes"], at_30);
  const uint64_t at_80 = at_60 / 3 * 4;
  EXPECT_EQ(move(at_80)["capacity_bytes"], at_80);
  const HttpAnswer refused = post("/v1/tiers/dram/capacity", {{"capacity", "1000"}});
  EXPECT_EQ(refused.status, 400u);
  EXPECT_THAT(error_of(refused), HasSubstr("tiers.dram.capacity: 1.00 kB is too little: "));
  EXPECT_EQ(error_of(post("/v1/tiers/dram/capacity", {{"capacity", "much"}})).substr(0, 20),
            "tiers.dram.capacity:");
  EXPECT_EQ(tier()["capacity_bytes"], at_80);
  const std::string rest = client.read_to("[DONE]");
  EXPECT_FALSE(rest.empty());
  written += rest;
  std::string said;
  for (size_t at = written.find("data: {"); at != std::string::npos; at = written.find("data: {", at + 1)) {
    const json event = json::parse(written.substr(at + 6, written.find('\n', at) - at - 6));
    if (!event["choices"].empty()) said += event["choices"][0].value("text", "");
  }
  EXPECT_EQ(said, whole);
  const Ended ended = end();
  EXPECT_THAT(ended.err, HasSubstr("tiers.dram.capacity: "));
}

TEST_F(Server, WhatCannotMoveSaysSo) {
  start({"--set", "cache.name=none"});
  const HttpAnswer answer = post("/v1/tiers/dram/capacity", {{"capacity", "50%"}});
  EXPECT_EQ(answer.status, 400u);
  EXPECT_THAT(error_of(answer), HasSubstr("cache 'none'"));
}

// The strategy knows the bytes that it needs beside the resident weights, so it refuses the capacity.
TEST_F(Server, ACapacityThatAStrategyCannotBearIsRefused) {
  start_program({"--config", config_file("m2cache"),
                 "-m",       kDemo,
                 "--port",   "0",
                 "-t",       "1",
                 "-c",       "64",
                 "--temp",   "0",
                 "--set",    "predictor.tensors=" + kDemo + "/predictor-r64.safetensors",
                 "--set",    "tiers.gpu.capacity=70%",
                 "--set",    "tiers.gpu.backend=host",
                 "--set",    "tiers.dram.capacity=50%",
                 "--fit"});
  const json body = {{"prompt", "First"}, {"max_tokens", 4}};
  const json before = complete(body);
  const auto move = [&](const std::string& capacity) {
    return post("/v1/tiers/gpu/capacity", {{"capacity", capacity}});
  };
  const uint64_t had = json::parse(get("/v1/tiers").body)["tiers"][0]["capacity_bytes"];
  HttpAnswer refused;
  uint64_t asked = had;
  for (; asked != 0 && refused.status != 400; asked /= 2) refused = move(std::to_string(asked / 2));
  ASSERT_EQ(refused.status, 400u);
  EXPECT_THAT(error_of(refused), HasSubstr("the minimum is"));
  EXPECT_EQ(move("all").status, 200u);
  complete(body);
  EXPECT_EQ(move(std::to_string(had)).status, 200u);
  EXPECT_EQ(complete(body)["choices"][0]["text"], before["choices"][0]["text"]);
  EXPECT_EQ(get("/health").status, 200u);
}

TEST_F(Server, SigtermFinishesWhatWasBegun) {
  start({"--ignore-eos"});
  const json whole = complete({{"prompt", "First"}, {"max_tokens", 200}});
  HttpClient client(port_);
  client.post("/v1/completions", json{{"prompt", "First"}, {"max_tokens", 200}, {"stream", true}}.dump());
  const std::string mark = "data: ";
  ASSERT_FALSE(client.read_to(mark).empty());
  program_->kill(SIGTERM);
  // Each event is one HTTP chunk, with the chunk's length between two events.
  std::string rest = mark + client.read_to("[DONE]"), text;
  for (size_t at = 0; (at = rest.find(mark + "{", at)) != std::string::npos;) {
    at += mark.size();
    text += json::parse(rest.substr(at, rest.find("\n\n", at) - at))["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(text, whole["choices"][0]["text"]);
  const Ended ended = program_->wait();
  EXPECT_EQ(ended.status, 0) << ended.err;
}

TEST_F(Server, SaysWhereOthersReachItWithoutAKey) {
  const auto said = [](const std::string& host, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"-m", kDemo, "--host", host, "--port", "0", "-t", "1", "-c", "256"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    StartedProgram program(TIERD_BIN_TIERD, arguments);
    for (int i = 0; i < 60'000 && program.err().find("serving on") == std::string::npos; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    program.kill(SIGTERM);
    return program.wait().err;
  };
  const std::string warning = "any client that reaches 0.0.0.0 can use this server";
  EXPECT_THAT(said("0.0.0.0"), HasSubstr(warning));
  EXPECT_THAT(said("0.0.0.0", {"--api-key", "secret"}), Not(HasSubstr(warning)));
  EXPECT_THAT(said("127.0.0.1"), Not(HasSubstr("can use this server")));
  setenv("LLAMA_API_KEY", "", 1);
  EXPECT_THAT(said("127.0.0.1"), HasSubstr("LLAMA_API_KEY is empty"));
  EXPECT_THAT(said("127.0.0.1", {"--api-key", "secret"}), Not(HasSubstr("LLAMA_API_KEY is empty")));
  unsetenv("LLAMA_API_KEY");
}

TEST_F(Server, ASecondSignalEndsAtOnce) {
  start({"--ignore-eos"});
  HttpClient client(port_);
  client.post("/v1/completions", json{{"prompt", "First"}, {"n", 60}}.dump());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  program_->kill(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  program_->kill(SIGINT);
  EXPECT_EQ(program_->wait().status, 128 + SIGINT);
}

TEST_F(Server, APortThatIsTakenIsSaidBeforeAnythingIsLoaded) {
  start();
  const Ended second = run_tierd({"-m", kDemo, "--port", std::to_string(port_)});
  EXPECT_EQ(second.status, 2);
  EXPECT_THAT(second.err, HasSubstr("cannot listen"));
}

TEST_F(Server, MetricsCountWhatHappened) {
  start({"--config", config_file("hybrid"), "--set", "tiers.dram.capacity=60%", "--fit", "-np", "2"});
  const auto value = [&](const std::string& series) {
    const std::string text = get("/metrics").body;
    const size_t at = text.find("\n" + series + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
  };
  EXPECT_EQ(value("llamacpp:tokens_predicted_total"), 0);
  complete({{"prompt", "First Citizen:"}, {"max_tokens", 8}});
  // The engine publishes its state after the step that gave the last token; the answer may arrive earlier.
  for (int i = 0; i < 1000 && value("tierd_texts_total") < 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(value("llamacpp:tokens_predicted_total"), 8);
  EXPECT_EQ(value("tierd_store_changed"), 0);
  EXPECT_GT(value("llamacpp:prompt_tokens_total"), 1);
  EXPECT_EQ(value("llamacpp:requests_processing"), 0);
  EXPECT_GT(value("tierd_link_bytes_total{from=\"flash\",to=\"dram\"}"), 0);
  EXPECT_GT(value("tierd_link_payload_bytes_total{from=\"flash\",to=\"dram\"}"), 0);
  EXPECT_LE(value("tierd_link_payload_bytes_total{from=\"flash\",to=\"dram\"}"),
            value("tierd_link_bytes_total{from=\"flash\",to=\"dram\"}"));
  EXPECT_GT(value("tierd_budget_bytes{tier=\"dram\"}"), 0);
  EXPECT_LE(value("tierd_used_bytes{tier=\"dram\"}"), value("tierd_budget_bytes{tier=\"dram\"}"));
  EXPECT_EQ(value("tierd_pressure_shrinks_total{tier=\"dram\"}"), 0);
  EXPECT_EQ(value("tierd_pressure_grows_total{tier=\"dram\"}"), 0);
  EXPECT_EQ(value("tierd_site_active_share{site=\"head\"}"), 1);
  EXPECT_THAT(get("/metrics").headers.at("content-type"), HasSubstr("text/plain"));
}

TEST_F(Server, VariablesOfTheEnvironmentCountWhereNoFlagDoes) {
  setenv("LLAMA_ARG_ALIAS", "by variable", 1);
  setenv("LLAMA_ARG_CTX_SIZE", "32", 1);
  start();
  unsetenv("LLAMA_ARG_ALIAS");
  unsetenv("LLAMA_ARG_CTX_SIZE");
  const json model = json::parse(get("/v1/models").body)["data"][0];
  EXPECT_EQ(model["id"], "by variable");
  EXPECT_EQ(model["meta"]["n_ctx"], 256);  // -c
}

TEST_F(Server, ALineForEachRequestAndText) {
  start({"--log-format", "json"});
  const std::string id = "X-Request-Id: my-request.7\r\n";
  EXPECT_EQ(post("/v1/completions", {{"prompt", "First"}, {"max_tokens", 3}}, id).headers.at("x-request-id"),
            "my-request.7");
  EXPECT_EQ(get("/nowhere", "X-Request-Id: other\r\n").status, 404u);
  EXPECT_EQ(get("/health").status, 200u);
  const Ended ended = end();
  json text, request, other;
  std::istringstream lines(ended.err);
  for (std::string line; std::getline(lines, line);) {
    const json object = json::parse(line);
    EXPECT_EQ(object["level"], "info");
    EXPECT_THAT(object["time"].get<std::string>(), testing::EndsWith("Z"));
    EXPECT_NE(object.value("path", ""), "/health");
    if (object.value("request", "") == "other") other = object;
    if (object.value("request", "") == "my-request.7") (object.contains("text") ? text : request) = object;
  }
  EXPECT_EQ(text["generated_tokens"], 3) << ended.err;
  EXPECT_EQ(text["ended_by"], "length");
  EXPECT_EQ(request["path"], "/v1/completions");
  EXPECT_EQ(request["status"], 200);
  EXPECT_EQ(other["status"], 404);
}

TEST_F(Server, ATraceNamesTheRequests) {
  const std::string trace = folder().path() + "/trace";
  start({"--trace", trace});
  const std::string id = "X-Request-Id: my-request.7\r\n";
  EXPECT_EQ(post("/v1/completions", {{"prompt", "First"}, {"max_tokens", 3}}, id).status, 200u);
  EXPECT_EQ(end().status, 0);
  EXPECT_THAT(StartedProgram(TIERD_BIN_TRACE, {"print", trace}).wait().out,
              HasSubstr("sequence 0 begins: my-request.7"));
}

TEST_F(Server, AKillLosesNothingButWhatWasInFlight) {
  start({"--ignore-eos"});
  const json before = complete({{"prompt", "First"}, {"max_tokens", 8}});
  HttpClient client(port_);
  client.post("/v1/completions", json{{"prompt", "a"}, {"stream", true}}.dump());
  ASSERT_FALSE(client.read_to("data: ").empty());
  program_->kill(SIGKILL);
  EXPECT_EQ(program_->wait().status, 128 + SIGKILL);
  // The new server uses the same port, where the killed server's connections linger.
  start_program({"-m", kDemo, "--port", std::to_string(port_), "-t", "1", "-c", "256", "--temp", "0"});
  EXPECT_EQ(complete({{"prompt", "First"}, {"max_tokens", 8}})["choices"][0]["text"],
            before["choices"][0]["text"]);
}

TEST_F(Server, AStoreThatIsReplacedIsNoticedNotMixed) {
  const std::string store = folder().path() + "/store", other = folder().path() + "/other";
  ASSERT_EQ(StartedProgram(TIERD_BIN_CONVERT, {kDemo, store, "-q"}).wait().status, 0);
  ASSERT_EQ(StartedProgram(TIERD_BIN_CONVERT, {kDemo, other, "--neuron-bytes", "4096", "-q"}).wait().status,
            0);
  // Every token streams all weights.
  start_program({"--config", config_file("naive"), "-m", store, "--port", "0", "-t", "1", "-c", "64",
                 "--temp", "0", "--set", "tiers.dram.capacity=60%", "--fit"});
  const json body = {{"prompt", "First"}, {"max_tokens", 8}};
  const json before = complete(body);
  ASSERT_EQ(std::rename(store.c_str(), (store + ".old").c_str()), 0);
  ASSERT_EQ(std::rename(other.c_str(), store.c_str()), 0);
  EXPECT_EQ(complete(body)["choices"][0]["text"], before["choices"][0]["text"]);
  const auto noticed = [&] {
    return program_->err().find("was replaced since it was opened") != std::string::npos;
  };
  for (int i = 0; i < 1000 && !noticed(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(noticed()) << program_->err();
  EXPECT_EQ(complete(body)["choices"][0]["text"], before["choices"][0]["text"]);

  // Overwriting the data in place fails the request, and the server continues.
  const std::string data = store + ".old/weights.bin";
  const uintmax_t bytes = std::filesystem::file_size(data);
  std::ofstream(data, std::ios::in | std::ios::out) << std::string(bytes, 'x');
  const HttpAnswer broken = post("/v1/completions", body);
  EXPECT_EQ(broken.status, 500u);
  EXPECT_THAT(error_of(broken), HasSubstr("checksum"));
  const HttpAnswer health = get("/health");
  EXPECT_EQ(health.status, 503u);
  EXPECT_THAT(error_of(health), HasSubstr("checksum"));
}

TEST_F(Server, AStoreServesTwo) {
  start();
  const json first = complete({{"prompt", "First"}, {"max_tokens", 8}});
  const std::unique_ptr<StartedProgram> other = std::move(program_);
  start();
  EXPECT_EQ(complete({{"prompt", "First"}, {"max_tokens", 8}})["choices"][0]["text"],
            first["choices"][0]["text"]);
}

}  // namespace
}  // namespace tierd
