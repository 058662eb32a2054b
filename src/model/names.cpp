// Spellings of all enumerations of the capture, one table each: the file, the exports and the messages use these.
#include <algorithm>
#include <array>

#include "kerntrail/capture.h"
#include "model/records.h"

namespace kerntrail {
namespace {

template <std::size_t N>
using Names = std::array<std::string_view, N>;

constexpr Names<10> kValueTypes = {"text",    "stack",        "ref",    "refs", "op",
                                   "modules", "node_sources", "handle", "loc",  "json"};
constexpr Names<4> kStates = {"present", "empty", "no_slot", "unreadable"};
constexpr Names<3> kHookStates = {"installed", "absent", "failed"};
constexpr Names<5> kLocKinds = {"range", "call", "fused", "named", "opaque"};
constexpr Names<5> kFrameClasses = {"unknown", "user", "library", "compiler", "generated"};
constexpr Names<6> kFrameRules = {"none", "torch_path", "site_packages", "standard_library", "not_a_file", "elsewhere"};
constexpr Names<8> kUnitKinds = {"fx_node", "operation",   "group",       "op_spec",
                                 "kernel",  "kernel_call", "bundle_file", "other"};
constexpr std::string_view kUnitLetters = "nospklfu";
constexpr Names<3> kPassKinds = {"pass", "stage", "gap"};
constexpr Names<3> kSeverities = {"info", "warning", "error"};
constexpr Names<model::kRecordKinds> kRecords = {"run",     "stage", "attr_kind", "hook",   "text",     "loc",
                                                 "compile", "graph", "unit",      "attr",   "snapshot", "pass",    "birth",
                                                 "link",
                                                 "claim",   "note",  "volatile",  "source", "end"};

template <std::size_t N, class E>
std::string_view name_in(const Names<N>& names, E v) {
  const auto i = static_cast<std::size_t>(v);
  return i < N ? names[i] : std::string_view("unknown");
}

template <class E, std::size_t N>
std::optional<E> value_in(const Names<N>& names, std::string_view name) {
  const auto* found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<E>(found - names.begin());
}

}  // namespace

std::string_view value_type_name(ValueType v) { return name_in(kValueTypes, v); }
std::optional<ValueType> value_type_from_name(std::string_view n) { return value_in<ValueType>(kValueTypes, n); }
std::string_view state_name(State v) { return name_in(kStates, v); }
std::optional<State> state_from_name(std::string_view n) { return value_in<State>(kStates, n); }
std::string_view hook_state_name(HookState v) { return name_in(kHookStates, v); }
std::optional<HookState> hook_state_from_name(std::string_view n) { return value_in<HookState>(kHookStates, n); }
std::string_view loc_kind_name(LocKind v) { return name_in(kLocKinds, v); }
std::optional<LocKind> loc_kind_from_name(std::string_view n) { return value_in<LocKind>(kLocKinds, n); }
std::string_view frame_class_name(FrameClass v) { return name_in(kFrameClasses, v); }
std::optional<FrameClass> frame_class_from_name(std::string_view n) { return value_in<FrameClass>(kFrameClasses, n); }
std::string_view frame_rule_name(FrameRule v) { return name_in(kFrameRules, v); }
std::optional<FrameRule> frame_rule_from_name(std::string_view n) { return value_in<FrameRule>(kFrameRules, n); }
std::string_view unit_kind_name(UnitKind v) { return name_in(kUnitKinds, v); }
std::optional<UnitKind> unit_kind_from_name(std::string_view n) { return value_in<UnitKind>(kUnitKinds, n); }
std::string_view pass_kind_name(PassKind v) { return name_in(kPassKinds, v); }
std::optional<PassKind> pass_kind_from_name(std::string_view n) { return value_in<PassKind>(kPassKinds, n); }
std::string_view severity_name(Severity v) { return name_in(kSeverities, v); }
std::optional<Severity> severity_from_name(std::string_view n) { return value_in<Severity>(kSeverities, n); }

char unit_kind_letter(UnitKind v) {
  const auto i = static_cast<std::size_t>(v);
  return i < kUnitLetters.size() ? kUnitLetters[i] : 'u';
}

namespace model {

std::string_view record_kind_name(RecordKind kind) { return name_in(kRecords, kind); }
std::optional<RecordKind> record_kind_from_name(std::string_view n) { return value_in<RecordKind>(kRecords, n); }

std::map<std::string, std::uint64_t> RecordCounts::by_name() const {
  std::map<std::string, std::uint64_t> out;
  for (std::size_t i = 0; i < kRecordKinds; ++i) {
    if (counts_[i] != 0) out.emplace(kRecords[i], counts_[i]);
  }
  return out;
}

}  // namespace model
}  // namespace kerntrail
