#include "analyse/rules.h"

#include <array>

namespace kerntrail::analyse {
namespace {

constexpr std::array kAxes{
    Axis{"reason", "Why a field is absent",
         "One a field and unit where the slot is empty or there is none; they sum to the absent."},
    Axis{"quality", "How good a present value is",
         "One a field and unit where the slot holds something; they sum to the present. A unit that has its value from "
         "units whose value is marked, and from no other, counts as they do; the finding is told once, of the unit where "
         "it came about."},
    Axis{"fate", "What became of a unit",
         "One a unit that entered an interval (a pass, or from one stage to the next); they sum to those."},
    Axis{"observer", "Rules for passes over IR",
         "Checked on every operation that a pass made, changed or took away; each broken rule is reported, several a "
         "pass and operation."},
    Axis{"witness", "What a unit does for a node or line",
         "One a claim of `kerntrail verify`, and one a node or line that the unit works for without anybody saying so "
         "(missed). The strongest that holds, strongest first here."},
    Axis{"evidence", "What an edge of the lineage rests on",
         "One an edge. `kerntrail lineage` writes [word] behind a unit where the edge to it was only claimed or "
         "derived, "
         "or is ambiguous; all other edges go without a tag. Where nothing was witnessed, all that the compiler says of "
         "its operations goes without one too. `--format json` has the word and its strength for every "
         "edge, strongest first here."},
    Axis{"gate", "What stops a merge",
         "Findings of `kerntrail gate` beside the losses above. Those that say that something is missing, torn, partial "
         "or was not observed can't be allowed."},
};

constexpr std::array kRules{
    Rule{"reason", "not_created_yet", "The field comes to exist at a later stage.",
         "`origins` on an FX node: only lowering makes them.", "Nothing."},
    Rule{"reason", "carried_by", "The slot is empty, but another field of this very unit contains it.",
         "`stack_trace` of an IR operation: its `origins` lead to FX nodes that have one.",
         "Nothing, as long as the carrier stays; read it through the carrier."},
    Rule{"reason", "dropped",
         "The unit had the field at an earlier look, or a unit that it was made from had it, and it is gone.",
         "A pattern replaces nineteen nodes by one attention call and copies no `stack_trace` to it.",
         "Copy the metadata where the report points: in the function that writes the replacement, or at the line that "
         "makes the node."},
    Rule{"reason", "inherited_gap", "It was made from other units, and none of them had the field.",
         "A permute made of an mm that had lost its `stack_trace` in an earlier pass.",
         "Follow its root: the report names the loss that it comes from, or says that the field was never made."},
    Rule{"reason", "never_made", "Nothing before could have had the field, and nothing made it.",
         "`nn_module_stack` of a function called outside any module.",
         "Nothing in the passes: only the stage that makes the field could fill it."},
    Rule{"reason", "orphan", "Nothing links the unit to a source: not a match, not a replacement, not its users.",
         "A copy that a pass inserts, with empty metadata.",
         "Make the pass say what the unit stands for, or declare it as synthesised if it stands for nothing."},
    Rule{"reason", "synthesised",
         "An intent declares that this pass makes such units, or changes this field, on purpose.",
         "A restickify, which belongs to no operation of the model.",
         "Nothing. The intent's reason is shown; check that it still holds."},
    Rule{"reason", "unknown",
         "Nothing was recorded that could tell: no source is known, or it is only guessed from an equal line or from the "
         "nodes around it, which is no evidence; or the capture breaks off in that stage, and its links may be missing.",
         "A node that a pass made, in a capture of level `borders`; the last stage of a killed recording; a node without births and links, in a capture whose "
         "first stage comes after the one that makes the field.",
         "Record again with passes, from the first stage on."},
    Rule{"quality", "kept", "The value says what the sources of the unit said.", "A node copied with its metadata.",
         "Nothing."},
    Rule{"quality", "collapsed",
         "The unit was made from sources that say different things, and carries only part of them.",
         "mm on line 12 and add on line 13 become one addmm that has line 13 only.",
         "Keep all of them, as `from_node` and `origins` can, or accept that one line stands for several."},
    Rule{"quality", "overwritten",
         "A pass changed the value in place to that of another source, or a new unit has a value that none of its "
         "sources had: present, and wrong.",
         "A no-op is removed, and its metadata is written over that of the node that stays.",
         "Do not copy metadata onto a node that stays; the report names the pass, and whose value it has now, "
         "`kerntrail debugify` the line that writes."},
    Rule{"quality", "vacuous", "A chain is there, but it reaches no node of the traced graph that has a line.",
         "`from_node` that names a placeholder without a name, or nodes of a temporary trace.",
         "Do not count it as provenance; make the pass link to the nodes it replaced."},
    Rule{"quality", "compiler_made",
         "The value is the compiler's own: a stack without a frame of the user's, an operator that names itself.",
         "A node made while a pattern was traced: the pass's frames as `stack_trace`, its own target as "
         "`original_aten`.",
         "Keep the stack and the operators of the nodes it stands for."},
    Rule{"quality", "conflict", "Two fields of the unit name different user lines, and neither is known to be overwritten or collapsed: where one "
         "is, that is the finding.",
         "`stack_trace` says line 12, the root of `from_node` is on line 14.",
         "One of them is wrong: look at the passes that changed the unit, recorded with passes."},
    Rule{"fate", "survived", "The unit is there at the end of the interval.", "A node that no pass touched.",
         "Nothing."},
    Rule{"fate", "replaced", "A unit made in its place took over its uses, or stands for all that a pattern matched.",
         "addmm, split into mm and add.", "Compare what the new unit carries: its losses are charged to the pass."},
    Rule{"fate", "merged", "A unit that was already there took over its uses.", "The second of two equal constants.",
         "The survivor should name both sources; else one line disappears."},
    Rule{"fate", "elided", "Its uses went to one of its own inputs: it did nothing.", "x + 0.",
         "Nothing, if the input keeps its own provenance."},
    Rule{"fate", "folded", "A constant took over its uses.", "An op on parameters, computed while freezing.",
         "The constant should name what it was computed from."},
    Rule{"fate", "dead",
         "It was erased, and nothing took over its uses or was made of it; or nothing read it and it did not go on.",
         "A value that nobody reads.", "Nothing."},
    Rule{"fate", "unseen",
         "It was not erased and something read it, but nothing that was seen was made of it: it went where nobody "
         "watched, or was read through by what used it.",
         "A node that only the backward needs, where the backward was not captured (note `backward-not-observed`); a "
         "getitem that tracing unpacks.",
         "Run the backward within the capture; of a getitem, nothing."},
    Rule{"evidence", "identity", "It is the same object, seen at both stages. Exact.",
         "A buffer before and after the passes that change it in place.", "Nothing."},
    Rule{"evidence", "link", "The two sides of one call that was watched. Exact.",
         "A buffer and the device operation that was made for it.", "Nothing."},
    Rule{"evidence", "witness",
         "The unit was seen working for the node: while its code was traced and written, that node's closure was the "
         "innermost one running. Exact.",
         "A buffer and the relu that one of its operations is for.",
         "Nothing. What the compiler claims against it is listed below the lineage, not drawn."},
    Rule{"evidence", "bundle-order",
         "Its place in the bundle of its kernel. Exact; ambiguous where its handle disagrees.",
         "File sdsc_2 is the third operation of its kernel.", "Where it is ambiguous: compare the handle in the file."},
    Rule{"evidence", "stack-trace", "The unit's own stack trace names the source line. Recorded.",
         "A traced node and the line that called it.", "Nothing."},
    Rule{"evidence", "from-node", "The node's own `from_node` chain names the earlier node. Recorded by the compiler.",
         "mm, whose chain says addmm.", "Nothing."},
    Rule{"evidence", "birth",
         "A pass, a copy or an interpreter was seen making the unit of others. Recorded here, at the moment it was "
         "made.",
         "The two nodes into which a pass split an addmm.",
         "Nothing. Ambiguous where a pattern matched several nodes: the pattern stands for all of them."},
    Rule{"evidence", "origins", "The `origins` that the compiler keeps. Claimed: level truth checks them.",
         "A buffer and the FX nodes it was lowered from.",
         "Where other units have a witness: the node is a view that this unit looks through, or the unit has none."},
    Rule{"evidence", "handle", "Equal ids in the debug handles of both. Claimed.", "An OpSpec and a file.",
         "Nothing."},
    Rule{"evidence", "claim", "The compiler's own word about a kernel. Claimed: it is not checked.",
         "The nodes in the comment above a generated kernel.", "Compare it with the operations of the kernel."},
    Rule{"evidence", "location", "Both name the same line of the user's source. Derived.",
         "Two nodes of one line are both shown as the source.",
         "Record with passes: what was seen being made needs no guess."},
    Rule{"evidence", "sibling",
         "The unit has no source of its own; it was lowered together with units that have one. Derived.",
         "A sum without a stack trace, lowered into one buffer with a mul that has one.",
         "Read it as: for this line's sake, in one operation with it."},
    Rule{"evidence", "producer",
         "The unit has no source of its own; this is the nearest unit with one whose value it consumes. Derived.",
         "A bias add whose metadata was lost hangs from the matrix product it adds to.",
         "Read it as: works on what this line computed. `kerntrail drops` says where its own source went."},
    Rule{"evidence", "ambiguous",
         "Not a kind of evidence but added to one: several units answer to it, at least one is the source, all are "
         "shown. A dotted line in Mermaid, a dashed one in DOT, as what is derived or only claimed has beside units "
         "with a witness.",
         "A pattern that matched nineteen nodes and made one.", "Look at the lines of all of them."},
    Rule{"witness", "computes", "It calculates for it: the claim is right.",
         "A kernel, and the relu that one of its lines calculates.", "Nothing."},
    Rule{"witness", "constant", "It holds the constant that it stands for, and calculates nothing for it.",
         "A kernel, and the factor 2 of a product.", "Nothing."},
    Rule{"witness", "moves", "It reads, writes or hands on a value for it, no more.",
         "A kernel, and the clone that it stores.", "Nothing."},
    Rule{"witness", "index",
         "A view or an index expression: it shapes where the unit reads and writes, and no line calculates for it.",
         "A kernel, and the permute through which it reads its input.", "Nothing; the unit does no work for it."},
    Rule{"witness", "control", "An assertion or the like is printed for it.",
         "A kernel, and the check of an index.", "Nothing."},
    Rule{"witness", "encloses",
         "It works for a sub-graph that the node holds or calls: the branch of a cond, the body of a loop.",
         "A kernel of a branch, and the cond.", "Nothing; the nodes of the sub-graph say more."},
    Rule{"witness", "elsewhere", "Nothing in it is for this, and other units do the work: the claim is contradicted.",
         "A call of a matrix product that claims the sin of the kernel before it.",
         "Do not look for this node's time or error here; look at the units named beside it."},
    Rule{"witness", "nowhere",
         "Nothing in it is for this, and no unit does the work: the claim is contradicted. The node was folded away, or "
         "the line is named only because a pass wrote it onto another node.",
         "A sin that names the line of a removed addition of zeros.",
         "Read the pass beside it: it wrote one node's provenance onto another."},
    Rule{"observer", "a", "An operation may not lose any of its `origins`.",
         "Rebuilding a buffer with one origin of two.",
         "Union the old origins into the new buffer, or declare the pass with kind `remaps`."},
    Rule{"observer", "b",
         "An operation may not lose its `origin_node`, unless the pass recorded a fusion of its own and the old one is "
         "still among the origins.",
         "Rebuilding a buffer without setting `origin_node`.", "Set it, or record the fusion."},
    Rule{"observer", "c", "The earlier transform records of an operation stay, in their order.",
         "A pass that writes its record over those before it.", "Append; never replace."},
    Rule{"observer", "d", "A new operation has `origins`.", "A buffer inserted without any.",
         "Give it those of the operation it serves, or declare the pass with kind `synthesises`."},
    Rule{"observer", "e",
         "An operation with provenance may only go if one operation left holds all of it: origins, origin node, "
         "records.",
         "A duplicate removed without merging its origins into the one that stays.",
         "Merge before removing, or declare the pass with kind `removes`."},
    Rule{"gate", "coverage", "Fewer units of a stage have a field than `[[coverage]]` asks for.",
         "`origins` on 4 of 5 operations, and `min = 1.0`.",
         "`kerntrail drops` names the pass; copy the field there, or allow it with a reason and a day."},
    Rule{"gate", "precision", "More claims of the compiler are contradicted by the witness than `[[verified]]` lets pass.",
         "A kernel that names a line it does nothing for.", "`kerntrail verify` lists each one, and the pass behind it."},
    Rule{"gate", "recall", "More of what units work for is claimed by nobody than `[[verified]]` lets pass.",
         "A line that a kernel computes and that is not among its origins.", "`kerntrail verify` lists them as missed."},
    Rule{"gate", "regressed", "A ratio is lower than in the baseline, or what it was measured of is no longer there.",
         "`stack_trace` at fx_post_grad: 100 % before, 85.7 % now.",
         "Repair it; where it is meant, `--update --force` takes the capture as the new baseline."},
    Rule{"gate", "missing-stage", "A rule names a stage that a compile does not have.", "`kernel`, of a compile that broke off.",
         "Correct the name, or give the rule a `backend`; a stage that should be there was not captured."},
    Rule{"gate", "missing-field", "A rule names a field that the stage does not have.", "`origins` at fx_aten.", "Correct the name or the stage."},
    Rule{"gate", "empty-stage", "A rule names a stage in which there is no unit.", "op_spec of a program without device operations.",
         "Gate another program, or take the rule out: nothing was tested."},
    Rule{"gate", "no-passes", "A rule is about what passes do, and passes were not recorded.", "`overwritten`, of a capture of level borders.",
         "Record with `--level passes`."},
    Rule{"gate", "no-witness", "A rule is about verified claims, and nothing was witnessed.", "A capture of level passes.",
         "Record with `--level truth`."},
    Rule{"gate", "no-compile", "Nothing was compiled, or nothing that the rule is about.", "A script whose model never ran.",
         "See that the program compiles: `kerntrail info`."},
    Rule{"gate", "not-observed", "A compile was not seen: a cache hit, or its code was generated elsewhere.",
         "A second run with Inductor's caches on.", "Record with `kerntrail record`, which disables the caches."},
    Rule{"gate", "torn-capture", "The capture has no end record.", "The program was killed.", "Record again."},
    Rule{"gate", "partial-capture", "Something was lost while the capture was made.", "A hook that failed.", "`kerntrail info` says what."},
    Rule{"gate", "hook-absent", "A hook that is needed was not there to install.", "Another torch, which renamed a function.",
         "See `kerntrail info`; name it in `expected_absent` if nothing is lost by it."},
    Rule{"gate", "hook-failed", "A hook could not be installed.", "An attribute that can't be set.", "See `kerntrail info`."},
    Rule{"gate", "hook-errors", "A hook failed while the program ran.", "An object of a form that is not known.", "See `kerntrail info`, and report it."},
    Rule{"gate", "hook-not-restored", "A hook was not put back.", "Another tool patched the same attribute.", "Take the hooks off in reverse order."},
    Rule{"gate", "hook-silent", "A required hook never fired.", "The hook on the scheduler, in a program that compiles nothing.",
         "See that the program goes that way."},
};

}  // namespace

std::span<const Rule> rules() { return kRules; }

std::string_view meaning_of(std::string_view axis, std::string_view id) {
  for (const Rule& rule : kRules) {
    if (rule.axis == axis && rule.id == id) return rule.meaning;
  }
  return {};
}
std::span<const Axis> rule_axes() { return kAxes; }

}  // namespace kerntrail::analyse
