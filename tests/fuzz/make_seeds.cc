// Writes valid inputs for every target: fuzz_seeds FOLDER makes FOLDER/<target>/<name>. Models are as small
// as possible, so most mutations hit the description of the weights rather than the weights.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "core/model/layout/encoding.h"
#include "core/run/measured_loss.h"
#include "core/store/compressed_plan.h"
#include "core/store/manifest_json.h"
#include "core/store/progress_file.h"
#include "core/store/writer.h"
#include "core/strategy/codec.h"
#include "core/watch/trace/codec.h"
#include "tests/base/temp_folder.h"
#include "tests/formats/files.h"
#include "tests/formats/gguf_builder.h"
#include "tests/formats/safetensors_builder.h"
#include "tests/fuzz/recorded_trace.h"
#include "tests/fuzz/trace_file.h"
#include "tests/store/memory_source.h"
#include "tests/watch/trace/trace_world.h"
#include "tools/lab/synth/zeroed_source.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Strings = std::vector<std::string>;

const fs::path kTree = TIERD_SOURCE_DIR;
const std::string kNul(1, '\0');  // separates the files of one input

class Seeds {
 public:
  explicit Seeds(fs::path folder) : folder_(std::move(folder)) {}

  void add(const char* target, const std::string& name, std::string_view bytes) const {
    fs::create_directories(folder_ / target);
    std::ofstream out(folder_ / target / name, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    TIERD_CHECK_MSG(out.good(), name);
  }

 private:
  fs::path folder_;
};

std::vector<fs::path> files_of(const fs::path& folder, std::string_view ending) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(kTree / folder)) {
    if (entry.path().filename().string().ends_with(ending)) files.push_back(entry.path());
  }
  TIERD_CHECK_MSG(!files.empty(), folder.string());
  return files;
}

std::string name_of(const fs::path& file) {
  return file.parent_path().filename().string() + "-" + file.filename().string();
}

// Returns one layer, one head, four tokens; matrices [width][width] of zeros in GGUF's encoding `type`.
GgufBuilder tiny_gguf(const std::string& architecture, uint64_t width, uint32_t type, Encoding encoding) {
  GgufBuilder b;
  b.set_text("general.architecture", architecture);
  b.set_u32(architecture + ".block_count", 1);
  b.set_u32(architecture + ".context_length", 4);
  b.set_u32(architecture + ".attention.head_count", 1);
  for (const char* key : {".embedding_length", ".feed_forward_length"}) {
    b.set_u32(architecture + key, static_cast<uint32_t>(width));
  }
  b.set_f32(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
  const auto matrix = [&](const std::string& name, uint64_t rows) {
    b.tensors.push_back(
        {name, {width, rows}, type, std::string(encoded_bytes(encoding, rows * width), '\0'), {}});
  };
  matrix("token_embd.weight", 4);
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
    matrix("blk.0." + std::string(name) + ".weight", width);
  }
  for (const char* name : {"blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", "output_norm.weight"}) {
    b.add_f32(name, {width}, 1);
  }
  return b;
}

void gguf_seeds(const Seeds& seeds) {
  GgufBuilder llama = tiny_gguf("llama", 2, 0, Encoding::f32);
  llama.set_text("tokenizer.ggml.model", "llama");
  llama.set_texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a"});
  llama.set_numbers<float>("tokenizer.ggml.scores", GgufType::f32, {0, 0, 0, -1});
  llama.set_numbers<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {2, 3, 3, 1});
  llama.set_u32("tokenizer.ggml.eot_token_id", 2);
  llama.set_bool("tokenizer.ggml.add_space_prefix", false);
  llama.set_text("llama.rope.scaling.type", "linear");
  llama.set_f32("llama.rope.scaling.factor", 2);
  llama.add_f32("rope_freqs.weight", {1}, 1);
  llama.add_f32("output.weight", {2, 4}, 1);
  seeds.add("gguf", "llama", llama.bytes());

  GgufBuilder qwen2 = tiny_gguf("qwen2", 32, 2, Encoding::q4_0);
  qwen2.set_u32("general.alignment", 64);
  qwen2.alignment = 64;
  for (const char* name : {"q", "k", "v"})
    qwen2.add_f32("blk.0.attn_" + std::string(name) + ".bias", {32}, 0);
  qwen2.set_text("tokenizer.ggml.model", "gpt2");
  qwen2.set_text("tokenizer.ggml.pre", "qwen2");
  qwen2.set_texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<|im_end|>"});
  qwen2.set_texts("tokenizer.ggml.merges", {"a b"});
  qwen2.set_numbers<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {1, 1, 1, 3});
  seeds.add("gguf", "qwen2-q4_0", qwen2.bytes());

  // A model of super-blocks alone would take a quarter of a megabyte, so here only unused tensors have them.
  GgufBuilder blocks = tiny_gguf("llama", 2, 0, Encoding::f32);
  for (const auto& [type, e] : {std::pair(3u, Encoding::q4_1),
                                {6u, Encoding::q5_0},
                                {7u, Encoding::q5_1},
                                {10u, Encoding::q2_k},
                                {11u, Encoding::q3_k},
                                {12u, Encoding::q4_k},
                                {13u, Encoding::q5_k},
                                {14u, Encoding::q6_k},
                                {20u, Encoding::iq4_nl},
                                {23u, Encoding::iq4_xs},
                                {39u, Encoding::mxfp4}})
    blocks.tensors.push_back(
        {std::string(name(e)), {block_values(e), 1}, type, std::string(block_bytes(e), '\0'), {}});
  seeds.add("gguf", "block-encodings", blocks.bytes());

  GgufBuilder bare = tiny_gguf("llama", 2, 30, Encoding::bf16);
  bare.version = 2;
  bare.set("odd", GgufType::f64, bytes_of(0.5));
  bare.set("odder", GgufType::i8, bytes_of<int8_t>(-1));
  seeds.add("gguf", "version-2-bf16", bare.bytes());
}

json hf_config(const char* type, const char* ff_key) {
  return {{"model_type", type},
          {"hidden_size", 2},
          {ff_key, 2},
          {"num_hidden_layers", 1},
          {"num_attention_heads", 1},
          {"vocab_size", 2},
          {"tie_word_embeddings", true},
          {"max_position_embeddings", 2}};
}

void add_all(SafetensorsBuilder& weights, const Strings& names, const std::vector<uint64_t>& shape) {
  for (const std::string& name : names) weights.add_f32(name, shape, 1);
}

void hf_folder_seeds(const Seeds& seeds) {
  SafetensorsBuilder llama;
  const std::string layer = "model.layers.0.";
  add_all(llama,
          {"model.embed_tokens.weight", layer + "self_attn.q_proj.weight", layer + "self_attn.k_proj.weight",
           layer + "self_attn.v_proj.weight", layer + "self_attn.o_proj.weight",
           layer + "mlp.gate_proj.weight", layer + "mlp.up_proj.weight", layer + "mlp.down_proj.weight"},
          {2, 2});
  add_all(llama,
          {"model.norm.weight", layer + "input_layernorm.weight", layer + "post_attention_layernorm.weight"},
          {2});
  const std::string config = hf_config("llama", "intermediate_size").dump();
  seeds.add("hf_folder", "llama", config + kNul + kNul + llama.bytes());

  json map;
  for (const auto& [name, fields] : llama.header.items()) map[name] = "shard.safetensors";
  seeds.add("hf_folder", "llama-index",
            config + kNul + json{{"weight_map", map}}.dump() + kNul + llama.bytes());

  SafetensorsBuilder opt;
  const std::string decoder = "decoder.layers.0.";
  for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
    opt.add_f32(decoder + "self_attn." + name + ".weight", {2, 2}, 1);
    opt.add_f32(decoder + "self_attn." + name + ".bias", {2}, 1);
  }
  add_all(opt, {"decoder.embed_tokens.weight", decoder + "fc1.weight", decoder + "fc2.weight"}, {2, 2});
  opt.add_f32("decoder.embed_positions.weight", {4, 2}, 1);
  for (const std::string& norm : {decoder + "self_attn_layer_norm", decoder + "final_layer_norm",
                                  std::string("decoder.final_layer_norm")}) {
    add_all(opt, {norm + ".weight", norm + ".bias"}, {2});
  }
  add_all(opt, {decoder + "fc1.bias", decoder + "fc2.bias"}, {2});
  seeds.add("hf_folder", "opt", hf_config("opt", "ffn_dim").dump() + kNul + kNul + opt.bytes());

  // q, k and v in one tensor.
  SafetensorsBuilder falcon;
  const std::string h = "transformer.h.0.";
  falcon.add_f32(h + "self_attention.query_key_value.weight", {6, 2}, 1);
  add_all(falcon,
          {"transformer.word_embeddings.weight", h + "self_attention.dense.weight",
           h + "mlp.dense_h_to_4h.weight", h + "mlp.dense_4h_to_h.weight"},
          {2, 2});
  for (const std::string& norm : {h + "input_layernorm", std::string("transformer.ln_f")}) {
    add_all(falcon, {norm + ".weight", norm + ".bias"}, {2});
  }
  seeds.add("hf_folder", "falcon",
            hf_config("falcon", "ffn_hidden_size").dump() + kNul + kNul + falcon.bytes());
}

void llama2c_seeds(const Seeds& seeds) {
  // Width 2, feed-forward 1, one layer, one head, two tokens, two positions.
  const std::vector<int32_t> shape = {2, 1, 1, 1, 1, 2, 2};
  const std::string header(reinterpret_cast<const char*>(shape.data()), shape.size() * sizeof(int32_t));
  const size_t norms = 3 * 2;
  const size_t matrices = 2 * 2 + 4 * 2 * 2 + 3 * 2;  // the embedding, attention, feed-forward
  const size_t rotary = 2 * 2;
  seeds.add("llama2c", "version-0", header + std::string((norms + matrices + rotary) * sizeof(float), '\0'));
  std::string version_1 = "24ka" + bytes_of(1) + header + '\1';
  version_1.resize(256 + (norms + matrices) * sizeof(float), '\0');
  seeds.add("llama2c", "version-1", version_1);
}

void bitmap_seeds(const Seeds& seeds) {
  const std::string bits = "\x55\xaa";
  seeds.add("bitmap", "halves", std::string("\1\1") + bits + std::string(16, '\7'));
  seeds.add("bitmap", "bytes", std::string("\2\1") + bits + std::string(8, '\7'));
  seeds.add("bitmap", "words", std::string("\4\1") + bits + std::string(32, '\7'));
  seeds.add("bitmap", "one too few", std::string("\1\1") + bits + std::string(15, '\7'));
}

std::shared_ptr<const NeuronCodec> zstd() {
  auto codec = Codec::load(PluginPath({TIERD_PLUGIN_DIR}), "zstd", {}, "seeds");
  TIERD_CHECK_MSG(codec.ok(), codec.error().line());
  return std::move(*codec);
}

void codec_seeds(const Seeds& seeds) {
  std::vector<std::byte> dense(640), kept;
  for (size_t i = 0; i < dense.size(); i += 3) dense[i] = static_cast<std::byte>(i * i / 7);
  for (const auto& [name, n] : {std::pair("nothing", 0), std::pair("small", 64), std::pair("neuron", 640)}) {
    TIERD_CHECK(zstd()->compress(std::span(dense).first(static_cast<size_t>(n)), kept).ok());
    seeds.add("codec", name,
              std::string(1, static_cast<char>(n / 64)) +
                  std::string(reinterpret_cast<const char*>(kept.data()), kept.size()));
  }
}

void manifest_seeds(const Seeds& seeds) {
  for (ModelConfig config : {small_llama(), small_opt(), small_mixture()}) {
    config.n_layers = 1;
    config.vocab_size = 8;
    const auto add = [&](const char* name, Layout layout, Bundling bundling) {
      const WriteOptions options = {
          .neuron_bytes = 4096, .layout = layout, .bundling = bundling, .quiet = true};
      const auto plan = plan_store(MemorySource(config, Encoding::f16), options);
      TIERD_CHECK_MSG(plan.ok(), plan.error().line());
      const std::string text = manifest_text(*plan);
      seeds.add("manifest", config.architecture + name,
                std::to_string(plan->extents.size()) + text.substr(text.find('\n')));
    };
    add("", Layout::row, Bundling::row_column);
    add("-channels", Layout::channel_group, Bundling::row_column);
    const ZeroedSource pruned(std::make_unique<MemorySource>(config, Encoding::f16), 50);
    for (const auto& codec : {std::shared_ptr<const NeuronCodec>(), zstd()}) {
      auto dense = plan_store(pruned, {.neuron_bytes = 16384,
                                       .compression = codec ? Compression::codec : Compression::bitmap,
                                       .codec = codec,
                                       .quiet = true});
      const auto compressed = compressed_plan(pruned, std::move(*dense), true, codec.get());
      const std::string text = manifest_text(*compressed);
      seeds.add("manifest", config.architecture + "-" + std::string(compressed->compression_name()),
                std::to_string(compressed->extents.size()) + text.substr(text.find('\n')));
    }
    if (config.is_mixture()) continue;  // has no bundles
    add("-neuron", Layout::neuron, Bundling::row_column);
    add("-apart", Layout::neuron, Bundling::none);
  }
}

// Adds small tokenizer.json files with steps of all kinds.
void tokenizer_step_seeds(const Seeds& seeds) {
  constexpr size_t kCases = 60;
  const json golden = json::parse(file_text(kTree / "tests/golden/tokenizer/fields.json"));
  for (size_t i = 0; i < kCases; ++i) {
    const json& one = golden.at("cases").at(i);
    json root = golden.at("bases").at(one.at("base").get<std::string>());
    for (const auto& [pointer, number] : one.at("changes").items())
      root[json::json_pointer(pointer)] = golden.at("values").at(number.get<size_t>());
    seeds.add("tokenizer", "steps-" + std::to_string(i),
              " hi  e\xcc\x81 12" + kNul + kNul + kNul + root.dump());
  }
}

void tokenizer_seeds(const Seeds& seeds) {
  const std::string beside = "Hello <|x|> 12\xe2\x96\x81w\xff" + kNul +
                             R"({"bos_token": "<s>", "add_bos_token": true})" + kNul +
                             R"({"eos_token_id": [0, 1]})" + kNul;
  for (const fs::path& file : files_of("tests/golden/tokenizer", "")) {
    const bool records = file.filename() == "golden.json" || file.filename() == "fields.json" ||
                         file.filename() == "pre_tokenizers.json";
    if (records) continue;
    seeds.add("tokenizer", file.filename().string(), beside + file_text(file));
  }
  tokenizer_step_seeds(seeds);
  std::string bin = bytes_of(7);
  for (const std::string& piece : Strings{"<unk>", "<s>", "</s>", "<0x41>", " a", "a", " "}) {
    bin += bytes_of(-1.0f) + bytes_of(static_cast<int32_t>(piece.size())) + piece;
  }
  seeds.add("tokenizer", "tokenizer.bin", "a aa" + kNul + kNul + kNul + bin);
  seeds.add("gpt2_tokenizer", "ab",
            "ab ba<|endoftext|>" + kNul + R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})" + kNul +
                "#version: 0.2\na b\n");
}

void encode_seeds(const Seeds& seeds) {
  const json golden = json::parse(file_text(kTree / "tests/golden/tokenizer/golden.json"));
  char chosen = 0;
  for (const json& text : golden.at("texts")) {
    seeds.add("encode", std::to_string(chosen), chosen + text.get<std::string>());
    ++chosen;
  }
}

void text_seeds(const Seeds& seeds) {
  for (const fs::path& file : files_of("configs", ".toml")) {
    const fs::path folder = file.parent_path().filename();
    const char* target = folder == "models"     ? "shape"
                         : folder == "planted"  ? "planted_profile"
                         : folder == "hardware" ? "machine"
                         : folder == "activity" ? "activity_profile"
                                                : "config";
    seeds.add(target, name_of(file), file_text(file));
  }
  seeds.add("machine", "small",
            "[flash]\nlatency_ns = 102400\ncheck_bytes_per_second = 12000000000\n[[flash.reads]]\nread_bytes "
            "= 4096\n"
            "depth = 1\nrandom = 40000000\n[[flash.reads]]\nread_bytes = 1048576\ndepth = 64\nrandom = "
            "1900000000\n[dram]\n"
            "bytes_per_second = 35000000000\n[[compute.rates]]\nencoding = \"f32\"\nactivations = \"f32\"\n"
            "gemv_bytes_per_second = 40000000000\ngemm_multiply_adds_per_second = 100000000000\n");
  for (const fs::path& file : files_of("tests/golden/templates", ".jinja"))
    seeds.add("chat_template", name_of(file), file_text(file));
  seeds.add("config", "set", "[run]\nthreads = 2\nbind = false" + kNul + "tiers.dram.capacity=50%");
  seeds.add("config", "set-quoted", "[scheduler]\nshuffle = 7" + kNul + R"(model.path="a\"b")");
  for (const char* folder : {"tests/golden/models", "configs/models/demo"}) {
    for (const fs::path& file : files_of(folder, "config.json")) {
      seeds.add("hf_config", name_of(file), file_text(file));
    }
  }
}

void trace_seeds(const Seeds& seeds) {
  const std::string header = header_json(small_header()) + kNul;
  Random random(7);
  for (int i = 0; i < 40; ++i) {
    EventEncoder block;
    uint64_t ns = 0;
    for (int event = 0; event < 1 + i / 4; ++event) block.add(draw_event(random, ns));
    const auto* bytes = reinterpret_cast<const char*>(block.bytes().data());
    seeds.add("trace", std::to_string(i), header + std::string(bytes, block.bytes().size()));
  }
  for (const std::string& recorded : recorded_traces()) {
    seeds.add("trace_views", std::to_string(recorded.size()), input_of_trace(recorded));
  }
}

void routing_seeds(const Seeds& seeds) {
  seeds.add(
      "routing", "csv",
      "# n_expert=4\n# expert_bytes=100,100\nturn,step,phase,layer,expert\n0,0,0,0,1\n0,0,0,1,2\n0,1,1,0,3\n"
      "0,1,1,1,0\n");
  seeds.add("routing", "lines",
            "{\"tok\": 1, \"layers\": [[1, 2], [0, 3]]}\n{\"tok\": 2, \"layers\": [[0, 1], [2, 3]]}\n");
}

void plugin_tensor_seeds(const Seeds& seeds) {
  SafetensorsBuilder tensors;
  tensors.add_f32("layers.0.a", {2, 3}, 1);
  tensors.add_f32("layers.0.b", {4}, 1);
  seeds.add("plugin_tensors", "f32", tensors.bytes());
}

void measured_loss_seeds(const Seeds& seeds) {
  const TempFolder folder;
  const MeasuredLoss loss = {.divergence = 0.3,
                             .reference_perplexity = 13,
                             .perplexity = 17,
                             .tokens = 510,
                             .text = "wiki.txt",
                             .text_checksum = "0123456789abcdef",
                             .used_neurons = 0.7,
                             .used_bytes = 0.9,
                             .date = "2026-11-30"};
  const auto path = keep_loss(folder.path(), {"a", {{"dram", 0.5}}}, loss);
  TIERD_CHECK(path.ok());
  seeds.add("measured_loss", "verdict", file_text(*path));
}

void progress_seeds(const Seeds& seeds) {
  const TempFolder folder;
  const std::string path = folder.path() + "/progress";
  Disk disk;
  auto progress = ProgressFile::open(disk, path, 7);
  TIERD_CHECK(progress.ok() && progress->append(disk, std::vector<uint64_t>{1, 2, 3}).ok());
  seeds.add("progress", "three", file_text(path));
}

void gguf_shard_seeds(const Seeds& seeds) {
  GgufBuilder first = tiny_gguf("llama", 2, 0, Encoding::f32);
  GgufBuilder second;
  second.tensors = {first.tensors.back()};
  first.tensors.pop_back();
  const auto number = [](GgufBuilder& shard, uint16_t no) {
    shard.set("split.no", GgufType::u16, bytes_of(no));
    shard.set("split.count", GgufType::u16, bytes_of<uint16_t>(2));
    shard.set("split.tensors.count", GgufType::i32, bytes_of(11));
  };
  number(first, 0);
  number(second, 1);
  const std::string bytes = first.bytes();
  seeds.add("gguf_shards", "two", bytes_of(static_cast<uint32_t>(bytes.size())) + bytes + second.bytes());
}

// The first byte of a request chooses between a prompt and a family of chats.
void request_seeds(const Seeds& seeds) {
  const std::string completion =
      R"({"prompt":["a",[5,6]],"max_tokens":5,"temperature":0.5,"top_k":3,"top_p":0.5,"min_p":0.1,"n":2,)"
      R"("stop":["x"],"stream":true,"stream_options":{"include_usage":true},"logprobs":2,"echo":true,"seed":1,)"
      R"("logit_bias":{"5":1},"repeat_penalty":1.1,"presence_penalty":0.5,"frequency_penalty":0.5})";
  const std::string chat =
      R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"u"}]},)"
      R"({"role":"assistant","content":"a"},{"role":"user","content":"v"}],"logprobs":true,"top_logprobs":2,)"
      R"("max_completion_tokens":3,"logit_bias":[[5,false]]})";
  seeds.add("request", "completion", kNul + completion);
  for (char family = 1; family <= 14; ++family)
    seeds.add("request", "chat-" + std::to_string(family), std::string(1, family) + chat);
  seeds.add("http", "get", "GET /a?b=c HTTP/1.1\r\nHost: x\r\nX-Request-Id: 1\r\n\r\n");
  seeds.add(
      "http", "post",
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nContent-Length: 5\r\n\r\nhello"
      "GET /b HTTP/1.1\r\n\r\n");
  seeds.add("http", "chunks",
            "POST /stream HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n");
  seeds.add("http", "old", "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  seeds.add("http", "expect", "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx");
  seeds.add("http", "head", "HEAD /a HTTP/1.1\r\nConnection: close\r\n\r\n");
}

void hub_listing_seeds(const Seeds& seeds) {
  const auto listing = [](const std::vector<std::string>& names) {
    json siblings = json::array();
    for (const std::string& name : names) {
      siblings.push_back({{"rfilename", name}, {"size", 1000}, {"blobId", std::string(40, 'b')}});
      if (siblings.size() % 2 == 1) siblings.back()["lfs"] = {{"sha256", std::string(64, 'c')}, {"size", 5}};
    }
    return json{{"sha", std::string(40, 'a')}, {"siblings", siblings}}.dump();
  };
  seeds.add("hub_listing", "quants",
            "Q8_0" + kNul + listing({"m-Q4_K_M.gguf", "m-Q8_0.gguf", "mmproj-f16.gguf"}));
  seeds.add("hub_listing", "shards", kNul + listing({"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}));
  seeds.add(
      "hub_listing", "folder",
      kNul + listing({"config.json", "model-00001-of-00001.safetensors", "model.safetensors.index.json"}));
}

int run(const char* folder) {
  const Seeds seeds(folder);
  gguf_seeds(seeds);
  hf_folder_seeds(seeds);
  llama2c_seeds(seeds);
  bitmap_seeds(seeds);
  codec_seeds(seeds);
  manifest_seeds(seeds);
  tokenizer_seeds(seeds);
  encode_seeds(seeds);
  text_seeds(seeds);
  trace_seeds(seeds);
  routing_seeds(seeds);
  plugin_tensor_seeds(seeds);
  measured_loss_seeds(seeds);
  progress_seeds(seeds);
  gguf_shard_seeds(seeds);
  request_seeds(seeds);
  hub_listing_seeds(seeds);
  return 0;
}

}  // namespace
}  // namespace tierd

int main(int count, char** arguments) {
  if (count == 2) return tierd::run(arguments[1]);
  std::fputs("usage: fuzz_seeds FOLDER\n", stderr);
  return 2;
}
