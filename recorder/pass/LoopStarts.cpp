// LoopStarts.cpp: see LoopStarts.h.
#include "LoopStarts.h"

#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace tracekit {

LoopStarts::LoopStarts(const LoopInfo &LI, const SourceLoops *InSource) : LI(LI), InSource(InSource) {
  for (const Loop *L : LI.getLoopsInPreorder()) {
    bool IsMarked = L->getLoopID() || L->getHeader()->getParent()->hasOptNone();
    DebugLoc Found = IsMarked || !InSource ? DebugLoc() : byText(*L);
    Starts[L] = Found ? Found : L->getStartLoc();
  }
}

/// The loops of the source that a place lies in.
LoopStarts::Nest LoopStarts::around(const DILocation &Place) const {
  Nest Found;
  for (const DILocation *At = &Place; At; At = At->getInlinedAt())
    for (const SourceLoop *S : reverse(InSource->of(*At->getScope()->getSubprogram())))
      if (S->holds(*At))
        Found.push_back(Copy(S, At));
  return Found;
}

/// Those that all of a loop's text lies in, as far as it lies in any.
LoopStarts::Nest LoopStarts::around(const Loop &L, bool OwnTextOnly) const {
  std::optional<Nest> Common;
  for (const BasicBlock *BB : L.blocks()) {
    if (OwnTextOnly && LI.getLoopFor(BB) != &L)
      continue;
    for (const Instruction &I : *BB) {
      const DILocation *Place = I.getDebugLoc().get();
      if (!Place || !Place->getLine() || isa<PHINode>(I) || I.isDebugOrPseudoInst())
        continue;
      Nest Around = around(*Place);
      if (Around.empty())
        continue;
      if (!Common)
        Common = Around;
      auto [Differs, _] = std::mismatch(Common->rbegin(), Common->rend(), Around.rbegin(), Around.rend());
      Common->erase(Common->begin(), Differs.base());
    }
  }
  return Common.value_or(Nest());
}

/// The loop of the source that begins at a place, if there is one.
LoopStarts::Copy LoopStarts::copyAt(DebugLoc Start) const { return Copy(InSource->find(Start.get()), Start.get()); }

DebugLoc LoopStarts::byText(const Loop &L) const {
  Nest Inside, Outside;
  for (const Loop *Inner : L.getSubLoops())
    if (Inner->getLoopID())
      Inside.push_back(copyAt(Inner->getStartLoc()));
  for (const Loop *Outer = L.getParentLoop(); Outer; Outer = Outer->getParentLoop())
    Outside.push_back(copyAt(of(*Outer)));
  Nest Around = around(L, true);
  for (const Copy &Each : Around.empty() ? around(L, false) : Around) {
    if (is_contained(Outside, Each))
      break;
    if (!is_contained(Inside, Each))
      return Each.start();
  }
  return DebugLoc();
}

LoopStarts::Copy::Copy(const SourceLoop *Of, const DILocation *In)
    : Of(Of), Function(In ? In->getScope()->getSubprogram() : nullptr), Call(In ? In->getInlinedAt() : nullptr) {}

bool LoopStarts::Copy::operator==(const Copy &Other) const {
  return Of == Other.Of && Function == Other.Function && Call == Other.Call;
}

DebugLoc LoopStarts::Copy::start() const {
  DILocalScope *Scope = Of->Start->getScope();
  if (Scope->getSubprogram() != Function)
    Scope = Function;
  return DILocation::get(Function->getContext(), Of->Start->getLine(), Of->Start->getColumn(), Scope, Call);
}

} // namespace tracekit
