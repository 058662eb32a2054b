// `kerntrail export`
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <ostream>

#include "base/files.h"
#include "base/strings.h"
#include "cli/common.h"
#include "render/exports.h"
#include "render/outputs.h"
#include "render/text.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Writes a capture in another format.\n"
    "raw: provenance_capture_raw.json as the reference audit writes it; with several compiles each stage is a list\n"
    "whose entries have a compile key.\n"
    "node-mappings, kernel-stack-traces: what torch writes at its provenance level 1 (version 2.0), for any back end\n"
    "and at any level, so that tools which read torch's files read these. One file a compile, and a direction of it:\n"
    "with several, -o names a folder.\n"
    "csv: the capture as three flat tables that join on unit ids, units, attrs and edges: into the folder -o, or one\n"
    "of them to standard output. Cells that a spreadsheet would take for a formula begin with an added '.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail export run.ndjson -o provenance_capture_raw.json\n"
    "  kerntrail export run.ndjson | jq '._hooks'\n"
    "  kerntrail export run.ndjson --format node-mappings --compile c0 | jq '.cppCodeToPost'\n"
    "  kerntrail export run.ndjson --format node-mappings --from claims -o mappings    a folder a compile\n"
    "  kerntrail export run.ndjson --format csv -o tables                              units.csv, attrs.csv, "
    "edges.csv\n"
    "  kerntrail export run.ndjson --format csv --table edges | duckdb -c \"select * from read_csv('/dev/stdin')\"";

struct ExportOptions {
  CommonOptions common;
  std::string format = "raw";
  std::string from;       // claims, witness; empty: whichever there is
  std::string direction;  // forward, backward; empty: both
  std::string table;      // empty: all
};

int refuse_usage(std::string message, Streams& streams) {
  return refuse("export", Error{ErrorCode::kUsage, std::move(message)}, streams);
}

// Into `file` below -o.
int deliver_below(const std::string& file, const std::string& text, const ExportOptions& options, Streams& streams) {
  const auto path = (std::filesystem::path(options.common.output) / file).string();
  const auto written = base::write_file(path, text);
  return written ? kDone : refuse("export", written.error(), streams);
}

std::string place_of(const analyse::NodeMapping& mapping) {
  return compile_name(mapping.compile) + (mapping.direction.empty() ? "" : "_" + mapping.direction);
}

// What the documents themselves have no room for.
void tell(const std::vector<analyse::NodeMapping>& all, Streams& streams) {
  for (const analyse::NodeMapping& one : all) {
    const bool by_witness = one.source == analyse::MappingSource::kWitness;
    std::string text = by_witness ? "from the witness" : "from the compiler's claims";
    if (one.has_own_handles) text += "; torch numbered no calls of kernels here: handles are places in program order";
    if (one.unregistered > 0 && !by_witness)
      text += fmt::format("; without {} that torch was never told of", base::counted(one.unregistered, "kernel"));
    if (one.unwitnessed > 0)
      text += fmt::format("; {} not witnessed: nothing is listed there", base::counted(one.unwitnessed, "kernel"));
    streams.err << fmt::format("kerntrail export: {}: {}\n", place_of(one), text);
  }
}

int export_mappings(const Capture& capture, const ExportOptions& options, Streams& streams) {
  std::optional<analyse::MappingSource> source;
  if (options.from == "claims") source = analyse::MappingSource::kClaims;
  if (options.from == "witness") source = analyse::MappingSource::kWitness;
  auto all = analyse::node_mappings(capture, options.common.analysis, source);
  if (!all) return refuse("export", all.error(), streams);
  if (!options.direction.empty())
    std::erase_if(*all, [&](const analyse::NodeMapping& one) { return one.direction != options.direction; });
  const bool stacks = options.format == "kernel-stack-traces";
  const auto text_of = [&](const analyse::NodeMapping& one) {
    return (stacks ? render::kernel_stack_traces_json(one) : render::node_mappings_json(one)) + "\n";
  };
  if (all->empty()) return refuse_usage("nothing of that was observed: no compile with kernels", streams);
  const std::string& output = options.common.output;
  const bool is_file = output.empty() || output == "-" || output.ends_with(".json");
  if (is_file && all->size() > 1) {
    std::vector<std::string> places;
    for (const analyse::NodeMapping& one : *all) places.push_back(place_of(one));
    return refuse_usage(fmt::format("there are {} documents ({}): name a folder with -o, or choose one with --compile "
                                    "and --direction",
                                    places.size(), base::join(places, ", ")),
                        streams);
  }
  tell(*all, streams);
  if (is_file) return deliver(text_of(all->front()), options.common, "export", streams);
  const std::string file =
      std::string("inductor_provenance_tracking_") + (stacks ? "kernel_stack_traces.json" : "node_mappings.json");
  for (const analyse::NodeMapping& one : *all) {
    if (const int exit = deliver_below(place_of(one) + "/" + file, text_of(one), options, streams); exit != kDone)
      return exit;
  }
  return kDone;
}

int export_tables(const Capture& capture, const ExportOptions& options, Streams& streams) {
  const bool to_folder = !options.common.output.empty() && options.common.output != "-" && options.table.empty();
  if (!to_folder && options.table.empty())
    return refuse_usage("--format csv is three tables: name a folder with -o, or one of them with --table", streams);
  for (std::string_view table : render::kTables) {
    if (!options.table.empty() && table != options.table) continue;
    const auto text = render::table_csv(capture, table, options.common.analysis);
    if (!text) return refuse("export", text.error(), streams);
    const int exit = to_folder ? deliver_below(std::string(table) + ".csv", *text, options, streams)
                               : deliver(*text, options.common, "export", streams);
    if (exit != kDone) return exit;
  }
  return kDone;
}

int export_raw(const Capture& capture, const ExportOptions& options, Streams& streams) {
  const auto result = render::raw_export(capture, options.common.analysis);
  if (!result) return refuse("export", result.error(), streams);
  return deliver(*result + "\n", options.common, "export", streams);
}

struct Format {
  std::string_view name;
  int (*run)(const Capture& capture, const ExportOptions& options, Streams& streams);
  bool has_mapping_options, has_table_option;
};

constexpr std::array<Format, 4> kFormats{{{"raw", export_raw, false, false},
                                          {"node-mappings", export_mappings, true, false},
                                          {"kernel-stack-traces", export_mappings, true, false},
                                          {"csv", export_tables, false, true}}};

}  // namespace

int run_export(const std::vector<std::string>& arguments, Streams& streams) {
  ExportOptions options;
  Arguments parser("export", kDescription, kExamples);
  add_capture(parser, options.common);
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  parser.choice("--format", &options.format, names, "Format");
  parser.choice("--from", &options.from, {"witness", "claims"},
                "node-mappings, kernel-stack-traces: whose word on kernels is taken. Without it the witness, for "
                "compiles that have one (level truth)");
  parser.choice("--direction", &options.direction, {"forward", "backward"},
                "node-mappings, kernel-stack-traces: of compiles with a backward, only this");
  parser.choice("--table", &options.table, {render::kTables.begin(), render::kTables.end()}, "csv: only this table");
  add_analysis(parser, options.common, false);
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  const Format& format =
      *std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& f) { return f.name == options.format; });
  if (!format.has_mapping_options && !(options.from.empty() && options.direction.empty()))
    return refuse_usage(fmt::format("--format {} takes neither --from nor --direction", options.format), streams);
  if (!format.has_table_option && !options.table.empty())
    return refuse_usage(fmt::format("--format {} has no --table", options.format), streams);
  const auto capture = load(options.common, "export", streams);
  if (!capture) return refuse("export", capture.error(), streams);
  return format.run(*capture, options, streams);
}

}  // namespace kerntrail::cli
