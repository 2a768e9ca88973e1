// Runs a fuzz target without a fuzzer: on every file of a corpus, then on mutations of them that a
// seed decides, so that each run is the same and any compiler will do.
//
// usage: TARGET CORPUS_FOLDER MUTATIONS
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::vector<std::string> ReadCorpus(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& corpus) : corpus_(corpus) {}

  std::string Next() {
    std::string text = Pick(corpus_);
    for (size_t edits = 1 + Below(4); edits > 0; --edits) Edit(text);
    return text;
  }

 private:
  size_t Below(size_t limit) { return random_() % limit; }
  const std::string& Pick(const std::vector<std::string>& list) { return list[Below(list.size())]; }

  void Edit(std::string& text) {
    static const std::vector<std::string> kTokens = {
        "0",          "-1",       "1e999",       "18446744073709551615",
        "4294967296", "null",     "[",           "]",
        "{",          "}",        ",",           ":",
        "\"",         "\\u0000",  "\\ud800",     "\xff",
        "\"F32\"",    "\"BOOL\"", "\"shape\":[]"};
    const size_t at = Below(text.size() + 1), length = Below(9);
    switch (Below(6)) {
      case 0:
        if (at < text.size()) text[at] ^= static_cast<char>(1 << Below(8));
        break;
      case 1:
        text.insert(at, Pick(kTokens));
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(Below(text.size() + 1), length * 4));
        break;
      case 4: {
        const std::string& other = Pick(corpus_);
        text = text.substr(0, at) + other.substr(Below(other.size() + 1));
        break;
      }
      default:
        // A number in the text, made another one.
        for (size_t i = at; i < text.size(); ++i) {
          if (text[i] < '0' || text[i] > '9') continue;
          text[i] = static_cast<char>('0' + Below(10));
          break;
        }
    }
  }

  const std::vector<std::string>& corpus_;
  std::mt19937 random_{20240229};
};

void Run(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER MUTATIONS\n", argv[0]);
    return 2;
  }
  const std::vector<std::string> corpus = ReadCorpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s holds no file\n", argv[1]);
    return 2;
  }
  for (const std::string& text : corpus) Run(text);
  Mutator mutator(corpus);
  const int mutations = std::atoi(argv[2]);
  for (int i = 0; i < mutations; ++i) Run(mutator.Next());
  std::printf("%zu files and %d mutations\n", corpus.size(), mutations);
}
