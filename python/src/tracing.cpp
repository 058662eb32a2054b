#include "tracing.h"

#include <frameobject.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/strings.h"
#include "graph_watch.h"
#include "python_text.h"
#include "session.h"

namespace kerntrail::probe {
namespace {

constexpr std::size_t kKeptFrames = 4;     // the responsible one and who called it
constexpr int kMaxDepth = 400;             // of a Python stack that is searched
constexpr int kMaxSteps = 64;              // of copies and interpretations that are followed back
constexpr int kMaxWrappers = 16;           // around a pass function

// Files that make nodes on behalf of others: no line in them says why a node exists. Below torch's own folder.
constexpr std::array<std::string_view, 19> kGeneric = {
    "fx/graph.py",       "fx/node.py",          "fx/proxy.py",           "fx/interpreter.py",
    "fx/_symbolic_trace.py", "fx/graph_module.py", "fx/traceback.py",   "fx/_lazy_graph_module.py",
    "fx/_compatibility.py",  "fx/experimental/proxy_tensor.py", "fx/passes/graph_transform_observer.py",
    "fx/subgraph_rewriter.py", "_inductor/pattern_matcher.py", "_compile.py", "_ops.py", "utils/_python_dispatch.py",
    "utils/_stats.py", "utils/_contextlib.py", "_dynamo/utils.py"};

// Whether a code object's file is one of the above; asked once a code object.
bool is_generic(PyCodeObject* code) {
  // Keeps the code, so that addresses name it. Never destroyed: at exit the interpreter goes first.
  static auto& known = *new std::unordered_map<PyObject*, std::pair<nb::object, bool>>;
  const auto found = known.find(reinterpret_cast<PyObject*>(code));
  if (found != known.end()) return found->second.second;
  bool generic = false;
  if (const auto file = str_view(code->co_filename)) generic = is_generic_file(*file);
  if (known.size() > 20000) known.clear();
  known.emplace(reinterpret_cast<PyObject*>(code),
                std::pair(nb::borrow(reinterpret_cast<PyObject*>(code)), generic));
  return generic;
}

LocId code_loc(Session& session, nb::handle code, std::int64_t line) {
  const auto file = text(attribute(code, "co_filename"));
  if (!file) return LocId::kNone;
  Loc loc;
  loc.kind = LocKind::kRange;
  loc.text = session.recorder().text(compiler_path(session, *file));
  loc.function = session.recorder().text(text(attribute(code, "co_name")).value_or(""));
  loc.line = line;
  std::tie(loc.frame_class, loc.rule) = classify_frame(*file, session.options().frames);
  return session.recorder().loc(loc);
}

nb::object unwrapped(nb::handle callable) {
  nb::object at = nb::borrow(callable);
  for (int i = 0; i < kMaxWrappers && at.is_valid(); ++i) {
    nb::object inner;
    for (const char* name : {"func", "__func__", "__wrapped__"}) {
      inner = attribute(at, name);
      if (is_valid(inner) && PyCallable_Check(inner.ptr())) break;
      inner = nb::object();
    }
    if (!inner.is_valid()) {
      if (attribute(at, "__code__").is_valid()) return at;
      inner = attribute(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(at.ptr()))), "__call__");
      if (!inner.is_valid() || !attribute(inner, "__code__").is_valid()) return {};
      return inner;
    }
    at = inner;
  }
  return at;
}

// The value of a variable that a function closes over.
nb::object closed_over(nb::handle function, std::string_view wanted) {
  const nb::object names = attribute(attribute(function, "__code__"), "co_freevars");
  const nb::object cells = attribute(function, "__closure__");
  if (!names.is_valid() || !cells.is_valid() || !PyTuple_Check(names.ptr()) || !PyTuple_Check(cells.ptr())) return {};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.ptr()) && i < PyTuple_GET_SIZE(cells.ptr()); ++i) {
    if (str_view(PyTuple_GET_ITEM(names.ptr(), i)) == wanted)
      return attribute(PyTuple_GET_ITEM(cells.ptr(), i), "cell_contents");
  }
  return {};
}

}  // namespace

std::vector<FrameRef> frames_here() {
  std::vector<FrameRef> out;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  for (int depth = 0; frame != nullptr && depth < kMaxDepth && out.size() < kKeptFrames; ++depth) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    if (!is_generic(code)) out.push_back({nb::borrow(reinterpret_cast<PyObject*>(code)), PyFrame_GetLineNumber(frame)});
    Py_DECREF(code);
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  return out;
}

std::string compiler_path(Session& session, std::string_view file) {
  const FrameRules& rules = session.options().frames;
  for (const std::string& root : rules.torch) {
    if (!root.empty() && file.starts_with(root)) return "torch/" + std::string(file.substr(root.size()));
  }
  for (const std::string& root : rules.packages) {
    if (root.empty() || !file.starts_with(root)) continue;
    // Our own back end is a package within one: it is named whole, wherever it lies.
    constexpr std::string_view kBackEnd = "kerntrail/spyre/";
    return (root.ends_with(kBackEnd) ? std::string(kBackEnd) : std::string()) + std::string(file.substr(root.size()));
  }
  return session.sources().shown_path(file);
}

bool is_generic_file(std::string_view path) {
  const std::size_t torch = path.rfind("/torch/");
  const std::string_view inside = torch == std::string_view::npos ? std::string_view() : path.substr(torch + 7);
  return path.starts_with('<') || std::find(kGeneric.begin(), kGeneric.end(), inside) != kGeneric.end();
}

Tracing& tracing() {
  thread_local Tracing mine;
  return mine;
}

UnitId unit_behind(const CompileState& compile, PyObject* node) {
  for (int step = 0; node != nullptr && step < kMaxSteps; ++step) {
    if (const auto unit = compile.units.find(node); unit != compile.units.end()) return unit->second;
    const auto birth = compile.births.find(node);
    if (birth == compile.births.end()) break;
    node = birth->second.source.ptr();
  }
  return UnitId::kNone;
}

MatchContext* note_creation(nb::handle graph, nb::handle node, bool all_frames) {
  Tracing& here = tracing();
  if (!here.compile || here.quiet || !node.is_valid() || node.is_none()) return nullptr;
  CompileState& compile = *here.compile;
  PyObject* source = nullptr;
  bool is_copy = false;
  if (!here.copied.empty()) {
    source = here.copied.back();
    is_copy = true;
  } else {
    // Patterns and subclasses interpret graphs of their own inside: the innermost node that leads to a unit counts.
    for (auto it = here.interpreted.rbegin(); it != here.interpreted.rend() && source == nullptr; ++it) {
      if (has(unit_behind(compile, *it))) source = *it;
    }
  }
  if (is_copy && !has(unit_behind(compile, source))) source = nullptr;
  const bool watched = compile.watches.contains(graph.ptr());
  if (!watched && source == nullptr && !all_frames) return nullptr;
  NodeBirth birth;
  birth.node = nb::borrow(node);
  if (source != nullptr) birth.source = nb::borrow(source);
  birth.is_copy = is_copy && source != nullptr;
  if (watched && !here.matches.empty()) birth.match = here.matches.back();
  if (watched || all_frames) birth.frames = frames_here();
  MatchContext* open = birth.match && !birth.match->resolved ? birth.match.get() : nullptr;
  compile.births.insert_or_assign(node.ptr(), std::move(birth));
  return open;
}

std::string name_in_slot(nb::handle callable) {
  nb::object at = nb::borrow(callable);
  for (int i = 0; i < kMaxWrappers && at.is_valid(); ++i) {  // partials are torch's way to bind arguments
    nb::object inner = attribute(at, "func");
    if (!is_valid(inner) || !PyCallable_Check(inner.ptr())) break;
    at = std::move(inner);
  }
  if (!is_valid(at)) return {};
  nb::object name = attribute(at, "__qualname__");
  if (!str_view(name)) name = attribute(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(at.ptr()))), "__qualname__");
  const std::string_view full = str_view(name).value_or("");
  const nb::object module = attribute(at, "__module__");
  if (str_view(module).value_or("").starts_with("torch.")) return {};
  constexpr std::string_view kLocals = "<locals>.";
  const std::size_t inside = full.rfind(kLocals);
  return std::string(inside == std::string_view::npos ? full : full.substr(inside + kLocals.size()));
}

LocId definition_of(Session& session, nb::handle callable) {
  if (!is_valid(callable)) return LocId::kNone;
  const nb::object code = attribute(unwrapped(callable), "__code__");
  return code.is_valid() ? code_loc(session, code, integer(attribute(code, "co_firstlineno"), 0)) : LocId::kNone;
}

void describe_pattern(Session& session, MatchContext& match) {
  const nb::object named = attribute(match.entry, "pattern_name");
  if (is_valid(named)) match.pattern = text(named).value_or("");
  nb::object writer = attribute(match.entry, "handler");
  if (!is_valid(writer)) {  // a traced replacement: its functions are closed over by its check
    const nb::object check = attribute(match.entry, "extra_check");
    writer = closed_over(check, "replace_fn");
    if (match.pattern.empty()) {
      match.pattern = text(attribute(unwrapped(closed_over(check, "search_fn")), "__name__")).value_or("");
    }
  }
  const nb::object function = is_valid(writer) ? unwrapped(writer) : nb::object();
  if (match.pattern.empty() && function.is_valid())
    match.pattern = text(attribute(function, "__qualname__")).value_or("");
  if (match.pattern.empty()) match.pattern = std::string(python_type_name(match.entry));
  match.pattern_loc = definition_of(session, writer);
}

LocId chain_of(Session& session, const std::vector<FrameRef>& frames) {
  LocId chain = LocId::kNone;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const LocId here = code_loc(session, frame->code, frame->line);
    if (!has(here)) continue;
    if (!has(chain)) {
      chain = here;
      continue;
    }
    Loc call;
    call.kind = LocKind::kCall;
    call.child = here;
    call.caller = chain;
    chain = session.recorder().loc(call);
  }
  return chain;
}

}  // namespace kerntrail::probe
