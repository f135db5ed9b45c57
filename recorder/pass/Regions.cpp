// Regions.cpp: see Regions.h.
#include "Regions.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/CFG.h"

using namespace llvm;

namespace tracekit {

/// A region with more paths, or longer ones, is cut: each path has its rows of tables, and few of very many ever run.
static constexpr uint64_t MaxPaths = 64;
static constexpr unsigned MaxLength = 48;

Regions::Regions(const SegmentedFunction &S, std::vector<RunLoop> Loops, bool EverySegment, bool GroundTruth,
                 ArrayRef<unsigned> Starts)
    : Runs(std::move(Loops)), GroundTruth(GroundTruth), S(S), Nodes(S.Segments.size()) {
  link();
  startAtEntries();
  for (unsigned K : Starts)
    Nodes[K].Start = true;
  for (const RunLoop &Run : Runs)
    takeOut(Run);
  if (EverySegment)
    for (Node &N : Nodes)
      N.Start = true;
  else
    startAtRetreatingEdges();
  limit();
  number();
  for (const RunLoop &Run : Runs)
    Paths.emplace_back(Run.Segments.begin(), Run.Segments.end());
}

/// The record of a run loop is written where it is left, between two regions. One that tests at its header is left
/// after a visit of it that is no iteration: with this a region begins.
void Regions::takeOut(const RunLoop &Run) {
  unsigned After = S.OfBlock.lookup(Run.Exit).first;
  if (GroundTruth || !Run.TestsAtHeader)
    Nodes[After].Start = true;
  if (GroundTruth)
    return;
  for (unsigned K : Run.Segments) {
    Nodes[K].InRun = true;
    Nodes[K].Following.clear();
  }
  if (Run.TestsAtHeader)
    Nodes[Run.Segments.front()].Following.push_back(After);
}

void Regions::link() {
  ReversePostOrderTraversal<const Function *> Blocks(S.F);
  for (const BasicBlock *BB : Blocks) {
    auto Known = S.OfBlock.find(BB);
    if (Known == S.OfBlock.end())
      continue;
    auto [First, Last] = Known->second;
    for (unsigned K = First; K <= Last; ++K) {
      Order.push_back(K);
      if (S.Segments[K].EndsWithCall)
        continue;
      if (K < Last) {
        Nodes[K].Following.push_back(K + 1);
        continue;
      }
      for (const BasicBlock *Next : successors(BB)) {
        auto Target = S.OfBlock.find(Next);
        if (Target != S.OfBlock.end() && !is_contained(Nodes[K].Following, Target->second.first))
          Nodes[K].Following.push_back(Target->second.first);
      }
    }
  }
}

void Regions::startAtEntries() {
  for (unsigned K = 0; K < Nodes.size(); ++K) {
    const Segment &Seg = S.Segments[K];
    Nodes[K].Entered = Seg.Continues || (Seg.Flags & (TK_BLOCK_ENTRY | TK_BLOCK_LANDING));
    Nodes[K].Start |= Nodes[K].Entered || (Seg.Flags & TK_BLOCK_LOOP_HEADER);
    // The end of a path needs a place on the edge, which these have not.
    const Instruction *End = Seg.End;
    if (End->isTerminator() && !isa<BranchInst, SwitchInst>(End))
      for (unsigned Next : Nodes[K].Following)
        Nodes[Next].Start = true;
  }
}

/// Cycles that are no natural loops are cut, too.
void Regions::startAtRetreatingEdges() {
  std::vector<unsigned> Place(Nodes.size());
  for (unsigned P = 0; P < Order.size(); ++P)
    Place[Order[P]] = P;
  for (unsigned K : Order)
    for (unsigned Next : Nodes[K].Following)
      if (Place[Next] <= Place[K])
        Nodes[Next].Start = true;
}

/// Counts the paths and words from segment `K` on; cuts before one of those that follow, and returns false, if there
/// are too many.
bool Regions::measure(unsigned K) {
  Node &N = Nodes[K];
  N.Ends = N.Following.empty();
  N.Paths = 0;
  Node *Most = nullptr, *Widest = nullptr, *Longest = nullptr;
  for (unsigned Next : N.Following) {
    Node &To = Nodes[Next];
    if (To.Start) {
      N.Ends = true;
      continue;
    }
    N.Paths += To.Paths;
    Most = !Most || To.Paths > Most->Paths ? &To : Most;
    Widest = !Widest || To.Words > Widest->Words ? &To : Widest;
    Longest = !Longest || To.Length > Longest->Length ? &To : Longest;
  }
  N.Paths += N.Ends;
  N.Words = S.Segments[K].Words + (Widest ? Widest->Words : 0);
  N.Length = 1 + (Longest ? Longest->Length : 0);
  Node *Cut = !Most                  ? nullptr
              : N.Words > MaxWords   ? Widest
              : N.Length > MaxLength ? Longest
              : N.Paths > MaxPaths   ? Most
                                     : nullptr;
  if (Cut)
    Cut->Start = true;
  return !Cut;
}

void Regions::limit() {
  for (unsigned K : reverse(Order))
    while (!measure(K))
      ;
  for (unsigned K : reverse(Order)) // what was cut later may have made earlier counts smaller
    measure(K);
}

void Regions::number() {
  for (unsigned K : Order) {
    uint64_t Increment = Nodes[K].Ends;
    for (unsigned Next : Nodes[K].Following)
      if (!Nodes[Next].Start) {
        Nodes[K].Steps.push_back({Next, Increment});
        Increment += Nodes[Next].Paths;
      }
  }
  for (unsigned K : Order)
    if (Nodes[K].Start && !(Nodes[K].InRun && Nodes[K].Following.empty())) {
      Nodes[K].Base = Paths.size();
      SmallVector<unsigned, 8> Prefix = {K};
      list(Prefix);
    }
}

void Regions::list(SmallVector<unsigned, 8> &Prefix) {
  const Node &N = Nodes[Prefix.back()];
  if (N.Ends)
    Paths.push_back(Prefix);
  for (const Step &To : N.Steps) {
    Prefix.push_back(To.To);
    list(Prefix);
    Prefix.pop_back();
  }
}

} // namespace tracekit
