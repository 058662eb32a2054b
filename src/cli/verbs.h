// The table of verbs: a row and a file each. main and the tests go through run_command().
// Must not know: what a verb does.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace kerntrail::cli {

// Results go to `out`, talk to `err`.
struct Streams {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
};

using Run = int (*)(const std::vector<std::string>& arguments, Streams& streams);

struct Verb {
  std::string_view name;
  std::string_view summary;  // one line of `kerntrail --help`
  Run run;
};

int run_report(const std::vector<std::string>& arguments, Streams& streams);
int run_matrix(const std::vector<std::string>& arguments, Streams& streams);
int run_lineage(const std::vector<std::string>& arguments, Streams& streams);
int run_drops(const std::vector<std::string>& arguments, Streams& streams);
int run_diff(const std::vector<std::string>& arguments, Streams& streams);
int run_verify(const std::vector<std::string>& arguments, Streams& streams);
int run_analyse(const std::vector<std::string>& arguments, Streams& streams);
int run_explain(const std::vector<std::string>& arguments, Streams& streams);
int run_rules(const std::vector<std::string>& arguments, Streams& streams);
int run_gate(const std::vector<std::string>& arguments, Streams& streams);
int run_emit(const std::vector<std::string>& arguments, Streams& streams);
int run_export(const std::vector<std::string>& arguments, Streams& streams);
int run_info(const std::vector<std::string>& arguments, Streams& streams);
int run_selftest(const std::vector<std::string>& arguments, Streams& streams);
int run_sidecar(const std::vector<std::string>& arguments, Streams& streams);
int run_validate(const std::vector<std::string>& arguments, Streams& streams);

// In the order of `kerntrail --help`.
const std::vector<Verb>& verbs();

// `arguments` without the program's name. Never throws.
int run_command(const std::vector<std::string>& arguments, Streams& streams);

}  // namespace kerntrail::cli
