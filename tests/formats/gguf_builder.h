// Builds GGUF files, valid ones and, field by field, invalid ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/gguf_header.h"

namespace tierd {

template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

inline std::string gguf_text(std::string_view text) {
  return bytes_of<uint64_t>(text.size()) + std::string(text);
}

struct GgufBuilder {
  struct Entry {
    std::string key;
    uint32_t type;
    std::string bytes;
  };
  struct Tensor {
    std::string name;
    std::vector<uint64_t> extents;  // columns first
    uint32_t type = 0;
    std::string data;
    std::optional<uint64_t> offset;  // in the data; empty: after the tensors before
  };

  std::string magic = "GGUF";
  uint32_t version = 3;
  std::optional<uint64_t> n_tensors;  // empty: the number of `tensors`
  std::optional<uint64_t> n_entries;
  uint64_t alignment = 32;
  std::vector<Entry> entries;
  std::vector<Tensor> tensors;

  void set(const std::string& key, GgufType type, std::string bytes) {
    std::erase_if(entries, [&](const Entry& e) { return e.key == key; });
    entries.push_back({key, static_cast<uint32_t>(type), std::move(bytes)});
  }
  void set_u32(const std::string& key, uint32_t value) { set(key, GgufType::u32, bytes_of(value)); }
  void set_f32(const std::string& key, float value) { set(key, GgufType::f32, bytes_of(value)); }
  void set_bool(const std::string& key, bool value) { set(key, GgufType::boolean, bytes_of(value)); }
  void set_text(const std::string& key, std::string_view value) {
    set(key, GgufType::string, gguf_text(value));
  }
  void set_texts(const std::string& key, const std::vector<std::string>& values) {
    std::string bytes = bytes_of(static_cast<uint32_t>(GgufType::string)) + bytes_of<uint64_t>(values.size());
    for (const std::string& value : values) bytes += gguf_text(value);
    set(key, GgufType::array, bytes);
  }
  template <class T>
  void set_numbers(const std::string& key, GgufType type, const std::vector<T>& values) {
    std::string bytes = bytes_of(static_cast<uint32_t>(type)) + bytes_of<uint64_t>(values.size());
    for (const T value : values) bytes += bytes_of(value);
    set(key, GgufType::array, bytes);
  }
  void drop(const std::string& key) {
    std::erase_if(entries, [&](const Entry& e) { return e.key == key; });
  }

  Tensor& tensor(std::string_view name) {
    for (Tensor& t : tensors) {
      if (t.name == name) return t;
    }
    return tensors.emplace_back(Tensor{std::string(name), {}, 0, {}, {}});
  }
  void add_f32(const std::string& name, std::vector<uint64_t> extents, float value) {
    uint64_t count = 1;
    for (const uint64_t extent : extents) count *= extent;
    std::string data;
    for (uint64_t i = 0; i < count; ++i) data += bytes_of(value);
    Tensor& t = tensor(name);
    t.extents = std::move(extents);
    t.data = std::move(data);
  }

  std::string bytes() const {
    std::string out = magic + bytes_of(version) + bytes_of<uint64_t>(n_tensors.value_or(tensors.size())) +
                      bytes_of<uint64_t>(n_entries.value_or(entries.size()));
    for (const Entry& e : entries) out += gguf_text(e.key) + bytes_of(e.type) + e.bytes;
    std::string data;
    for (const Tensor& t : tensors) {
      out += gguf_text(t.name) + bytes_of(static_cast<uint32_t>(t.extents.size()));
      for (const uint64_t extent : t.extents) out += bytes_of(extent);
      out += bytes_of(t.type) + bytes_of<uint64_t>(t.offset.value_or(data.size()));
      data += t.data;
      pad(data);
    }
    if (!tensors.empty()) pad(out);
    return out + data;
  }

 private:
  void pad(std::string& text) const {
    text.resize((text.size() + alignment - 1) / alignment * alignment, '\0');
  }
};

// Returns one layer of width 32, 2 heads, feed-forward 64, 8 tokens, no tokenizer.
inline GgufBuilder tiny_gguf_llama() {
  GgufBuilder b;
  b.set_text("general.architecture", "llama");
  b.set_text("general.name", "tiny");
  b.set_u32("llama.block_count", 1);
  b.set_u32("llama.context_length", 16);
  b.set_u32("llama.embedding_length", 32);
  b.set_u32("llama.feed_forward_length", 64);
  b.set_u32("llama.attention.head_count", 2);
  b.set_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  b.add_f32("token_embd.weight", {32, 8}, 0.5f);
  b.add_f32("blk.0.attn_norm.weight", {32}, 1.0f);
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
    b.add_f32("blk.0." + std::string(name) + ".weight", {32, 32}, 0.01f);
  }
  b.add_f32("blk.0.ffn_norm.weight", {32}, 1.0f);
  b.add_f32("blk.0.ffn_gate.weight", {32, 64}, 0.01f);
  b.add_f32("blk.0.ffn_up.weight", {32, 64}, 0.01f);
  b.add_f32("blk.0.ffn_down.weight", {64, 32}, 0.01f);
  b.add_f32("output_norm.weight", {32}, 1.0f);
  return b;
}

}  // namespace tierd
