// Reads sentencepiece's model files. The library reads and checks them; facts that its interface lacks (the
// kind of model, the normalization, which pieces are user-defined) are read from the serialized protocol
// buffer.
#include <sentencepiece_processor.h>

#include <exception>

#include "core/base/file.h"
#include "core/base/utf8.h"
#include "core/formats/tokenizer/protobuf.h"
#include "core/formats/tokenizer/special_tokens.h"
#include "core/formats/tokenizer/tokenizer_files.h"

namespace tierd {
namespace {

// Field numbers and values of sentencepiece_model.proto.
enum ModelField : uint32_t { kPieces = 1, kTrainer = 2, kNormalizer = 3 };
enum PieceField : uint32_t { kPieceType = 3 };
constexpr uint64_t kUserDefined = 4;
enum TrainerField : uint32_t { kModelType = 3, kSpaceAsSuffix = 24 };
constexpr uint64_t kBpe = 2;
enum NormalizerField : uint32_t {
  kCharacterMap = 2,
  kAddDummyPrefix = 3,
  kRemoveExtraSpaces = 4,
  kEscapeSpaces = 5
};

// The facts, with protobuf's defaults for absent fields.
struct ModelFacts {
  uint64_t model_type = 1;  // unigram
  bool space_as_suffix = false;
  bool has_character_map = false;
  bool add_dummy_prefix = true;
  bool remove_extra_spaces = true;
  bool escape_spaces = true;
  std::vector<uint64_t> piece_types;
};

bool read_facts(std::string_view model, ModelFacts& facts) {
  ProtobufReader reader(model);
  while (const auto field = reader.next()) {
    if (field->number != kPieces && field->number != kTrainer && field->number != kNormalizer) continue;
    ProtobufReader inner(field->bytes);
    if (field->number == kPieces) facts.piece_types.push_back(1);
    while (const auto sub = inner.next()) {
      if (field->number == kPieces && sub->number == kPieceType) facts.piece_types.back() = sub->value;
      if (field->number == kTrainer && sub->number == kModelType) facts.model_type = sub->value;
      if (field->number == kTrainer && sub->number == kSpaceAsSuffix) facts.space_as_suffix = sub->value != 0;
      if (field->number == kNormalizer && sub->number == kCharacterMap)
        facts.has_character_map = !sub->bytes.empty();
      if (field->number == kNormalizer && sub->number == kAddDummyPrefix)
        facts.add_dummy_prefix = sub->value != 0;
      if (field->number == kNormalizer && sub->number == kRemoveExtraSpaces) {
        facts.remove_extra_spaces = sub->value != 0;
      }
      if (field->number == kNormalizer && sub->number == kEscapeSpaces) facts.escape_spaces = sub->value != 0;
    }
    if (!inner.whole()) return false;
  }
  return reader.whole();
}

Status check_facts(const ModelFacts& facts, const std::string& path) {
  const auto unsupported = [&](const char* what) { return Error{Code::unsupported, path, what}; };
  if (facts.model_type != kBpe) {
    return unsupported("not a BPE model; unigram, word and character models are not known here");
  }
  if (facts.has_character_map)
    return unsupported("normalizes text by a character map; only \"identity\" is known here");
  if (facts.remove_extra_spaces)
    return unsupported("removes extra white space from text, which is not known here");
  if (!facts.escape_spaces) return unsupported("does not write spaces as \"▁\"");
  if (facts.space_as_suffix) return unsupported("puts the space mark behind words");
  return {};
}

uint32_t token_or_none(int id) {
  return id < 0 ? kNoToken : static_cast<uint32_t>(id);
}

}  // namespace

Result<Vocab> read_tokenizer_model(const std::string& path) {
  TIERD_ASSIGN(const std::string file, read_whole_file(path, kMaxTokenizerFileBytes));
  const Error broken{Code::corrupt, path, "not a whole sentencepiece model"};
  // Checked first, so that the library parses only data with the shape of a model.
  ModelFacts facts;
  if (!read_facts(file, facts) || facts.piece_types.empty()) return broken;
  TIERD_TRY(check_facts(facts, path));

  Vocab vocab;
  vocab.kind = VocabKind::sentencepiece_bpe;
  try {
    sentencepiece::SentencePieceProcessor model;
    const auto status = model.LoadFromSerializedProto(file);
    if (!status.ok()) return Error{Code::corrupt, path, shown(status.ToString())};
    const int count = model.GetPieceSize();
    if (count < 0 || static_cast<size_t>(count) != facts.piece_types.size()) return broken;
    for (int id = 0; id < count; ++id) {
      vocab.pieces.push_back(model.IdToPiece(id));
      vocab.scores.push_back(model.GetScore(id));
      vocab.types.push_back(model.IsUnknown(id)   ? TokenType::unknown
                            : model.IsControl(id) ? TokenType::control
                            : model.IsByte(id)    ? TokenType::byte
                            : model.IsUnused(id)  ? TokenType::unused
                            : facts.piece_types[static_cast<size_t>(id)] == kUserDefined
                                ? TokenType::user_defined
                                : TokenType::normal);
    }
    vocab.bos = token_or_none(model.bos_id());
    vocab.eos = token_or_none(model.eos_id());
    vocab.unknown = token_or_none(model.unk_id());
  } catch (const std::exception& e) {
    return Error{Code::corrupt, path, shown(e.what())};
  }
  vocab.add_space_prefix = facts.add_dummy_prefix;
  TIERD_TRY(apply_special_token_files(path, vocab));
  return vocab;
}

}  // namespace tierd
