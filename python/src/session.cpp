#include "session.h"

#include <fmt/format.h>

#include <ctime>

#include "base/strings.h"
#include "probe.h"
#include "python_text.h"

namespace kerntrail::probe {
namespace {

// Whether an observer is running in this thread: an observer's own calls are not observed.
thread_local bool observing = false;

// Takes the mutex without holding Python's lock while waiting: the holder may need it to finish.
class SessionLock {
 public:
  explicit SessionLock(std::recursive_mutex& mutex) : mutex_(mutex) {
    if (mutex_.try_lock()) return;
    nb::gil_scoped_release release;
    mutex_.lock();
  }
  ~SessionLock() { mutex_.unlock(); }
  SessionLock(const SessionLock&) = delete;
  SessionLock& operator=(const SessionLock&) = delete;

 private:
  std::recursive_mutex& mutex_;
};

// CPU time of this thread: what other programs on a busy machine take meanwhile is not ours.
std::uint64_t thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

// The line that says what went wrong, without the traceback above it.
std::string last_line(std::string_view text) {
  std::string_view out;
  for (const std::string_view line : base::split_lines(text)) {
    if (!base::trim(line).empty()) out = base::trim(line);
  }
  return base::without_addresses(out);
}

}  // namespace

void CompileState::release() {
  births.clear();
  watches.clear();
  places.clear();
  last_border.clear();
  loose_replacements.clear();
  units.clear();
  graphs.clear();
  for (auto& role : values) role.clear();
  key_lists.clear();
  contents.clear();
  keep.clear();
  ir_passes.reset();
  if (awaits_backward()) return;
  named = {};
  backward = {};
  object_ids = {};
}

Session::Session(SessionOptions options) : options_(std::move(options)) {}

Session::~Session() {
  for (const auto& site : sites_) site->active = false;
}

Expected<std::shared_ptr<Session>> Session::open(SessionOptions options) {
  std::shared_ptr<Session> session(new Session(std::move(options)));
  KERNTRAIL_TRY(session->writer_, model::NdjsonWriter::open(session->options_.path, session->options_.replace));
  session->recorder_ = std::make_unique<model::Recorder>(*session->writer_);
  session->recorder_->run(session->options_.run);
  session->tables_ = Tables::declare(*session->recorder_);
  session->sources_ = std::make_unique<SourceTexts>(*session->recorder_, session->options_.frames);
  session->open_ = true;
  return session;
}

Guard Session::guard() {
  return [weak = weak_from_this()](HookSite& site, const std::function<void()>& body) {
    if (const auto session = weak.lock()) session->run_guarded(site, body);
  };
}

void Session::run_guarded(HookSite& site, const std::function<void()>& body) {
  if (observing || !open_) return;
  observing = true;
  const std::uint64_t start = thread_cpu_ns();
  {
    const SessionLock lock(mutex_);
    std::string error;
    try {
      if (open_) body();  // it may have been closed while this thread waited
    } catch (nb::python_error& e) {
      if (e.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();  // meant for the program: raised again there
      error = last_line(e.what());
    } catch (const std::exception& e) {
      error = e.what();
    } catch (...) {
      error = "unknown error";
    }
    if (PyErr_Occurred()) {
      if (error.empty()) error = "an observer left a Python error behind";
      clear_error();
    }
    if (!error.empty()) {
      ++site.record.errors;
      site.record.last_error = error;
      partial_ = true;
      recorder_->force_full();
    }
    if (writer_) writer_->settle();
  }
  const std::uint64_t spent = thread_cpu_ns() - start;
  *observer_ns_ += spent;
  site.spent_ns += spent;
  observing = false;
}

void Session::install_hooks() {
  for (const auto& site : make_hook_table(*this)) {
    for (const auto& [label, when] : options_.fail) {
      if (label == site->record.label) (when == "after" ? site->fail_after : site->fail_before) = true;
    }
    site->guard = guard();
    site->clock = observer_ns_;
    if (site->owner.is_valid() && install(site)) {
      site->record.state = HookState::kInstalled;
    } else {
      site->record.state =
          site->record.detail == "not found" || !site->owner.is_valid() ? HookState::kAbsent : HookState::kFailed;
      if (site->record.detail.empty()) site->record.detail = "not found";
    }
    sites_.push_back(site);
  }
  write_hooks(false);
}

void Session::write_hooks(bool at_end) {
  for (const auto& site : sites_) recorder_->hook(site->record, at_end);
}

std::shared_ptr<CompileState> Session::begin_compile(const Compile& compile) {
  auto state = std::make_shared<CompileState>();
  state->id = recorder_->compile(compile);
  ++compile_count_;
  return state;
}

void Session::remember_graph_id(std::int64_t aot_graph_id, const std::shared_ptr<CompileState>& compile) {
  by_graph_id_[aot_graph_id] = compile;
}

void Session::forget_if_done(const CompileState& compile) {
  if (compile.awaits_backward()) return;
  std::erase_if(by_graph_id_, [&](const auto& entry) { return entry.second.get() == &compile; });
}

std::shared_ptr<CompileState> Session::compile_of_graph_id(std::int64_t aot_graph_id) const {
  const auto it = by_graph_id_.find(aot_graph_id);
  return it == by_graph_id_.end() ? nullptr : it->second;
}

ThreadState& Session::thread_state() { return threads_[std::this_thread::get_id()]; }

std::vector<Frame>& Session::frames() { return thread_state().frames; }

Frame* Session::current_frame() {
  auto& stack = frames();
  return stack.empty() ? nullptr : &stack.back();
}

std::vector<PassScope>& Session::passes() { return thread_state().passes; }

std::vector<Note>& Session::pending_notes() { return thread_state().pending_notes; }

void Session::note(std::string_view code, Severity severity, std::string_view text, CompileId compile) {
  recorder_->note({std::string(code), severity, std::string(text), compile, GraphId::kNone});
}

// What can be said only at the end: compiles that other threads are still in, backwards that were never seen.
void Session::write_unfinished() {
  std::map<CompileId, std::shared_ptr<CompileState>> running;  // in the order they began
  for (auto& [id, thread] : threads_) {
    for (const Frame& frame : thread.frames) {
      if (!frame.implicit) running.emplace(frame.compile->id, frame.compile);
      frame.compile->release();
    }
  }
  threads_.clear();
  for (const auto& [id, state] : running) {
    partial_ = true;
    note("compile-not-finished", Severity::kWarning,
         "the capture ended while this was still being compiled in another thread: later stages are missing", id);
  }
  for (const auto& [id, state] : by_graph_id_) {
    if (state->forward_seen && !state->backward_seen) {
      note("backward-not-observed", Severity::kInfo,
           "the forward of a training graph was captured, its backward was not: it is compiled when backward() first "
           "runs, which was never, or after the capture had ended, or (compiled autograd) as part of another compile",
           state->id);
    }
  }
  if (compile_count_ == 0) {
    note("no-compile", Severity::kWarning,
         "the program compiled nothing: no call of torch.compile reached a backend that Inductor serves");
  }
}

void Session::close() {
  if (!open_) return;
  const SessionLock lock(mutex_);
  bool restored = true;
  for (auto it = sites_.rbegin(); it != sites_.rend(); ++it) {
    HookSite& site = **it;
    if (site.record.state == HookState::kInstalled) site.record.restored = uninstall(site);
    restored = restored && site.record.restored;
    partial_ = partial_ || site.record.state == HookState::kFailed ||
               (site.record.state == HookState::kAbsent && !site.record.lost.empty());
  }
  if (!restored)
    note("hook-not-on-top", Severity::kWarning,
         "another tool patched an attribute over one of our hooks; ours stays below it and passes calls through");
  write_unfinished();
  sources_->write(options_.source);
  if (options_.timing) recorder_->volatile_value("run", "observer_ns", std::to_string(observer_ns_->load()));
  write_hooks(true);
  recorder_->end(!partial_);
  if (const Error* error = writer_->error()) {
    partial_ = true;
    nb::gil_scoped_acquire gil;
    PySys_WriteStderr("kerntrail: %s\n", error->text().c_str());
  }
  writer_->close();
  by_graph_id_.clear();
  open_ = false;
}

void Session::abandon() {
  for (const auto& site : sites_) site->active = false;
  open_ = false;
  writer_->abandon();
}

}  // namespace kerntrail::probe
