#include "cli/verbs.h"

#include <fmt/format.h>

#include <exception>
#include <ostream>

#include "cli/arguments.h"
#include "cli/record.h"
#include "cli/unknown_option.h"
#include "kerntrail/version.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kIntroduction =
    "kerntrail follows every kernel of a compiled PyTorch model back to the source lines that made it.\n\n"
    "Usage: kerntrail VERB [ARGUMENTS]      kerntrail VERB --help explains a verb, with examples\n\n";

constexpr std::string_view kClosing =
    "\nA capture is the file that record writes; report and the verbs after it read one, but for debugify, emit and\n"
    "sidecar: plain, .gz or .zst, or from standard input as \"-\". Most read the folder of a Spyre bundle too. "
    "Results\n"
    "go to standard output or to -o FILE, talk to standard error.\n\n"
    "Exit status: 0 done; 2 usage; 3 a capture can't be read or is too new, or a result can't be written;\n"
    "record returns the program's own, and 5 where the program was fine but its capture is missing or partial;\n"
    "debugify: 1 where a pass is at fault, 3 where the program failed, 5 where something could not be judged;\n"
    "validate: 1 where a bundle breaks a rule or computes something else;\n"
    "gate: 1 where it fails, 4 where the baseline is of something else; diff: 4 where the captures can't be compared,\n"
    "1 with --exit-code where something got worse; sidecar: 1 where the event leads nowhere.\n";

std::string help() {
  std::string out(kIntroduction);
  for (const Verb& verb : verbs()) out += fmt::format("  {:<10} {}\n", verb.name, verb.summary);
  out += "\n  --help     this text\n  --version  version of this build\n";
  return out + std::string(kClosing);
}

int unknown_verb(const std::string& word, Streams& streams) {
  std::vector<std::string> names{"--help", "--version"};
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  const std::string near = nearest(word, names);
  streams.err << fmt::format("kerntrail: unknown {} {}{}\nTry: kerntrail --help\n",
                             word.rfind('-', 0) == 0 ? "option" : "verb", word,
                             near.empty() ? "" : "; did you mean " + near + "?");
  return kUsageError;
}

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> kVerbs{
      {"record", "runs a Python program and writes down every compile of it",
       [](const auto& rest, Streams&) { return run_record(rest); }},
      {"audit", "record and report; without a program, the reference model",
       [](const auto& rest, Streams&) { return run_audit(rest); }},
      {"report", "the whole audit report: lineage, matrix, a table a stage, kernels", run_report},
      {"matrix", "which provenance field is there at which stage, on how many units", run_matrix},
      {"lineage", "from source lines to kernels and back", run_lineage},
      {"drops", "where provenance was lost: in which pass, by which line of the compiler, and why", run_drops},
      {"analyse", "what the report's numbers mean: how values come about, where they go, caveats of this run",
       run_analyse},
      {"explain", "one kernel, unit, source line or handle: its chain, where it broke, why and by whom", run_explain},
      {"verify", "whether kernels really come from what the compiler says: claims against the witness", run_verify},
      {"gate", "may this change merge: fails where more provenance is lost than is allowed", run_gate},
      {"debugify", "runs a Python program and says what each FX pass does to provenance", run_debugify},
      {"diff", "two captures compared: what was lost, gained, moved, and by whom", run_diff},
      {"export", "the capture in another format: torch's node mappings, CSV tables, the reference audit's JSON",
       run_export},
      {"emit", "a Spyre bundle from OpSpecs, without Python", run_emit},
      {"rules", "what the words of drops, lineage and report mean", run_rules},
      {"info", "what a capture holds: run, compiles, stages, hooks, notes; or what a Spyre bundle says", run_info},
      {"validate", "checks a capture file: every record, reference and digest; or a Spyre bundle by the format's rules",
       run_validate},
      {"sidecar", "from an event of a profiler trace to source lines, by a spyre_provenance.json; checks that file",
       run_sidecar},
      {"selftest", "checks the witness of level truth against a second, independent one", run_selftest},
  };
  return kVerbs;
}

int run_command(const std::vector<std::string>& arguments, Streams& streams) {
  if (arguments.empty()) {
    streams.err << help();
    return kUsageError;
  }
  const std::string& word = arguments.front();
  if (word == "--help" || word == "-h" || word == "help") {
    streams.out << help();
    return kDone;
  }
  if (word == "--version") {
    streams.out << "kerntrail " << version() << "\n";
    return kDone;
  }
  for (const Verb& verb : verbs()) {
    if (verb.name != word) continue;
    try {
      return verb.run({arguments.begin() + 1, arguments.end()}, streams);
    } catch (const std::exception& error) {  // out of memory, a stream gone: nothing that input alone can cause
      streams.err << "kerntrail " << word << ": " << error.what() << "\n";
      return kUnreadable;
    }
  }
  return unknown_verb(word, streams);
}

}  // namespace kerntrail::cli
