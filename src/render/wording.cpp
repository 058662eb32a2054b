#include "render/wording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "base/strings.h"
#include "render/text.h"

namespace kerntrail::render {
namespace {

using Row = std::pair<std::string_view, std::string_view>;

constexpr std::array kFields{
    Row{"stack_trace", "the user's file and line"},
    Row{"nn_module_stack", "the modules that were being called"},
    Row{"source_fn_stack", "the function or module class that was traced"},
    Row{"original_aten", "the ATen op that the node stands for"},
    Row{"from_node", "the earlier nodes it was made from, pass by pass"},
    Row{"origins", "all FX nodes that the buffer was lowered from"},
    Row{"origin_node", "the one FX node that represents the buffer, where there is one"},
    Row{"traceback", "where in the compiler the IR node was created"},
    Row{"get_stack_traces", "user lines, read through the origins"},
    Row{"debug_handle", "the record that leads a device op back to source: id, source, aten_op, ir_chain, fused_from"},
};

constexpr std::array kStages{
    Row{"fx_pre_grad",
        "The graph that Dynamo traced, as it enters the pre-grad passes; every node was made from a line of Python."},
    Row{"fx_joint", "The graph after tracing to ATen ops, as it enters the joint passes."},
    Row{"fx_aten",
        "The ATen graph as it enters the post-grad passes: what is missing below but present here was lost in those "
        "passes."},
    Row{"fx_post_grad",
        "The ATen graph as it leaves the post-grad passes. Nodes that a rewrite made keep only the metadata that the "
        "rewrite copied."},
    Row{"ir_pre_pass",
        "Each group of FX nodes was lowered to a buffer; this is the IR as it comes out of lowering, before any pass "
        "over it."},
    Row{"ir_post_pass", "The same buffers after the pre-scheduling passes changed them in place."},
    Row{"schedule",
        "What the scheduler made of the operations: each group becomes (part of) a kernel. A removed buffer needs no "
        "memory, since all that reads it is in the same kernel."},
    Row{"op_spec",
        "One device op a scheduled buffer. `origins` and `origin_node` are read from that buffer and are no slots of "
        "the OpSpec; the "
        "`debug_handle` is its own."},
    Row{"superdsc",
        "Each OpSpec is written to a file of its kernel's bundle, with the handle under the key `debug_handle_`."},
    Row{"kernel", "What the back end finally calls, with the FX nodes that the compiler says it was made from."},
};

template <std::size_t N>
std::string_view find(const std::array<Row, N>& rows, std::string_view key) {
  for (const auto& [name, words] : rows) {
    if (name == key) return words;
  }
  return {};
}

}  // namespace

std::string_view field_meaning(std::string_view field) { return find(kFields, field); }
std::string_view stage_sentence(std::string_view key) { return find(kStages, key); }

std::vector<NoteGroup> merged_notes(const std::vector<Note>& notes) {
  std::vector<NoteGroup> groups;
  std::map<std::tuple<std::string_view, Severity, std::string_view>, std::size_t> known;
  for (const Note& note : notes) {
    const auto [place, fresh] = known.try_emplace({note.code, note.severity, note.text}, groups.size());
    if (fresh) {
      groups.push_back({&note, 1, {}});
    } else {
      ++groups[place->second].times;
    }
    auto& compiles = groups[place->second].compiles;
    if (has(note.compile) && std::find(compiles.begin(), compiles.end(), note.compile) == compiles.end())
      compiles.push_back(note.compile);
  }
  return groups;
}

std::string compiles_text(const std::vector<CompileId>& compiles) {
  constexpr std::size_t kNamed = 5;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < compiles.size() && i < kNamed; ++i) parts.push_back(compile_name(compiles[i]));
  std::string out = base::join(parts, ", ");
  if (compiles.size() > kNamed) out += fmt::format(" and {} more", compiles.size() - kNamed);
  return out;
}

std::string tracked_fields(const std::vector<std::string>& fields) {
  std::vector<std::string> parts;
  for (const std::string& field : fields) {
    const std::string_view meaning = field_meaning(field);
    parts.push_back(md_code(field) + (meaning.empty() ? std::string() : " (" + std::string(meaning) + ")"));
  }
  return base::join(parts, ", ");
}

std::string state_text(const CaptureState& state) {
  std::string out;
  if (state.torn)
    out += fmt::format(
        "**The capture is torn:** it has no end record; what follows is of what was written before it "
        "broke off{}.\n\n",
        state.torn_note.empty() ? std::string() : " (" + md_text(state.torn_note) + ")");
  if (state.partial)
    out += "**The capture is partial:** something was lost while it was made; `kerntrail info` says what.\n\n";
  return out;
}

std::string place_code(std::string_view place) {
  constexpr std::string_view kMarker = "/site-packages/";
  const std::size_t at = place.rfind(kMarker);
  return md_code(at == std::string_view::npos ? place : place.substr(at + kMarker.size()));
}

}  // namespace kerntrail::render
