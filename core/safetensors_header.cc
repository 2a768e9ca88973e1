#include "core/safetensors_header.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "core/quote.h"
#include "core/strict_json.h"

namespace attend {
namespace {

constexpr int kMaxHeaderDepth = 127;  // the reference reader's
constexpr char kMetadata[] = "__metadata__";

// Takes the parser's events: a header may have a hundred million bytes, far more as a tree.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  const std::string& problem() const { return problem_; }
  TensorMap TakeTensors() { return std::move(tensors_); }

  bool null() override {
    if (where_ == Where::kRoot && name_ == kMetadata) return true;
    return Scalar("null");
  }
  bool boolean(bool) override { return Scalar("a boolean"); }
  // The parser calls this for what begins with a minus sign, and number_unsigned for the rest.
  bool number_integer(number_integer_t) override { return Scalar("a negative number"); }
  bool number_float(number_float_t, const string_t& text) override { return Scalar(text); }
  bool binary(binary_t&) override { return Scalar("binary"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (where_ == Where::kShape) {
      entry_.shape.push_back(value);
      return true;
    }
    if (where_ == Where::kOffsets) {
      (offsets_ == 0 ? entry_.begin : entry_.end) = value;
      return ++offsets_ <= 2 || Fail("data_offsets must be two numbers");
    }
    return Scalar("a number");
  }

  bool string(string_t& value) override {
    if (where_ == Where::kMetadata) return true;
    if (where_ == Where::kTensor && key_ == "dtype") {
      entry_.dtype = value;
      return true;
    }
    return Scalar("a string");
  }

  bool key(string_t& value) override {
    if (where_ == Where::kRoot) {
      name_ = value;
      if (name_ != kMetadata) return true;
      return !std::exchange(has_metadata_, true) || Fail("comes twice");
    }
    if (where_ != Where::kTensor) return true;
    key_ = value;
    bool* const given = Given(key_);
    return given == nullptr || !std::exchange(*given, true) || Fail(key_ + " comes twice");
  }

  bool start_object(std::size_t) override {
    if (where_ == Where::kStart) return Enter(Where::kRoot);
    if (where_ == Where::kRoot && name_ == kMetadata) return Enter(Where::kMetadata);
    if (where_ == Where::kRoot) {
      entry_ = {};
      offsets_ = 0;
      has_dtype_ = has_shape_ = has_offsets_ = false;
      return Enter(Where::kTensor);
    }
    return EnterIgnored("an object");
  }

  bool start_array(std::size_t) override {
    if (where_ == Where::kTensor && key_ == "shape") return Enter(Where::kShape);
    if (where_ == Where::kTensor && key_ == "data_offsets") return Enter(Where::kOffsets);
    return EnterIgnored("an array");
  }

  bool end_object() override {
    if (where_ == Where::kTensor) {
      for (const char* field : {"dtype", "shape", "data_offsets"}) {
        if (!*Given(field)) return Fail(absl::StrCat(field, " is missing"));
      }
      tensors_[name_] = std::move(entry_);
    }
    return Leave();
  }

  bool end_array() override {
    if (where_ == Where::kOffsets && offsets_ != 2) return Fail("data_offsets must be two numbers");
    return Leave();
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    problem_ = absl::StrCat("the header is no JSON at its byte ", position, ": ", ReasonOf(error));
    return false;
  }

 private:
  enum class Where { kStart, kRoot, kMetadata, kTensor, kShape, kOffsets, kIgnored };

  bool Fail(absl::string_view problem) {
    problem_ = where_ == Where::kStart
                   ? absl::StrCat("the header is ", problem, ", expected a JSON object")
                   : absl::StrCat("tensor ", Quoted(name_), ": ", problem);
    return false;
  }

  bool* Given(absl::string_view field) {
    if (field == "dtype") return &has_dtype_;
    if (field == "shape") return &has_shape_;
    if (field == "data_offsets") return &has_offsets_;
    return nullptr;
  }

  // A value that is none of those which the format expects where we are.
  bool Scalar(absl::string_view what) { return Ignored() || Unexpected(what); }

  bool Ignored() {
    return where_ == Where::kIgnored || (where_ == Where::kTensor && Given(key_) == nullptr);
  }

  bool Unexpected(absl::string_view what) {
    switch (where_) {
      case Where::kMetadata:
        return Fail(absl::StrCat("holds ", what, ", expected strings alone"));
      case Where::kShape:
        return Fail(absl::StrCat("shape holds ", what, ", expected numbers from 0 to 2^64-1"));
      case Where::kOffsets:
        return Fail(
            absl::StrCat("data_offsets hold ", what, ", expected numbers from 0 to 2^64-1"));
      case Where::kTensor:
        return Fail(absl::StrCat(key_, " is ", what));
      case Where::kRoot:
        return Fail(absl::StrCat("is ", what, ", expected an object"));
      default:
        return Fail(what);
    }
  }

  bool EnterIgnored(absl::string_view what) {
    if (!Ignored()) return Unexpected(what);
    return Enter(Where::kIgnored);
  }

  bool Enter(Where where) {
    if (path_.size() == kMaxHeaderDepth)
      return Fail(absl::StrCat("is nested deeper than ", kMaxHeaderDepth));
    path_.push_back(std::exchange(where_, where));
    return true;
  }

  bool Leave() {
    where_ = path_.back();
    path_.pop_back();
    return true;
  }

  Where where_ = Where::kStart;
  std::vector<Where> path_;
  std::string name_, key_;
  TensorInfo entry_;
  int offsets_ = 0;
  bool has_metadata_ = false, has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  TensorMap tensors_;
  std::string problem_;
};

}  // namespace

absl::StatusOr<TensorMap> ParseHeaderEntries(absl::string_view header) {
  // The parser would pass over a byte order mark, and take NUL for the end.
  const auto nul = header.find('\0');
  if (nul != absl::string_view::npos || header.substr(0, 3) == "\xEF\xBB\xBF") {
    return absl::InvalidArgumentError(absl::StrCat("the header is no JSON at its byte ",
                                                   nul == absl::string_view::npos ? 0 : nul,
                                                   ": a NUL or a byte order mark"));
  }
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(header.begin(), header.end(), &reader)) {
    return absl::InvalidArgumentError(reader.problem());
  }
  return reader.TakeTensors();
}

}  // namespace attend
