#include "read/bundle_capture.h"

#include <algorithm>
#include <filesystem>

#include "model/recorder.h"
#include "model/replay.h"
#include "spyre/bundle_reader.h"
#include "spyre/file_fields.h"
#include "spyre/op_spec.h"

namespace kerntrail::read {
namespace {

namespace fs = std::filesystem;
using base::Json;
using base::JsonArray;

// The stages and tracked fields of a watched compile that files can be held against: what a field's row says of a file
// must mean the same here and there.
constexpr struct {
  const char* name;
  ValueType type;
  const char *layer, *first_stage;
} kTracked[] = {{"stack_trace", ValueType::kStack, "FX", "fx_pre_grad"},
                {"nn_module_stack", ValueType::kModules, "FX", "fx_pre_grad"},
                {"source_fn_stack", ValueType::kJson, "FX", "fx_pre_grad"},
                {"original_aten", ValueType::kOp, "FX", "fx_joint"},
                {"from_node", ValueType::kNodeSources, "FX", "fx_joint"},
                {"origins", ValueType::kRefs, "IR", "ir_pre_pass"},
                {"origin_node", ValueType::kRef, "IR", "ir_pre_pass"},
                {"traceback", ValueType::kText, "IR", "ir_pre_pass"},
                {"get_stack_traces", ValueType::kJson, "IR", "ir_pre_pass"}};

// The folder's own name, also where it is asked for as "x/" or ".".
std::string name_of(const std::string& path) {
  std::error_code ec;
  const fs::path real = fs::canonical(path, ec);
  return (ec ? fs::path(path) : real).filename().string();
}

class Writer {
 public:
  Writer() : recorder_(replay_) {}

  Capture write(const std::string& path, std::string_view tool, const std::vector<spyre::Bundle>& bundles) {
    begin(path, tool);
    for (const spyre::Bundle& bundle : bundles) add(bundle);
    recorder_.snapshot(superdsc_, files_graph_, files_);
    recorder_.snapshot(kernel_, kernels_graph_, kernels_);
    for (auto& [kernel, units] : links_) recorder_.link("bundle_file", {kernel}, std::move(units));
    recorder_.note({"files-only", Severity::kInfo,
                    "read from bundle files: nothing is known of the compile that wrote them", compile_,
                    GraphId::kNone});
    recorder_.close_compile(compile_);
    recorder_.end(true);
    return replay_.take();
  }

 private:
  void begin(const std::string& path, std::string_view tool) {
    RunInfo run;
    run.tool = tool;
    run.settings = {{"level", std::string(kFilesLevel)}, {"program", name_of(path)}};
    recorder_.run(run);
    superdsc_ = recorder_.stage({"superdsc", "SuperDSC JSON", "file", "Spyre", 100});
    kernel_ = recorder_.stage({"kernel", "Kernel", "kernel", "backend", 110});
    for (const auto& row : kTracked) recorder_.attr_kind({row.name, row.type, row.layer, row.first_stage, true});
    handle_ = recorder_.attr_kind({"debug_handle", ValueType::kHandle, "Spyre", "op_spec", true});
    const auto inventory = [&](const char* name, ValueType type) {
      return recorder_.attr_kind({name, type, "", "", false});
    };
    name_ = inventory("name", ValueType::kText);
    keys_ = inventory("op_keys", ValueType::kJson);
    found_ = inventory("fields_found", ValueType::kJson);
    error_ = inventory("parse_error", ValueType::kText);
    Compile compile;
    compile.backend = "spyre";
    compile_ = recorder_.compile(compile);
    files_graph_ = recorder_.graph(compile_, "bundle", "none");
    kernels_graph_ = recorder_.graph(compile_, "kernel", "none");
  }

  void add(const spyre::Bundle& bundle) {
    const UnitId kernel = recorder_.unit(kernels_graph_, UnitKind::kKernel);
    kernels_.push_back({kernel, {{name_, text(bundle.name)}}});
    std::vector<UnitId> units;
    for (const spyre::BundleEntry& entry : bundle.entries) {
      units.push_back(recorder_.unit(files_graph_, UnitKind::kBundleFile));
      files_.push_back(file(entry, units.back()));
    }
    links_.emplace_back(kernel, std::move(units));
  }

  model::ObservedUnit file(const spyre::BundleEntry& entry, UnitId unit) {
    model::ObservedUnit out{unit, {{name_, text(entry.file)}}};
    if (entry.document.is_null()) {
      out.attrs.push_back({error_, text(entry.error ? entry.error->message : "holds nothing")});
      return out;
    }
    const spyre::FileFields fields = spyre::fields_of_file(entry.document);
    out.attrs.push_back({keys_, json(JsonArray(fields.keys.begin(), fields.keys.end()))});
    out.attrs.push_back({found_, json(JsonArray(fields.found.begin(), fields.found.end()))});
    if (fields.handle != nullptr) out.attrs.push_back({handle_, handle(*fields.handle)});
    return out;
  }

  Observation text(std::string_view value) {
    Observation out;
    out.state = State::kPresent;
    out.text = recorder_.text(value);
    return out;
  }
  Observation json(Json value) {
    Observation out;
    out.state = State::kPresent;
    out.text = recorder_.json_value(value);
    return out;
  }

  Observation handle(const Json& value) {
    if (value.is_null()) {
      Observation out;
      out.state = State::kEmpty;
      return out;
    }
    if (!spyre::handle_from_json(value)) {  // what stands there leads nowhere
      Observation out;
      out.state = State::kUnreadable;
      return out;
    }
    Observation out = json(value);
    const Json& source = value["source"];
    if (!source.is_object()) return out;
    Loc loc;
    loc.kind = LocKind::kRange;
    loc.text = recorder_.text(source["file"].as_string());
    loc.line = source["start_line"].as_int();
    loc.col = source["start_col"].as_int(-1);
    loc.end_line = source["end_line"].as_int();
    loc.end_col = source["end_col"].as_int(-1);
    loc.frame_class = FrameClass::kUser;
    out.loc = recorder_.loc(loc);
    return out;
  }

  model::Replay replay_;
  model::Recorder recorder_;
  StageId superdsc_{}, kernel_{};
  AttrId handle_{}, name_{}, keys_{}, found_{}, error_{};
  CompileId compile_{};
  GraphId files_graph_{}, kernels_graph_{};
  std::vector<model::ObservedUnit> files_, kernels_;
  std::vector<std::pair<UnitId, std::vector<UnitId>>> links_;
};

}  // namespace

std::vector<std::string> bundles_in(const std::string& path) {
  if (spyre::is_bundle(path)) return {path};
  std::vector<std::string> out;
  std::error_code ec;
  for (fs::directory_iterator at(path, ec), end; !ec && at != end; at.increment(ec)) {
    if (at->is_directory(ec) && spyre::is_bundle(at->path().string())) out.push_back(at->path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

Expected<Capture> read_bundle_capture(const std::string& path, std::string_view tool) {
  const std::vector<std::string> paths = bundles_in(path);
  if (paths.empty()) return fail(ErrorCode::kSchema, "is no bundle: no sdsc_*.json and no bundle.mlir is in it", path);
  std::vector<spyre::Bundle> bundles;
  for (const std::string& one : paths) {
    KERNTRAIL_TRY(spyre::Bundle bundle, spyre::read_bundle(one));
    bundles.push_back(std::move(bundle));
  }
  return Writer().write(path, tool, bundles);
}

}  // namespace kerntrail::read
