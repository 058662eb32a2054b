#include "cli/debugify_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

#include "cli/program_arguments.h"
#include "cli/unknown_option.h"

namespace kerntrail::cli {
namespace {

const std::vector<std::string> kStages{"pre_grad", "joint", "post_grad"};

constexpr const char* kHelp =
    "Runs a Python program and says what each pass over FX graphs does to provenance: before a pass every node gets\n"
    "synthetic provenance that names it alone, after it a ledger says what became of each id, by which line. Then\n"
    "nodes get what they would have without this; what is compiled, and what the program computes, is the same.\n";
constexpr const char* kExamples =
    "Examples:\n"
    "  kerntrail debugify model.py                 all passes of the three stages\n"
    "  kerntrail debugify --stage post_grad model.py\n"
    "  kerntrail debugify --pass mypasses:fuse model.py\n"
    "                                              one function, called with each post-grad graph\n"
    "  kerntrail debugify --allow fabricated --allow 'lost:mm*' model.py\n"
    "  kerntrail debugify --format json -o ledger.json model.py\n"
    "Fates of an id: survived, carried, duplicated, merged, elided, lost, overwritten; they sum to the ids. Nodes "
    "that\n"
    "name none are fabricated. Faults: lost, overwritten, fabricated, merged where no node names the id, incomplete\n"
    "(a node names an id without a field that the old one had), altered (with another value of one).\n"
    "Exit status: 0 no faults; 1 faults; 2 usage; 3 the program failed, or ended before the ledgers were written;\n"
    "5 program fine, but nothing was compiled, or something could not be judged.";

ParsedDebugify stopped(const Stop& stop) {
  ParsedDebugify out;
  out.exit = stop.exit;
  out.text = stop.text;
  return out;
}

void add_options(CLI::App& app, DebugifyOptions& out, std::vector<std::string>& rest) {
  app.add_option("-o", out.output, "Where the ledgers go; default: standard output, after all that the program prints")
      ->type_name("FILE");
  app.add_option(
         "--stage", out.stages,
         "Whose passes are judged: pre_grad, joint, post_grad; may be repeated. Default: all three, with --pass "
         "post_grad")
      ->check(one_of(kStages))
      ->allow_extra_args(false)
      ->type_name("STAGE");
  app.add_option(
         "--pass", out.pass,
         "Judge this function alone. It is called with each graph of the stage as torch's own slot would call it "
         "(pre_grad_custom_pass, joint_custom_post_pass, post_grad_custom_post_pass), after what is configured "
         "there; what it does to the graph stays")
      ->type_name("MODULE:FUNCTION");
  app.add_option("--allow", out.allow,
                 "A fault that is accepted, for all nodes or for those of a name: lost, 'lost:mm*'; "
                 "may be repeated")
      ->allow_extra_args(false)
      ->type_name("FAULT");
  app.add_option("--field", out.fields, "Fields whose absence or other value is a fault; may be repeated. Default: all")
      ->allow_extra_args(false)
      ->type_name("FIELD");
  app.add_option("--format", out.format, "A table a graph, or JSON (schemas/debugify.schema.json)")
      ->capture_default_str()
      ->check(one_of({"text", "json"}))
      ->type_name("text|json");
  app.add_option("--python", out.python,
                 "Interpreter that runs the program; default: the one beside this binary, else python3 on PATH")
      ->type_name("PYTHON");
  app.add_option("--backend", out.backend, "Backend for compiles that name none, e.g. kerntrail_spyre")
      ->type_name("NAME");
  app.add_flag("-m", out.is_module, "The program is a module name, as for python -m");
  // For --help only: the program is taken off before the options are parsed.
  app.add_option("program", rest, "The Python program and its own arguments")->type_name("PROGRAM ARGS...");
}

}  // namespace

ParsedDebugify parse_debugify(const std::vector<std::string>& arguments) {
  DebugifyOptions out;
  CLI::App app(kHelp, "kerntrail debugify");
  std::vector<std::string> unused;
  add_options(app, out, unused);
  app.footer(kExamples);
  const ProgramArguments split = split_program(app, arguments);
  if (const auto ends = parse_own("debugify", app, split.own)) return stopped(*ends);
  if (split.program.empty()) return stopped(no_program("debugify"));
  const std::size_t colon = out.pass.find(':');
  if (!out.pass.empty() && (colon == std::string::npos || colon == 0 || colon + 1 == out.pass.size())) {
    return stopped({kUsageError, "kerntrail debugify: --pass '" + out.pass + "' is not of the form module:function\n"});
  }
  if (out.stages.empty()) out.stages = out.pass.empty() ? kStages : std::vector<std::string>{"post_grad"};
  std::vector<std::string> ordered;
  std::copy_if(kStages.begin(), kStages.end(), std::back_inserter(ordered), [&](const std::string& stage) {
    return std::find(out.stages.begin(), out.stages.end(), stage) != out.stages.end();
  });
  out.stages = std::move(ordered);
  out.program = split.program;
  out.arguments = split.arguments;
  ParsedDebugify parsed;
  parsed.options = std::move(out);
  return parsed;
}

std::vector<std::string> debugify_arguments(const DebugifyOptions& options, const std::string& result) {
  std::vector<std::string> out{"-o", result, "--format", options.format};
  const auto add = [&](const char* name, const std::vector<std::string>& values) {
    for (const std::string& value : values) out.insert(out.end(), {name, value});
  };
  add("--stage", options.stages);
  add("--allow", options.allow);
  add("--field", options.fields);
  if (!options.pass.empty()) add("--pass", {options.pass});
  if (!options.backend.empty()) add("--backend", {options.backend});
  if (options.is_module) out.emplace_back("-m");
  out.emplace_back("--");
  out.push_back(options.program);
  out.insert(out.end(), options.arguments.begin(), options.arguments.end());
  return out;
}

}  // namespace kerntrail::cli
