// Fates.cpp: see Fates.h.
#include "Fates.h"

#include "LoopStarts.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace tracekit {

namespace {

/// What was found of a loop of the source.
struct Remains {
  bool IsLoop = false;      // there is a loop at its place, or one that may be it
  bool IsInPlace = false;   // and no loop around that one is inside it in the source
  bool HasText = false;     // instructions of its text
  bool HasAccesses = false; // of these, some that touch memory
  bool HasEffects = false;  // of these, some that change memory otherwise than by the following
  bool Sets = false, Copies = false;
  const DILocation *Into = nullptr; // the loop that one of these instructions runs in, another one than it had inside
};

class Fates {
public:
  explicit Fates(const SourceLoops &InSource) : InSource(InSource) {
    for (const SourceLoop *S : InSource.inOrder())
      Of[S];
  }

  void seeLoops(const LoopInfo &LI) {
    LoopStarts Starts(LI, &InSource);
    for (const Loop *L : LI.getLoopsInPreorder())
      if (DebugLoc Start = Starts.of(*L))
        if (const SourceLoop *S = InSource.find(Start.get())) {
          const DILocation *Around = insideItInSource(*L, *S, *Start, Starts);
          Of[S].IsLoop = true;
          Of[S].IsInPlace |= !Around;
          if (Around)
            Of[S].Into = Around;
        }
  }

  bool areThere() const {
    return all_of(Of, [](const auto &Each) { return Each.second.IsLoop; });
  }

  void seeText(const Function &F, const LoopInfo &LI) {
    LoopStarts Starts(LI, &InSource);
    for (const BasicBlock &BB : F)
      for (const Instruction &I : BB)
        if (!isa<PHINode>(I) && !I.isTerminator() && !I.isDebugOrPseudoInst() && !I.isLifetimeStartOrEnd())
          for (const DILocation *At = I.getDebugLoc().get(); At; At = At->getInlinedAt())
            for (const SourceLoop *S : InSource.of(*At->getScope()->getSubprogram()))
              if (!Of[S].IsLoop && S->holds(*At))
                see(I, *S, *At, LI.getLoopFor(&BB), Starts);
  }

  void write(Unit &U, SourceMap &Sources) const {
    for (const auto &[S, Now] : Of)
      if (uint32_t Fate = fateOf(*S, Now))
        U.LoopFates.push_back({Sources.location(S->Start), S->End.first, Fate, Sources.location(Now.Into)});
  }

private:
  /// The nearest loop around `L` that stands in the text of `L`'s loop.
  const DILocation *insideItInSource(const Loop &L, const SourceLoop &S, const DILocation &Start,
                                     const LoopStarts &Starts) const {
    for (const Loop *Around = L.getParentLoop(); Around; Around = Around->getParentLoop())
      if (DebugLoc Place = Starts.of(*Around))
        if (const SourceLoop *Other = InSource.find(Place.get());
            Other && Other != &S && areOneCopy(*Place, Start) && S.holds(*Other->Start))
          return Place.get();
    return nullptr;
  }

  /// `I` is of the text of `S`, a loop that is not there, and runs in `L`.
  void see(const Instruction &I, const SourceLoop &S, const DILocation &At, const Loop *L, const LoopStarts &Starts) {
    Remains &Now = Of[&S];
    Now.HasText = true;
    Now.HasAccesses |= I.mayReadOrWriteMemory();
    bool IsBulk = isa<MemIntrinsic>(I) && I.getDebugLoc().get() == &At; // no function's that was called there
    Now.Sets |= IsBulk && isa<MemSetInst>(I);
    Now.Copies |= IsBulk && isa<MemTransferInst>(I);
    Now.HasEffects |= I.mayHaveSideEffects() && !IsBulk;
    for (; L; L = L->getParentLoop()) {
      DebugLoc Start = Starts.of(*L);
      bool IsOwn = !Start || areOneCopy(*Start, At);
      if (!Start || (IsOwn && !InSource.find(Start.get()))) {
        Now.IsLoop = Now.IsInPlace = true; // a place that the optimiser has changed: it may be this one
        return;
      }
      if (IsOwn && S.holds(*Start))
        continue;
      if (!Now.Into || Now.Into->getScope()->getSubprogram() != At.getScope()->getSubprogram())
        Now.Into = Start.get();
      return;
    }
  }

  /// 0 if it is a loop in its place.
  static uint32_t fateOf(const SourceLoop &S, const Remains &Now) {
    if (Now.IsLoop)
      return Now.IsInPlace ? 0 : TK_FATE_INTERCHANGED;
    if (!Now.HasText)
      return TK_FATE_DELETED;
    if (!Now.HasEffects && !S.CopiesMemory && Now.Sets != Now.Copies)
      return Now.Sets ? TK_FATE_SET : TK_FATE_COPY;
    return Now.HasAccesses ? TK_FATE_UNROLLED : TK_FATE_COMPUTED;
  }

  const SourceLoops &InSource;
  MapVector<const SourceLoop *, Remains> Of;
};

} // namespace

void describeFates(Module &M, const SourceLoops &InSource, Unit &U, SourceMap &Sources) {
  SmallVector<Function *, 32> Bodies;
  for (Function &F : M)
    if (!F.isDeclaration())
      Bodies.push_back(&F);
  if (all_of(Bodies, [](const Function *F) { return F->hasOptNone(); }))
    return; // nothing was optimised
  Fates Of(InSource);
  auto ForEach = [&](auto Look) {
    for (Function *F : Bodies) {
      DominatorTree DT(*F);
      LoopInfo LI(DT);
      Look(*F, LI);
    }
  };
  ForEach([&](const Function &, const LoopInfo &LI) { Of.seeLoops(LI); });
  if (!Of.areThere())
    ForEach([&](const Function &F, const LoopInfo &LI) { Of.seeText(F, LI); });
  Of.write(U, Sources);
}

} // namespace tracekit
