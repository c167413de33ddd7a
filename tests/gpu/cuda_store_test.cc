// Stores on the backend `cuda`: compressed neurons, several encodings, and direct reads. Streamed bits equal
// resident ones.
#include "core/run/store_codec.h"
#include "core/run/strategy_choices.h"
#include "core/store/writer.h"
#include "tests/base/temp_folder.h"
#include "tests/e2e/mixed_store.h"
#include "tests/gpu/cuda_golden.h"
#include "tools/lab/synth/zeroed_source.h"

namespace tierd {
namespace {

class CudaStore : public CudaGolden {};

// A pruned model gives the same bits dense and as bitmaps, resident and streamed, token by token and in
// chunks.
TEST_F(CudaStore, APrunedModelGivesTheSameBitsCompressedAndExpanded) {
  struct Case {
    const char* model;
    Layout layout;
  };
  for (const Case& tried : {Case{"llama2", Layout::neuron}, Case{"llama2-bf16", Layout::row},
                            Case{"llama-odd-sizes", Layout::row}, Case{"opt-f16", Layout::row},
                            Case{"gguf-llama-q8_0", Layout::row}, Case{"qwen3-moe", Layout::row}}) {
    SCOPED_TRACE(tried.model);
    Golden golden = read_golden(tried.model);
    golden.tokens.resize(kChunk + 1);
    const TempFolder folder;
    auto opened = open_source(golden_path(tried.model));
    ASSERT_TRUE(opened.ok()) << opened.error().line();
    const ZeroedSource source(std::move(*opened), 50);
    Config dense = golden_config(tried.model), bitmap = dense;
    dense.model = folder.path() + "/dense";
    bitmap.model = folder.path() + "/bitmap";
    for (const Compression compression : {Compression::none, Compression::bitmap}) {
      const Status written = write_store(
          source, compression == Compression::none ? dense.model : bitmap.model,
          {.neuron_bytes = 16384, .layout = tried.layout, .compression = compression, .quiet = true});
      ASSERT_TRUE(written.ok()) << written.error().line();
    }
    const auto made = read_manifest(bitmap.model);
    ASSERT_TRUE(made.ok()) << made.error().line();
    EXPECT_GE(std::ranges::count(made->sites, Compression::bitmap, &StoredSite::compression),
              made->config.n_layers);
    const std::vector<float> expected = logits_of(above(dense, "100%", 0), golden, kChunk);
    expect_the_same_bits(logits_of(above(bitmap, "100%", 0), golden, kChunk), expected);
    expect_the_same_bits(logits_of(above(bitmap, "60%", 3), golden, 1), expected);
#if !defined(TIERD_ON_GPU)  // that machine may lack libzstd
    Config zstd = golden_config(tried.model);
    zstd.model = folder.path() + "/zstd";
    WriteOptions by_zstd{.neuron_bytes = 16384, .layout = tried.layout, .quiet = true};
    ASSERT_TRUE(choose_compression("zstd", plugin_path(zstd), {}, "test", by_zstd).ok());
    ASSERT_TRUE(write_store(source, zstd.model, by_zstd).ok());
    expect_the_same_bits(logits_of(above(zstd, "60%", 3), golden, kChunk), expected);
#endif
    for (const char* capacity : {"100%", "60%"}) {
      Config expanded = above(bitmap, capacity, 3);
      expanded.tier("gpu").compressed = "expanded";
      expect_the_same_bits(logits_of(expanded, golden, 1), expected);
    }
    if (HasFailure()) return;
  }
}

// A model stored in several encodings. The quantizer chooses each neuron's edition, so the device has slots
// of several sizes and products in several encodings in one layer; `atu` moves a neuron to another slot when
// its edition changes.
TEST_F(CudaStore, EditionsGiveTheSameBitsResidentAndStreamed) {
  struct Case {
    const char* model;
    std::vector<Encoding> editions;
    const char* ratios;
  };
  for (const Case& tried : {Case{"llama2-f16", {Encoding::q8_0, Encoding::q4_0}, "25/25/50"},
                            Case{"opt", {Encoding::f16, Encoding::q8_0, Encoding::q4_0}, "10/20/30/40"},
                            Case{"gguf-qwen2-q8_0", {Encoding::q4_0}, "50/50"}}) {
    SCOPED_TRACE(tried.model);
    std::printf("%s\n", tried.model);
    const Golden golden = read_golden(tried.model);
    const TempFolder folder;
    Config mixed =
        store_of_editions(tried.model, folder.path() + "/editions", Layout::neuron, tried.editions);
    mixed.kv = mixed.activations = "f32";
    use_random_ranks(mixed);
    mix(mixed, tried.ratios);
    if (HasFailure()) return;

    // A batch uses the union of its rows' neurons, so chunks are compared only with chunks.
    const std::vector<float> expected = logits_of(mixed, golden, 1);
    const std::vector<float> resident = logits_of(above(mixed, "100%", 0), golden, 1);
    const std::vector<float> batches = logits_of(above(mixed, "100%", 0), golden, kChunk);
    if (HasFailure()) return;
    expect_the_same_answers(resident, expected, golden.logits.size() / golden.tokens.size());
    for (const auto& [cache, moves] :
         {std::pair("atu", Moves::registered), std::pair("lru", Moves::gathered)}) {
      SCOPED_TRACE(cache);
      Config streamed = above(mixed, "50%", 3, moves);
      streamed.cache = {cache};
      streamed.tier("dram").cache.name = "layers";
      expect_the_same_bits(logits_of(streamed, golden, 1), resident);
      expect_the_same_bits(logits_of(streamed, golden, kChunk), batches);
    }
    // The host makes the other editions from a store with only the best one. Columns of block encodings are
    // encoded anew when stored, so they are not the model's own.
    if (std::string_view(tried.model) == "gguf-qwen2-q8_0") continue;
    const Config one = store_of_editions(tried.model, folder.path() + "/one", Layout::neuron, {});
    Config made = above(mixed, "50%", 3);
    made.model = one.model;
    made.cache = {"atu"};
    made.tier("gpu").recode = listed(tried.editions);
    expect_the_same_bits(logits_of(made, golden, 1), resident);
    if (HasFailure()) return;
  }
}

// Direct reads from the store into the device: staged, by cuFile, and by one that sometimes fails.
TEST_F(CudaStore, ReadsDirectlyGiveTheSameBits) {
  for (const std::string model : {"gguf-llama-q4_0", "llama2", "opt-f16"}) {
    SCOPED_TRACE(model);
    const Golden golden = read_golden(model);
    Config base = golden_config(model);
    base.kv = base.activations = "f32";
    const std::vector<float> expected = logits_of(above(base, "100%", 0), golden, kChunk);
#if defined(TIERD_ON_GPU)
    const std::vector<std::string> libraries = {""};
#else
    const std::string folder = TIERD_FAKE_CUFILE_DIR;
    const std::vector<std::string> libraries = {"/nowhere/libcufile.so.0", folder + "/sound.so",
                                                folder + "/fails.so"};
#endif
    for (const std::string& library : libraries) {
      SCOPED_TRACE(library);
      Config direct = above(base, "30%", 7);
      direct.tier("dram").capacity = "30%";
      direct.tier("gpu").settings.push_back({"direct", true, "test"});
      if (!library.empty()) direct.tier("gpu").settings.push_back({"cufile", library, "test"});
      expect_the_same_bits(logits_of(direct, golden, kChunk), expected);
      direct.cache = {"layer-map"};
      direct.tier("gpu").thread = "own";
      expect_the_same_bits(logits_of(direct, golden, 1), expected);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tierd
