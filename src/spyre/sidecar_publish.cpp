#include "spyre/sidecar_publish.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/files.h"
#include "base/strings.h"
#include "spyre/sidecar_merge.h"
#include "spyre/sidecar_rules.h"

namespace kerntrail::spyre {
namespace {

namespace fs = std::filesystem;

Expected<Publication> publish_locked(const std::string& path, const Sidecar& addition) {
  std::error_code ec;
  if (!fs::exists(path, ec)) {
    Sidecar first = addition;
    first.generation = 1;
    KERNTRAIL_CHECK(base::replace_file(path, print_sidecar(first)));
    return Publication::kWritten;
  }
  KERNTRAIL_TRY(const Sidecar existing, read_sidecar(path));
  KERNTRAIL_TRY(const Sidecar merged, merge_sidecars(existing, addition));
  if (merged == existing) return Publication::kUnchanged;
  KERNTRAIL_CHECK(base::replace_file(path, print_sidecar(merged)));
  return Publication::kWritten;
}

Expected<Publication> publish(const std::string& path, const Sidecar& addition) {
  if (const auto misfit = misfit_of(addition, RuleSet::kWriter))
    return fail(ErrorCode::kReference, fmt::format("sidecar.{} {}", misfit->place, misfit->problem));
  const fs::path parent = fs::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  KERNTRAIL_CHECK(base::make_directories(folder));
  KERNTRAIL_TRY(const base::DirectoryLock lock, base::DirectoryLock::acquire(folder));
  return publish_locked(path, addition);
}

}  // namespace

std::string_view publication_name(Publication result) {
  switch (result) {
    case Publication::kWritten: return "written";
    case Publication::kUnchanged: return "unchanged";
    case Publication::kDisabled: return "disabled";
  }
  return "";
}

Expected<Publication> publish_sidecar(const std::string& path, const Sidecar& addition) {
  if (path.empty()) return Publication::kDisabled;
  auto result = publish(path, addition);
  if (!result) result.error().path = base::basename(path);
  return result;
}

}  // namespace kerntrail::spyre
