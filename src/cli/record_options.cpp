#include "cli/record_options.h"

#include <CLI/CLI.hpp>

#include "cli/program_arguments.h"
#include "cli/unknown_option.h"

namespace kerntrail::cli {
namespace {

constexpr const char* kRecordHelp =
    "Runs a Python program and writes down what every torch.compile of it did, stage by stage.\n"
    "The program runs as it would under python; its own exit status is returned.\n";
constexpr const char* kRecordExamples =
    "Examples:\n"
    "  kerntrail record train.py --epochs 1        watch a script; writes provenance_capture.ndjson\n"
    "  kerntrail record -o run.ndjson.zst train.py compressed by its ending (.zst, .gz)\n"
    "  kerntrail record -m mypackage.bench         a module, as python -m would run it\n"
    "  kerntrail record --backend kerntrail_spyre train.py\n"
    "                                              for compiles that name no backend\n"
    "Then: kerntrail report, matrix or lineage on the capture.\n"
    "Exit status: the program's own; 2 usage; 5 program fine, capture missing or partial.\n"
    "In a process you can't start this way: KERNTRAIL=out.ndjson in its environment, or\n"
    "`with kerntrail.capture(\"out.ndjson\"):` in its code.";
constexpr const char* kAuditHelp =
    "Records a program and writes the source-to-kernel provenance report.\n"
    "Without a program: the reference model (examples/reference_mlp.py) under metadata rule seed.\n";
constexpr const char* kAuditExamples =
    "Examples:\n"
    "  kerntrail audit                             the reference model\n"
    "  kerntrail audit model.py                    any program, any backend\n"
    "  kerntrail audit --backend kerntrail_spyre --metadata full model.py\n"
    "  kerntrail audit --output report.json --format json model.py\n"
    "Exit status: as record; 3 when the capture can't be read back.";

// Options up to the program's name are ours, everything after it is the program's.
void add_record_options(CLI::App& app, RecordOptions& out, std::vector<std::string>& rest, bool is_audit) {
  app.add_option("-o", out.output, "The capture file; .gz and .zst are compressed. An existing file is replaced")
      ->capture_default_str()
      ->type_name("FILE");
  app.add_option(
         "--level", out.level,
         "How much to watch: borders (a snapshot at each stage border), passes (also what every pass made, changed and "
         "removed), origins (also the compiler's line that made each node), truth (also which node made each "
         "operation and line of each kernel)")
      ->capture_default_str()
      ->check(one_of({"borders", "passes", "origins", "truth"}))
      ->type_name("borders|passes|origins|truth");
  app.add_option("--python", out.python,
                 "Interpreter that runs the program; default: the one beside this binary, else python3 on PATH")
      ->type_name("PYTHON");
  app.add_flag("--keep-caches", out.keep_caches,
               "Leave Inductor's caches on. A compile served from a cache is then recorded as not observed");
  app.add_option("--source", out.source,
                 "How much user source the capture embeds: none, lines (with two lines around), files")
      ->capture_default_str()
      ->check(one_of({"none", "lines", "files"}))
      ->type_name("none|lines|files");
  app.add_flag("--timing", out.timing, "Also record durations; such captures differ from run to run");
  if (!is_audit) app.add_flag("-q,--quiet", out.quiet, "Don't say what was recorded, only what went wrong");
  app.add_option("--backend", out.backend, "Backend for compiles that name none, e.g. kerntrail_spyre")
      ->type_name("NAME");
  app.add_option("--metadata", out.metadata,
                 "What the Spyre-format back end's addmm split copies: seed (three keys) or full (all)")
      ->check(one_of({"seed", "full"}))
      ->type_name("seed|full");
  app.add_flag("--restickify", out.restickify,
               "The Spyre-format back end lays matrix operands out by operations of their own, not at load");
  app.add_flag("-m", out.is_module, "The program is a module name, as for python -m");
  app.add_flag("--reference-model", out.reference_model, "Run the reference model")
      ->group("");  // hidden: audit's way to ask for it
  // For --help only: parse() takes the program off before the options are parsed.
  app.add_option("program", rest, "The Python program and its own arguments")->type_name("PROGRAM ARGS...");
}

ParsedRecord stopped(const Stop& stop) {
  ParsedRecord out;
  out.exit = stop.exit;
  out.text = stop.text;
  return out;
}

ParsedRecord parse(const std::string& name, const char* help, const char* examples,
                   const std::vector<std::string>& arguments, bool is_audit) {
  RecordOptions out;
  CLI::App app(help, "kerntrail " + name);
  std::vector<std::string> unused;
  add_record_options(app, out, unused, is_audit);
  if (is_audit) {
    app.add_option("--output", out.report, "The report file")->capture_default_str()->type_name("REPORT");
    app.add_option("--raw", out.raw, "The raw capture in the reference's JSON form")
        ->capture_default_str()
        ->type_name("FILE");
    app.add_option("--format", out.format, "Form of the report: md or json")
        ->capture_default_str()
        ->check(one_of({"md", "json"}))
        ->type_name("md|json");
    app.add_flag("--stamp", out.stamp, "Add the date to the report (absent by default: same input, same bytes)");
  }
  app.footer(examples);
  const ProgramArguments split = split_program(app, arguments);
  if (const auto ends = parse_own(name, app, split.own)) return stopped(*ends);
  out.program = split.program;
  out.arguments = split.arguments;
  if (is_audit && out.program.empty() && !out.is_module) out.reference_model = true;
  if (out.program.empty() && !out.reference_model) {
    return stopped(no_program(name));
  }
  ParsedRecord parsed;
  parsed.options = std::move(out);
  return parsed;
}

}  // namespace

ParsedRecord parse_record(const std::vector<std::string>& arguments) {
  return parse("record", kRecordHelp, kRecordExamples, arguments, false);
}

ParsedRecord parse_audit(const std::vector<std::string>& arguments) {
  ParsedRecord parsed = parse("audit", kAuditHelp, kAuditExamples, arguments, true);
  // The reference model is audited under the rule that reproduces the reference report.
  if (parsed.options && parsed.options->reference_model && parsed.options->metadata.empty())
    parsed.options->metadata = "seed";
  return parsed;
}

std::vector<std::string> record_arguments(const RecordOptions& options) {
  std::vector<std::string> out{"-o", options.output, "--level", options.level, "--source", options.source};
  if (options.keep_caches) out.emplace_back("--keep-caches");
  if (options.timing) out.emplace_back("--timing");
  if (!options.backend.empty()) out.insert(out.end(), {"--backend", options.backend});
  if (!options.metadata.empty()) out.insert(out.end(), {"--metadata", options.metadata});
  if (options.restickify) out.emplace_back("--restickify");
  if (options.is_module) out.emplace_back("-m");
  if (options.reference_model) {
    out.emplace_back("--reference-model");
    return out;
  }
  out.emplace_back("--");
  out.push_back(options.program);
  out.insert(out.end(), options.arguments.begin(), options.arguments.end());
  return out;
}

}  // namespace kerntrail::cli
