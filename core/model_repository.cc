#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "core/load_model.h"
#include "core/quote.h"

namespace attend {
namespace {

namespace fs = std::filesystem;

absl::Status PathError(const fs::path& path, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(path.string(), ": ", problem));
}

bool IsPassedOver(const std::string& name) {
  // The last is what ext4 puts at the root of a volume.
  return name[0] == '.' || name[0] == '_' || name == "lost+found";
}

// Names go into flags (NAME@VERSION), metrics and logs.
bool IsModelName(const std::string& name) {
  return name.find('@') == std::string::npos && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isgraph(static_cast<unsigned char>(c));
         });
}

// 0 for what is none; "01" would be a second name of "1".
int64_t ParseVersion(const std::string& name) {
  int64_t version = 0;
  const bool is_number = absl::SimpleAtoi(name, &version) && absl::StrCat(version) == name;
  return is_number ? std::max<int64_t>(version, 0) : 0;
}

// The folders in `directory`, sorted; links are followed, but one that does not stay inside `root`
// goes to `broken`.
std::vector<fs::path> Subdirectories(const fs::path& directory, const fs::path& root,
                                     std::vector<absl::Status>* broken) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::directory_iterator it(directory, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    const fs::path path = it->path();
    if (IsPassedOver(path.filename().string())) continue;
    std::error_code unreadable;
    const fs::path target = fs::canonical(path, unreadable);
    if (unreadable) {
      broken->push_back(
          PathError(path, absl::StrCat("can't be followed: ", unreadable.message())));
      continue;
    }
    const auto [at_root, at_target] =
        std::mismatch(root.begin(), root.end(), target.begin(), target.end());
    if (at_root != root.end()) {
      broken->push_back(
          PathError(path, absl::StrCat("leads out of the repository, to ", target.string())));
    } else if (fs::is_directory(target, unreadable)) {
      found.push_back(path);
    }
  }
  if (error) {
    broken->push_back(PathError(directory, absl::StrCat("can't be listed: ", error.message())));
  }
  std::sort(found.begin(), found.end());
  return found;
}

void AppendVersions(const fs::path& model, const fs::path& root, std::vector<ModelVersion>* all,
                    std::vector<absl::Status>* broken) {
  const std::string name = model.filename().string();
  if (!IsModelName(name)) {
    broken->push_back(PathError(model.parent_path(),
                                absl::StrCat("the model name ", Quoted(name),
                                             " holds a space, '@' or something not printable")));
    return;
  }
  const size_t broken_before = broken->size();
  const size_t versions_before = all->size();
  for (const fs::path& directory : Subdirectories(model, root, broken)) {
    const int64_t version = ParseVersion(directory.filename().string());
    if (version != 0) {
      all->push_back({name, version, directory.string()});
      continue;
    }
    broken->push_back(
        PathError(directory, absl::StrCat("the version ", Quoted(directory.filename().string()),
                                          " is no positive integer without leading zeros")));
  }
  if (all->size() > versions_before || broken->size() > broken_before) return;
  std::error_code ignored;
  const bool flat = fs::exists(model / "attend.json", ignored);
  broken->push_back(PathError(
      model,
      absl::StrCat("holds no version", flat ? ": move its files into the folder 1" : " folder")));
}

}  // namespace

absl::StatusOr<std::vector<ModelVersion>> ListModelVersions(const std::string& repository,
                                                            std::vector<absl::Status>* broken) {
  std::error_code error;
  const fs::path root = fs::canonical(repository, error);
  if (error || !fs::is_directory(root, error)) {
    return absl::NotFoundError(absl::StrCat(repository, ": ",
                                            error ? error.message() : "is no folder",
                                            "; expected NAME/VERSION/ in it"));
  }
  std::vector<ModelVersion> all;
  for (const fs::path& model : Subdirectories(repository, root, broken)) {
    AppendVersions(model, root, &all, broken);
  }
  std::sort(all.begin(), all.end(), [](const ModelVersion& a, const ModelVersion& b) {
    return std::tie(a.name, a.version) < std::tie(b.name, b.version);
  });
  return all;
}

absl::StatusOr<std::vector<ModelVersion>> ListModelVersions(const std::string& repository) {
  std::vector<absl::Status> broken;
  auto versions = ListModelVersions(repository, &broken);
  if (versions.ok() && !broken.empty()) return broken.front();
  return versions;
}

}  // namespace attend
