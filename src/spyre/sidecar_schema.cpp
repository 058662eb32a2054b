// Reads a sidecar: its version, its closed schema, then its rules.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "base/files.h"
#include "base/json_place.h"
#include "base/strings.h"
#include "spyre/event_name.h"
#include "spyre/json_cursor.h"
#include "spyre/sidecar.h"
#include "spyre/sidecar_rules.h"

namespace kerntrail::spyre {
namespace {

using base::Json;

constexpr std::string_view kRoot = "sidecar";
constexpr UpstreamJoin kJoins[] = {UpstreamJoin::kLevelZero, UpstreamJoin::kCacheReplay, UpstreamJoin::kPartial,
                                   UpstreamJoin::kOk};

bool is_hash(std::string_view text) {
  return text.size() == 64 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_handle_id(std::string_view text) {
  return !text.empty() && text.size() <= 20 && (text == "0" || text[0] != '0') &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// One document; the first thing that does not fit stays in `error_`, with everything read after it worth nothing.
class SchemaReader {
 public:
  Expected<Sidecar> read(const Json& json) {
    const JsonCursor at(json, std::string(kRoot), error_);
    Sidecar out;
    closed(at, {"schemaVersion", "eventKey", "mergeGeneration", "status", "diagnostics", "handles", "kernelIdentities",
                "kernelOccurrences", "upstreamProjections"});
    if (!error_) {
      event_key(at["eventKey"]);
      out.generation = at["mergeGeneration"].integer(1);
      out.complete = one_of(at["status"], {"complete", "partial"}) == "complete";
      out.diagnostics = diagnostics(at["diagnostics"]);
      out.handles = map<SidecarHandle>(at["handles"], is_handle_id, [&](const auto& item) { return handle(item); });
      out.identities =
          map<KernelIdentity>(at["kernelIdentities"], is_kernel_key, [&](const auto& item) { return identity(item); });
      out.occurrences =
          map<KernelOccurrence>(at["kernelOccurrences"], is_hash, [&](const auto& item) { return occurrence(item); });
      out.projections =
          map<Projection>(at["upstreamProjections"], is_hash, [&](const auto& item) { return projection(item); });
    }
    if (error_) return tl::unexpected(*error_);
    return out;
  }

 private:
  using Keys = std::initializer_list<std::string_view>;

  // Exactly these members, and perhaps those.
  void closed(const JsonCursor& at, Keys required, Keys optional = {}) {
    for (const auto& [key, value] : at.object()) {
      const bool known =
          std::ranges::find(required, key) != required.end() || std::ranges::find(optional, key) != optional.end();
      if (!known) child(at, key, value).refuse("is no member of the schema");
    }
    for (const std::string_view key : required) {
      if (at.json().find(key) == nullptr) at.refuse(fmt::format("has no \"{}\"", key));
    }
  }

  JsonCursor child(const JsonCursor& at, std::string_view key, const Json& value) {
    return {value, fmt::format("{}.{}", at.path(), key), error_};
  }

  std::string text(const JsonCursor& at) {
    const std::string_view value = at.text();
    if (value.find('\0') != std::string_view::npos) at.refuse("holds a NUL character");
    return std::string(value);
  }
  std::string name(const JsonCursor& at) {
    std::string value = text(at);
    if (value.empty()) at.refuse("is empty");
    return value;
  }
  std::optional<std::string> text_or_null(const JsonCursor& at) {
    if (at.json().is_null()) return std::nullopt;
    return text(at);
  }
  std::optional<std::int64_t> integer_or_null(const JsonCursor& at, std::int64_t least) {
    if (at.json().is_null()) return std::nullopt;
    return at.integer(least);
  }
  bool boolean(const JsonCursor& at) {
    if (!at.json().is_bool()) at.refuse("is no boolean");
    return at.json().as_bool();
  }
  std::string shaped(const JsonCursor& at, bool (*fits)(std::string_view), std::string_view what) {
    std::string value = text(at);
    if (!fits(value)) at.refuse(fmt::format("is no {}", what));
    return value;
  }
  std::string handle_id(const JsonCursor& at) { return shaped(at, is_handle_id, "decimal id in a string"); }
  std::string key(const JsonCursor& at) { return shaped(at, is_kernel_key, "kernel key"); }
  std::string one_of(const JsonCursor& at, Keys words) {
    std::string value = text(at);
    if (std::ranges::find(words, value) == words.end()) at.refuse(fmt::format("is none of {}", fmt::join(words, ", ")));
    return value;
  }

  template <class Read>
  auto list(const JsonCursor& at, Read read) {
    std::vector<decltype(read(at))> out;
    for (std::size_t i = 0; i < at.array().size() && !error_; ++i) out.push_back(read(at.at(i)));
    return out;
  }
  Names names(const JsonCursor& at) {
    return list(at, [&](const JsonCursor& item) { return text(item); });
  }
  Names each_once(const JsonCursor& at, const Names& values) {
    Names sorted = values;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) at.refuse("says something twice");
    return values;
  }
  Names handle_ids(const JsonCursor& at) {
    return each_once(at, list(at, [&](const JsonCursor& item) { return handle_id(item); }));
  }

  // Keys in order: readers may rely on it, and a document has one spelling.
  template <class T, class Read>
  NameMap<T> map(const JsonCursor& at, bool (*fits)(std::string_view), Read read) {
    NameMap<T> out;
    for (const auto& [key_text, value] : at.object()) {
      if (error_) break;
      const JsonCursor item = child(at, key_text, value);
      if (key_text.find('\0') != std::string::npos || (fits != nullptr && !fits(key_text)))
        item.refuse("stands under a key of the wrong form");
      if (!out.empty() && out.rbegin()->first >= key_text)
        item.refuse("stands behind a key it should come before", ErrorCode::kReference);
      out.emplace_hint(out.end(), key_text, read(item));
    }
    return out;
  }
  NameLists lists(const JsonCursor& at) {
    return map<Names>(at, nullptr, [&](const JsonCursor& item) { return names(item); });
  }

  void event_key(const JsonCursor& at) {
    closed(at, {"version", "algorithm", "width", "stepAttribution"});
    if (error_) return;
    at["version"].integer(1, 1);
    one_of(at["algorithm"], {"sha256-prefix-80-base32-lower"});
    at["width"].integer(16, 16);
    one_of(at["stepAttribution"], {"bundle"});
  }

  NameMap<std::int64_t> diagnostics(const JsonCursor& at) {
    closed(at, {}, {"collection-failure", "upstream-projection-failure"});
    return map<std::int64_t>(at, nullptr, [](const JsonCursor& item) { return item.integer(1); });
  }

  std::optional<SourceLoc> source(const JsonCursor& at) {
    if (at.json().is_null()) return std::nullopt;
    closed(at, {"file", "start_line", "start_col", "end_line", "end_col"});
    if (error_) return std::nullopt;
    return SourceLoc{text(at["file"]), at["start_line"].integer(0), at["start_col"].integer(0),
                     integer_or_null(at["end_line"], 0), integer_or_null(at["end_col"], 0)};
  }

  ProvenanceTransform transform(const JsonCursor& at) {
    closed(at, {"kind", "pass_name", "reason"});
    if (error_) return {};
    return {one_of(at["kind"], {"rewrite", "fusion", "decomposition", "clone", "remap"}), text(at["pass_name"]),
            text_or_null(at["reason"])};
  }

  SidecarHandle handle(const JsonCursor& at) {
    closed(at, {"id", "source", "aten_op", "ir_chain", "fused_from", "transform_history"});
    if (error_) return {};
    return {handle_id(at["id"]),
            source(at["source"]),
            text_or_null(at["aten_op"]),
            names(at["ir_chain"]),
            handle_ids(at["fused_from"]),
            list(at["transform_history"], [&](const JsonCursor& item) { return transform(item); })};
  }

  SpecBinding binding(const JsonCursor& at) {
    closed(at, {"specPath", "handleId"});
    if (error_) return {};
    const JsonCursor path = at["specPath"];
    if (path.array().empty()) path.refuse("is empty: a handle is bound to an operation");
    return {list(path, [](const JsonCursor& item) { return item.integer(0); }), handle_id(at["handleId"])};
  }

  KernelIdentity identity(const JsonCursor& at) {
    closed(at, {"directHandleIds", "specHandleBindings", "atenOps", "eventNameBase"});
    if (error_) return {};
    const JsonCursor ops = at["atenOps"];
    return {handle_ids(at["directHandleIds"]),
            list(at["specHandleBindings"], [&](const JsonCursor& item) { return binding(item); }),
            each_once(ops, names(ops)), text(at["eventNameBase"])};
  }

  Registration registration(const JsonCursor& at) {
    closed(at, {"ordinal", "alias"});
    if (error_) return {};
    return {at["ordinal"].integer(1), name(at["alias"])};
  }

  KernelOccurrence occurrence(const JsonCursor& at) {
    closed(at, {"identityKey", "compileId", "compilerKernelName", "registrations"}, {"selector"});
    if (error_) return {};
    KernelOccurrence out{
        key(at["identityKey"]), shaped(at["compileId"], is_hash, "SHA-256 in hex"), name(at["compilerKernelName"]),
        list(at["registrations"], [&](const JsonCursor& item) { return registration(item); }), std::nullopt};
    if (at.json().find("selector") != nullptr) out.selector = name(at["selector"]);
    return out;
  }

  StackContext context(const JsonCursor& at) {
    closed(at, {"stackTraces", "postGradNodes", "preGradNodes"});
    if (error_) return {};
    return {names(at["stackTraces"]), names(at["postGradNodes"]), names(at["preGradNodes"])};
  }

  UpstreamJoin join(const JsonCursor& at) {
    const std::string_view word = at.text();
    for (const UpstreamJoin join : kJoins) {
      if (upstream_join_name(join) == word) return join;
    }
    at.refuse("is no known state of the join with torch's mapping");
    return UpstreamJoin::kLevelZero;
  }

  std::pair<std::string, std::string> kernel(const JsonCursor& at) {
    closed(at, {"compilerKernelName", "identityKey"});
    if (error_) return {};
    return {name(at["compilerKernelName"]), key(at["identityKey"])};
  }

  Projection projection(const JsonCursor& at) {
    closed(at,
           {"source", "version", "producer", "settings", "kernels", "uncollectedKernels", "upstreamProjectionFailed",
            "upstreamJoin", "preToPost", "postToPre", "cppCodeToPost", "postToCppCode", "kernelStackTraces"});
    if (!error_) {
      closed(at["producer"], {"torchSpyreVersion", "torchVersion"});
      closed(at["settings"], {"provenanceTrackingLevel", "structuredTracing"});
    }
    if (error_) return {};
    one_of(at["source"], {"inductor_provenance_tracking_node_mappings"});
    if (at["version"].json().as_double() != 2.0) at["version"].refuse("is not 2.0");
    Projection out;
    out.spyre_version = text(at["producer"]["torchSpyreVersion"]);
    out.torch_version = text(at["producer"]["torchVersion"]);
    out.tracking_level = at["settings"]["provenanceTrackingLevel"].integer(0);
    out.structured_tracing = boolean(at["settings"]["structuredTracing"]);
    out.kernels = list(at["kernels"], [&](const JsonCursor& item) { return kernel(item); });
    out.uncollected = each_once(at["uncollectedKernels"], names(at["uncollectedKernels"]));
    out.failed = boolean(at["upstreamProjectionFailed"]);
    out.join = join(at["upstreamJoin"]);
    out.pre_to_post = lists(at["preToPost"]);
    out.post_to_pre = lists(at["postToPre"]);
    out.kernel_to_post = lists(at["cppCodeToPost"]);
    out.post_to_kernel = lists(at["postToCppCode"]);
    out.stack_contexts =
        map<StackContext>(at["kernelStackTraces"], nullptr, [&](const JsonCursor& item) { return context(item); });
    return out;
  }

  std::optional<Error> error_;
};

// Puts file, line and column to an error whose message begins with a place.
Error placed(Error error, std::string_view text, std::string_view path) {
  std::string_view place = std::string_view(error.message).substr(0, error.message.find(' '));
  if (place.starts_with(kRoot)) place.remove_prefix(kRoot.size());
  if (place.starts_with('.')) place.remove_prefix(1);
  const base::TextPlace found = base::find_json(text, place);
  error.path = path;
  error.line = found.line;
  error.column = found.column;
  return error;
}

Expected<void> check_version(const Json& json) {
  const Json& version = json["schemaVersion"];
  if (version.is_int() && version.as_int() == 1) return {};
  if (version.is_int())
    return fail(ErrorCode::kTooNew, fmt::format("{}.schemaVersion is {}; this build reads 1", kRoot, version.as_int()));
  if (!json.is_object()) return fail(ErrorCode::kSchema, fmt::format("{} is no object", kRoot));
  return fail(ErrorCode::kSchema, fmt::format("{}.schemaVersion is missing or no integer", kRoot));
}

Expected<Sidecar> sidecar_from_json(const Json& json) {
  KERNTRAIL_CHECK(check_version(json));
  KERNTRAIL_TRY(Sidecar sidecar, SchemaReader().read(json));
  if (const auto misfit = misfit_of(sidecar)) {
    return fail(misfit->too_large ? ErrorCode::kTooLarge : ErrorCode::kReference,
                fmt::format("{}.{} {}", kRoot, misfit->place, misfit->problem));
  }
  return sidecar;
}

}  // namespace

Expected<Sidecar> parse_sidecar(std::string_view text, std::string_view path) {
  auto json = Json::parse(text, path);
  if (!json) {
    const base::TextPlace end = base::find_json_end(text);
    json.error().line = end.line;
    json.error().column = end.column;
    return tl::unexpected(json.error());
  }
  auto sidecar = sidecar_from_json(*json);
  if (!sidecar) return tl::unexpected(placed(std::move(sidecar.error()), text, path));
  return sidecar;
}

Expected<Sidecar> read_sidecar(const std::string& path) {
  auto text = base::read_file(path, kMaxSidecar);
  if (!text) {
    text.error().code = ErrorCode::kIo;
    return tl::unexpected(text.error());
  }
  return parse_sidecar(*text, path);
}

}  // namespace kerntrail::spyre
