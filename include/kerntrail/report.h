// The whole report as plain values: what the Markdown and JSON writers print, nothing computed after this.
// Must not know: output formats, files.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kerntrail/capture.h"
#include "kerntrail/drops.h"
#include "kerntrail/lineage.h"
#include "kerntrail/matrix.h"
#include "kerntrail/options.h"
#include "kerntrail/verify.h"

namespace kerntrail {

// One field of one unit, as seen.
struct FieldCell {
  State state = State::kNoSlot;
  ValueType value_type = ValueType::kText;
  std::string python_type;         // "str", "OpOverload"; empty where absent
  std::string text;                // text-like values, whole
  std::vector<std::string> names;  // units referred to, sorted by name
};

struct HandleSummary {
  std::string id;                       // decimal text of the 63-bit id
  std::string source;                   // "file.py:25"; empty: resolves to an aten op only
  std::string aten_op;                  // empty: the constituents disagree
  std::vector<std::string> fused_from;  // aten ops of the constituents
};

enum class TableKind : std::uint8_t { kFx, kOperations, kGroups, kOpSpecs, kFiles, kKernels, kOther };

struct DetailRow {
  UnitId unit = UnitId::kNone;
  std::string name;
  std::string target;                     // FX nodes
  std::string op;                         // OpSpec: device op; files: "0_batchmatmul"
  std::string kernel;                     // files: the kernel of the bundle
  std::string code;                       // code text of the innermost user frame
  FieldCell origins, origin_node;         // OpSpec: read from the input buffer, not slots of the OpSpec
  std::vector<std::string> buffers;       // kernels and groups: the operations in it
  std::string unit_class;                 // kernels: loop, template, extern, fallback, user; groups: scheduler's class
  std::optional<std::vector<std::int64_t>> call_lines;  // kernels: of the wrapper; none: the wrapper was not seen
  std::vector<std::string> handles;       // kernels: "name:4", where the compiler numbered them
  std::vector<std::string> outcomes;      // groups: what became of each operation, "op1: fused, buffer removed"
  std::optional<HandleSummary> handle;
  std::string parse_error;                // files that did not parse
  std::vector<FieldCell> fields;          // in the order of StageTable::fields
};

struct StageTable {
  StageId stage = StageId::kNone;
  TableKind kind = TableKind::kOther;
  std::string key, title, noun;
  std::string number;                     // "2a"; empty for stages outside the reference's six
  std::vector<std::string> fields;        // tracked fields with a column of their own
  std::vector<std::string> observed;      // every attribute or key seen on a unit of the stage, sorted
  std::string unit_class;                 // operations: their class where all have one, e.g. "ComputedBuffer"
  std::vector<DetailRow> rows;
  std::size_t kernels = 0;                                      // files: bundles they belong to
  std::size_t parsed = 0, handle_present = 0, handle_filled = 0;  // files: of the parsed ones
};

struct KernelBlock {
  UnitId unit = UnitId::kNone;
  std::string name;
  std::vector<std::string> buffers;     // operations, in the kernel's order
  std::vector<std::string> fx_origins;  // sorted by name
  std::string metadata;                 // the compiler's own comment
  std::string output_dir;               // empty where none was seen
  std::size_t files = 0, parsed = 0, handles = 0;
};

// What was seen of one compile (or one direction of it).
struct ReportSection {
  CompileId compile = CompileId::kNone;
  std::string direction;
  std::string backend, torch_id;
  bool observed = false;                                    // false: a cache hit or a failed compile, see notes
  std::vector<std::pair<std::string, std::string>> counts;  // quantity, value
  Matrix matrix;
  Drops drops;                      // where provenance is lost, at every captured stage unless stages are named
  Lineage lineage;                  // of the whole compile; left empty in a backward section
  // Claims against the witness, of the whole compile; none below level truth, and in a backward section.
  std::optional<Verification> verification;
  std::vector<StageTable> tables;
  std::vector<KernelBlock> kernels;
  std::vector<Note> notes;          // of this compile
};

struct HookSummary {
  std::string name, value;  // "installed", "install-failed: why", "error: why"
  std::uint64_t fired = 0;
};

struct Report {
  std::string model_name, stamp;
  bool example = false;
  std::string backend;        // of the first compile; empty where nothing was compiled
  std::string metadata_rule;  // "seed" or "full" for the Spyre-format back end
  bool of_issue = false;  // of the pipeline that the reference audit's issue is about: one that writes SuperDSC
  bool torn = false;          // the capture has no end record
  bool partial = false;       // its end record says that something was lost
  bool of_files = false;      // read from the files of bundles: no compile was watched
  std::vector<ReportSection> sections;
  std::vector<HookSummary> hooks;  // the reference's six labels first, whether installed or not
  std::vector<Note> notes;         // of no particular compile
};

// kUsage: unknown stage or compile. A capture without compiles gives a report without sections.
Expected<Report> make_report(const Capture& capture, const ReportOptions& options = {});

// State of each hook, the reference's six labels first ("install-failed: not found" where a row is missing).
std::vector<HookSummary> hook_summaries(const Capture& capture);

}  // namespace kerntrail
