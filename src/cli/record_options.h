// Options of `record` and `audit`: one parser for the binary and for `python -m kerntrail record`.
// Must not know: how a program is run.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kerntrail::cli {

struct RecordOptions {
  std::string output = "provenance_capture.ndjson";  // the capture
  std::string level = "passes";
  std::string python;  // interpreter; empty: beside the binary, else python3 on PATH
  bool keep_caches = false;
  std::string source = "lines";
  bool timing = false;
  bool quiet = false;  // says nothing of a run that went well
  std::string backend;   // for compiles that name none; empty: torch's default
  std::string metadata;  // "seed", "full", empty: the back end's default
  bool restickify = false;  // the Spyre-format back end lays matrix operands out by operations of their own
  bool is_module = false;
  bool reference_model = false;  // run examples/reference_mlp.py; `program` is empty then
  std::string program;           // script path, or module with -m
  std::vector<std::string> arguments;

  // audit only
  std::string report = "provenance_audit.md";
  std::string raw = "provenance_capture_raw.json";
  std::string format = "md";  // of the report: md or json
  bool stamp = false;         // adds the Generated date
};

// What parsing gave: options, or an exit status with text that was asked for (--help) or explains a usage error.
struct ParsedRecord {
  std::optional<RecordOptions> options;
  int exit = 0;
  std::string text;  // to stdout when exit is 0, else to stderr
};

// `arguments`: what follows the verb. Everything after the program's name is the program's own.
ParsedRecord parse_record(const std::vector<std::string>& arguments);
ParsedRecord parse_audit(const std::vector<std::string>& arguments);

// The arguments of `python -m kerntrail record` that say the same.
std::vector<std::string> record_arguments(const RecordOptions& options);

}  // namespace kerntrail::cli
