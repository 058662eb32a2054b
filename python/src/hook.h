// One hook: a callable put in place of a Python attribute. It calls the original with the same arguments, returns its
// result untouched, lets an observer look before and after, and can be taken away again by identity.
// An own type, not a bound function: torch wraps some of its targets (functools.wraps, inspect.signature), so every
// attribute read is forwarded to the original.
// Must not know: what is observed.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kerntrail/capture.h"

namespace kerntrail::probe {

namespace nb = nanobind;

// One call of a hooked function. `result` is invalid before the call, and after it when the original raised.
struct HookSite;

struct Call {
  nb::handle args;    // tuple; args[0] is self for methods
  nb::handle kwargs;  // dict or invalid
  nb::handle result;
  bool raised = false;
  std::string error;  // "ValueError: text" when raised
  std::shared_ptr<void> state;  // what `before` leaves for `after`
  std::size_t token = 0;        // the same for light hooks, which must not allocate
  HookSite* site = nullptr;

  nb::handle arg(std::size_t i, const char* name) const;
};

using Observer = std::function<void(Call&)>;

// Runs an observer's body: takes the session's lock, measures time, swallows and counts every error.
using Guard = std::function<void(HookSite&, const std::function<void()>&)>;

// The state of one installed hook; shared by the table and the callable, which may outlive the session.
struct HookSite {
  HookRecord record;
  Observer before;  // may be empty
  Observer after;   // may be empty
  Guard guard;
  bool active = false;
  // Nanoseconds spent inside observers; light ones add to it themselves.
  std::shared_ptr<std::atomic<std::uint64_t>> clock;
  std::uint64_t spent_ns = 0;  // of the clock above, in this hook's own observers
  bool light = false;  // runs on every FX node: without lock and clock, and it may only touch its own thread's state
  bool fail_before = false;  // tests: the observer throws on purpose
  bool fail_after = false;
  nb::object owner;     // module or class
  std::string name;     // attribute in the owner
  nb::object original;  // the raw object of owner.__dict__, staticmethod wrappers included
  nb::object callable;  // what was put there
};

// Registers the hook type with the extension module; once, at import.
void bind_hook_type(nb::module_& module);
// Puts a hook in place of owner.name. False (site.record.detail says why) where the attribute is missing.
bool install(const std::shared_ptr<HookSite>& site);
// Puts the original back if ours is still on top; a stale hook keeps passing calls through. False where it was not.
bool uninstall(HookSite& site);

}  // namespace kerntrail::probe
