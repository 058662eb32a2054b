// One open capture inside a Python process: the recorder, the live compiles, what each thread is compiling, and the
// guard under which every observer runs.
// Must not know: which hooks exist (probe.h) or how an object is read (observe_*.h).
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <chrono>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "graph_watch.h"
#include "hook.h"
#include "kerntrail/capture.h"
#include "model/ndjson_writer.h"
#include "model/recorder.h"
#include "pending.h"
#include "source_text.h"
#include "stages.h"
#include "tracing.h"

namespace kerntrail::probe {

namespace nb = nanobind;

// How much is watched: stage borders, every pass as differences, also the frame that made each node, also which node
// made each operation and line of each kernel.
enum class Level : std::uint8_t { kBorders, kPasses, kOrigins, kTruth };

struct SessionOptions {
  std::string path;
  bool replace = false;
  std::string source = "lines";  // none, lines, files
  bool timing = false;
  Level level = Level::kPasses;
  RunInfo run;
  FrameRules frames;
  std::vector<std::pair<std::string, std::string>> fail;  // tests: (hook label, "before" or "after")
};

// An observed value of a live object, reusable while the object (kept alive here) has the same parts.
struct CachedValue {
  nb::object object;
  std::uint64_t signature = 0;  // identities of a container's items; 0 for immutable objects
  Observation value;
};

// What a live object was read as: one object can be a node's target and another's original_aten.
enum ValueRole : std::size_t { kTarget, kArgs, kType, kTracked, kShared, kRoleCount };

// Names of a graph that later graphs refer to by (id(graph), name) in from_node.
struct NamedGraph {
  GraphId graph = GraphId::kNone;
  std::unordered_map<std::string, UnitId> by_name;
};

struct IrPasses;  // observe_ir_passes.h

// Nodes of a backward graph as the partitioner made it, by path of the graph and name: what each is a copy of. A lazy
// backward is compiled from a copy made outside any compile, which keeps order and names.
using BackwardNames = std::map<std::string, std::unordered_map<std::string, UnitId>>;

struct GraphPlace {
  std::string direction, path;
};


struct CompileState {
  CompileId id = CompileId::kNone;
  bool code_seen = false;      // code was generated in this process
  bool pre_grad_seen = false;  // its first stage was
  bool forward_seen = false, backward_seen = false;
  // A backward may still be compiled, long after the call of the back end.
  bool awaits_backward() const { return forward_seen && !backward_seen; }
  // Live objects; emptied when the backend's call returns, so that nothing outlives its compile.
  std::unordered_map<PyObject*, UnitId> units;
  std::unordered_map<PyObject*, GraphId> graphs;
  std::array<std::unordered_map<PyObject*, CachedValue>, kRoleCount> values;
  std::unordered_map<std::uint64_t, Observation> key_lists;  // by identities of metadata keys
  std::unordered_map<std::string, Observation> contents;     // of values that equal ones print alike, by what they hold
  std::vector<nb::object> keep;
  std::unordered_map<PyObject*, NodeBirth> births;                     // by node
  std::unordered_map<PyObject*, std::unique_ptr<GraphWatch>> watches;  // by graph
  std::unordered_map<GraphId, GraphPlace> places;                      // of FX graphs
  std::unordered_map<GraphId, std::string> last_border;                // what was last looked at, for names of gaps
  std::vector<std::pair<nb::object, nb::object>> loose_replacements;   // said outside any pass
  std::shared_ptr<IrPasses> ir_passes;
  // Plain data; kept for a lazy backward.
  std::unordered_map<std::int64_t, NamedGraph> named;  // by id(graph)
  BackwardNames backward;
  std::unordered_map<std::string, std::size_t> object_ids;       // id() texts met in data, by order
  std::map<std::string, std::uint64_t> referred_only;

  // Lets go of the live objects; of the plain data too, unless a lazy backward may still come.
  void release();
};

// What one thread is compiling right now, innermost last.
struct Frame {
  std::shared_ptr<CompileState> compile;
  std::string direction = "none";
  bool implicit = false;  // begun by a stage because the hook on the entry was missing, failed or went round
  std::shared_ptr<PendingGraph> pending;
};

// A pass that runs in a thread, innermost last.
struct PassScope {
  PyObject* owner = nullptr;  // closes it; compared by identity while its call lasts
  std::shared_ptr<CompileState> compile;
  nb::object graph;
  GraphId graph_id = GraphId::kNone;
  PassId id = PassId::kNone;
  PassKind kind = PassKind::kPass;
  std::string name, direction, path;
  std::size_t inner = 0;  // passes that ran within it
  std::chrono::steady_clock::time_point began;
  std::vector<std::pair<nb::object, nb::object>> replaced;  // old, new
  std::vector<model::ObservedUnit> transient;               // matched nodes that no look has shown
};

// What one thread does; kept in the session, so that it goes with it.
struct ThreadState {
  std::vector<Frame> frames;
  std::vector<PassScope> passes;
  std::vector<Note> pending_notes;  // wait for the compile that follows (reasons for falling back to stock Inductor)
};

// Shared: a call in flight in another thread keeps it while that call lasts.
class Session : public std::enable_shared_from_this<Session> {
 public:
  static Expected<std::shared_ptr<Session>> open(SessionOptions options);
  ~Session();

  // Installs every row of the hook table. Then writes their start records.
  void install_hooks();
  // Takes hooks away, writes sources, hook counters and the end record. Idempotent.
  void close();
  // In a forked child: forgets the file and makes every hook inert.
  void abandon();
  bool is_open() const { return open_; }

  Guard guard();

  model::Recorder& recorder() { return *recorder_; }
  const Tables& tables() const { return tables_; }
  const SessionOptions& options() const { return options_; }
  SourceTexts& sources() { return *sources_; }

  // Compiles.
  std::shared_ptr<CompileState> begin_compile(const Compile& compile);
  void remember_graph_id(std::int64_t aot_graph_id, const std::shared_ptr<CompileState>& compile);
  std::shared_ptr<CompileState> compile_of_graph_id(std::int64_t aot_graph_id) const;
  // Lets go of a compile whose objects were released, unless a lazy backward may still come.
  void forget_if_done(const CompileState& compile);
  std::vector<Frame>& frames();  // of the calling thread
  Frame* current_frame();        // nullptr outside any compile

  std::vector<Note>& pending_notes();  // of the calling thread
  std::vector<PassScope>& passes();    // of the calling thread
  std::string_view stage_key(StageId stage) const { return tables_.keys[index(stage)]; }

  void note(std::string_view code, Severity severity, std::string_view text, CompileId compile = CompileId::kNone);

  std::vector<std::shared_ptr<HookSite>>& sites() { return sites_; }
  std::uint64_t observer_ns() const { return *observer_ns_; }
  std::size_t compile_count() const { return compile_count_; }
  bool is_partial() const { return partial_; }
  const std::string& path() const { return options_.path; }

 private:
  explicit Session(SessionOptions options);
  void write_hooks(bool at_end);
  void write_unfinished();
  ThreadState& thread_state();
  void run_guarded(HookSite& site, const std::function<void()>& body);

  SessionOptions options_;
  std::unique_ptr<model::NdjsonWriter> writer_;
  std::unique_ptr<model::Recorder> recorder_;
  std::unique_ptr<SourceTexts> sources_;
  Tables tables_;
  std::vector<std::shared_ptr<HookSite>> sites_;
  std::map<std::int64_t, std::shared_ptr<CompileState>> by_graph_id_;  // ordered: notes come in the same order each run
  std::unordered_map<std::thread::id, ThreadState> threads_;
  std::recursive_mutex mutex_;
  std::shared_ptr<std::atomic<std::uint64_t>> observer_ns_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::size_t compile_count_ = 0;
  bool open_ = false;
  bool partial_ = false;
};

}  // namespace kerntrail::probe
